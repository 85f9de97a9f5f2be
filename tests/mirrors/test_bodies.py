"""Node, Lease and mirror: each field for its reason, a row each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueued.mirrors.mirror import kept_of, mirror_body, mirror_status, pod_key, shown_of, shows
from multikueued.mirrors.node import REACHABLE, Endpoint, address_of, is_ours, lease_body, node_body, node_status
from multikueued.settings.sections import MirrorPodSettings
from tests.mirrors.objects import manager_job, run, shown, worker_pod

NOW = datetime(2026, 11, 28, 10, 0, tzinfo=UTC)
NODE = node_body("worker1")
STATUS = node_status(Endpoint("10.0.0.7", 10260), "v1.36.3", NOW, None)
MIRROR = mirror_body(shown(), run(), "multikueue")
MAIN = MIRROR["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("metadata", "name"), "multikueue-worker1", "policies and roles know our nodes by the beginning"),
        (("metadata", "labels", "type"), "virtual-kubelet", "DaemonSets of clouds pass over it"),
        (("metadata", "labels", "multikueue.dev/worker"), "worker1", "it is found by it"),
        (("metadata", "labels", "node.kubernetes.io/exclude-from-external-load-balancers"), "true", "no traffic"),
        (("metadata", "labels", "kubernetes.io/os"), None, "DaemonSets that tolerate all select on it"),
        (("metadata", "labels", "kubernetes.io/hostname"), None, "spread constraints of others would count the node"),
        (("metadata", "labels", "topology.kubernetes.io/zone"), None, "likewise"),
        (("spec", "unschedulable"), True, "nothing is placed there"),
        (("spec", "podCIDR"), None, "it has no network"),
        (("spec", "providerID"), None, "no cloud has it"),
    ],
)
def test_a_node(path: tuple[str, ...], value: Any, why: str) -> None:
    assert dig(NODE, *path) == value, why


def test_the_taint_evicts_nobody() -> None:
    assert [taint["effect"] for taint in NODE["spec"]["taints"]] == ["NoSchedule"]


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (
            ("addresses",),
            [{"type": "InternalIP", "address": "10.0.0.7"}],
            "a Hostname would be preferred, and looked up",
        ),
        (("daemonEndpoints", "kubeletEndpoint", "Port"), 10260, "scrapers that assume 10250 fail at once"),
        (("allocatable",), {"pods": "0"}, "nothing is placed or preempted there; no capacity for autoscalers"),
        (("capacity",), None, "alerts divide the pods that run there by it"),
        (("nodeInfo", "kubeletVersion"), "v1.36.3", "tools parse it"),
        (("nodeInfo", "operatingSystem"), "linux", "tools read it"),
        (("declaredFeatures",), None, "the worker may be older"),
    ],
)
def test_a_nodes_status(path: tuple[str, ...], value: Any, why: str) -> None:
    assert dig(STATUS, *path) == value, why


def test_a_node_is_ready_while_its_worker_is_away() -> None:
    """A cloud's node controller deletes a NotReady node that it does not know, and mirrors would be Ready: False."""
    away = node_status(Endpoint("10.0.0.7", 1), "v1", NOW, datetime(2026, 11, 28, 9, 0, tzinfo=UTC))
    conditions = {condition["type"]: condition for condition in away["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    assert (conditions[REACHABLE]["status"], conditions[REACHABLE]["lastTransitionTime"]) == (
        "False",
        "2026-11-28T09:00:00Z",
    )


def test_a_lease_goes_with_its_node() -> None:
    lease = lease_body("worker1", "node-uid", NOW)
    assert (lease["metadata"]["namespace"], lease["metadata"]["name"]) == ("kube-node-lease", "multikueue-worker1")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == "node-uid"
    assert lease["spec"]["renewTime"] == "2026-11-28T10:00:00.000000Z"


def test_a_node_of_that_name_without_our_words_is_somebody_elses() -> None:
    assert is_ours(NODE, "worker1")
    assert not is_ours(NODE, "worker2")
    assert not is_ours({"metadata": {"name": "multikueue-worker1"}}, "worker1")


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("metadata", "namespace"), "team-a", "the manager's, also where the worker's has another name"),
        (("metadata", "name"), "train-0-abcde", "the endpoint gets nothing else"),
        (("metadata", "finalizers"), None, "nothing hangs on us"),
        (("metadata", "labels", "app"), "train", "the user selects by it"),
        (("metadata", "labels", "controller-uid"), "job-uid", "kubectl logs job/x selects by the manager's UID"),
        (("metadata", "labels", "batch.kubernetes.io/controller-uid"), "job-uid", "likewise"),
        (("metadata", "labels", "batch.kubernetes.io/job-name"), "train", "likewise"),
        (("metadata", "labels", "kueue.x-k8s.io/podset"), "main", "stern selects by all labels of the template"),
        (("metadata", "labels", "kueue.x-k8s.io/cluster-queue-name"), "here", "the manager's, not the worker's"),
        (("metadata", "labels", "kueue.x-k8s.io/queue-name"), None, "Kueue would take it for a pod of its own"),
        (("metadata", "labels", "kueue.x-k8s.io/managed"), None, "likewise"),
        (("metadata", "labels", "kueue.x-k8s.io/pod-group-name"), None, "likewise"),
        (("metadata", "labels", "kueue.x-k8s.io/tas"), None, "it is in no topology"),
        (("metadata", "labels", "kueue.x-k8s.io/multikueue-worker-workload-pod"), None, "it is no worker's"),
        (("metadata", "labels", "multikueue.dev/mirror"), "multikueue", "ours, whatever the pod says"),
        (("metadata", "annotations", "multikueue.dev/worker"), "worker1", "what it shows"),
        (("metadata", "annotations", "multikueue.dev/worker-pod"), "mk-team-a/train-0-abcde", "what it shows"),
        (("metadata", "annotations", "multikueue.dev/worker-pod-uid"), "pod-uid", "what it shows"),
        (("metadata", "annotations", "multikueue.dev/mirror-proof"), None, "it is written for a UID that we were told"),
        (("metadata", "annotations", "batch.kubernetes.io/job-completion-index"), "0", "clients read it"),
        (("metadata", "annotations", "kubectl.kubernetes.io/default-container"), "main", "kubectl logs reads it"),
        (("metadata", "annotations", "kueue.x-k8s.io/pod-suspending-parent"), None, "it gates even an owned pod"),
        (("metadata", "annotations", "example.com/other"), None, "only what clients need"),
        (("metadata", "annotations", "sidecar.istio.io/inject"), "false", "no containers that do not run"),
        (("metadata", "annotations", "linkerd.io/inject"), "disabled", "likewise"),
        (("spec", "nodeName"), "multikueue-worker1", "it needs no right but to create pods"),
        (("spec", "restartPolicy"), "OnFailure", "a status is judged by it"),
        (("spec", "serviceAccountName"), None, "one that is missing is a 403"),
        (("spec", "priorityClassName"), None, "likewise"),
        (("spec", "runtimeClassName"), None, "likewise"),
        (("spec", "schedulingGates"), None, "it is bound"),
        (("spec", "nodeSelector"), None, "it would not match"),
        (("spec", "hostNetwork"), None, "PodSecurity refuses it"),
        (("spec", "volumes"), None, "an ephemeral one makes a claim on the manager"),
        (("spec", "ephemeralContainers"), None, "refused at the creation"),
        (("spec", "automountServiceAccountToken"), False, "nothing runs"),
        (("spec", "enableServiceLinks"), False, "nothing runs"),
        (("spec", "terminationGracePeriodSeconds"), 0, "a deletion is done at once, without us"),
        (("spec", "tolerations"), [{"operator": "Exists"}], "it is not evicted for taints"),
        (("spec", "securityContext", "runAsNonRoot"), True, "PodSecurity restricted lets it in"),
        (("spec", "securityContext", "seccompProfile"), {"type": "RuntimeDefault"}, "likewise"),
    ],
)
def test_a_mirror(path: tuple[str, ...], value: Any, why: str) -> None:
    assert dig(MIRROR, *path) == value, why


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("name", "main", "the API server refuses -c of another"),
        ("image", "example.com/train:1", "kubectl describe shows it"),
        ("command", ["train"], "likewise"),
        ("args", ["--epochs=3"], "likewise"),
        ("ports", [{"name": "http", "containerPort": 8080, "protocol": "TCP"}], "PodSecurity refuses host ports"),
        ("env", None, "it may name Secrets"),
        ("volumeMounts", None, "there are no volumes"),
        ("livenessProbe", None, "nothing runs"),
        ("restartPolicy", None, "of single containers it needs a feature gate"),
        (
            "resources",
            {kind: {"cpu": "0", "memory": "0", "ephemeral-storage": "0"} for kind in ("requests", "limits")},
            "it costs no quota, and no LimitRange fills in what does",
        ),
        (
            "securityContext",
            {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "PodSecurity restricted lets it in",
        ),
    ],
)
def test_a_container_of_a_mirror(field: str, value: Any, why: str) -> None:
    assert MAIN.get(field) == value, why


def test_a_sidecar_stays_one() -> None:
    (sidecar,) = MIRROR["spec"]["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("sidecar", "Always")


def test_the_managers_job_controls_its_mirrors() -> None:
    """Else a ReplicaSet with a matching selector adopts one and deletes it; blockOwnerDeletion would need a right."""
    (owner,) = MIRROR["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-uid", "controller": True}


def test_a_job_without_a_template_has_no_labels_of_kueue() -> None:
    """As an AppWrapper, a RayJob."""
    job = manager_job()
    job["spec"] = {"template": "x"}
    labels = mirror_body(shown(), run(job), "multikueue")["metadata"]["labels"]
    assert [name for name in labels if "kueue.x-k8s.io" in name] == []


@pytest.mark.parametrize(
    "field",
    [
        "qosClass",
        "nominatedNodeName",
        "observedGeneration",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
    ],
)
def test_what_a_status_does_not_show(field: str) -> None:
    """Refused, or an address that is somebody else's on the manager: a Service would lead there."""
    assert field in worker_pod()["status"]
    assert field not in mirror_status(shown())


def test_the_rest_of_a_status_is_shown_as_it_is() -> None:
    status, pod = mirror_status(shown(worker_pod(message="m"))), worker_pod(message="m")
    assert status["containerStatuses"] == pod["status"]["containerStatuses"]
    assert (status["phase"], status["message"], status["startTime"]) == ("Running", "m", "2026-11-28T10:00:00Z")
    (ready,) = status["conditions"]
    assert "observedGeneration" not in ready
    assert ready["type"] == "Ready"


def test_a_status_of_a_worker_out_of_reach_says_since_when_and_that_goes_again() -> None:
    away = mirror_status(shown(), NOW)
    assert [condition["type"] for condition in away["conditions"]] == ["Ready", REACHABLE]
    assert mirror_status({"status": away}, NOW) == away
    assert mirror_status({"status": away}) == mirror_status(shown())
    assert "conditions" not in mirror_status({"status": {"phase": "Pending"}})


def test_a_pod_without_a_controller_is_not_kept() -> None:
    pod = worker_pod()
    del pod["metadata"]["ownerReferences"]
    assert shown_of(pod) is None


def test_what_a_mirror_says_that_it_shows() -> None:
    assert shows(MIRROR) == ("worker1", ObjectKey("mk-team-a", "train-0-abcde"), "pod-uid")
    assert str(pod_key("worker1", ObjectKey("mk-team-a", "train-0-abcde"))) == "worker1/mk-team-a/train-0-abcde"
    assert shows({"metadata": {"name": "x"}}) == ("", ObjectKey("", ""), "")


@pytest.mark.parametrize(
    ("set_to", "server", "version", "address"),
    [
        ("", "https://127.0.0.1:6443", "v1.36.0-sandbox", "127.0.0.1"),
        ("", "https://localhost:6443", "v1.36.0-sandbox", "127.0.0.1"),
        ("", "https://10.96.0.1:443", "v1.36.0-sandbox", ""),
        ("", "https://127.0.0.1:41873", "v1.36.3", ""),  # kind's server is in a container, with a loopback of its own
        ("", "https://kubernetes.example.com", "v1.36.3", ""),
        ("", "", "", ""),
        ("10.0.0.7", "https://127.0.0.1:6443", "v1.36.3", "10.0.0.7"),
    ],
)
def test_the_address_of_an_endpoint_beside_a_sandbox_is_known(
    set_to: str, server: str, version: str, address: str
) -> None:
    assert address_of(MirrorPodSettings(logs=True, address=set_to), server, version) == address


def test_of_a_mirror_nothing_is_kept_that_others_may_write() -> None:
    """Who may change pods gives each of theirs 256 KiB of annotations: the daemon dispatches for everybody."""
    mirror = mirror_body(shown(), run(), "multikueue")
    mirror["metadata"] |= {"uid": "own", "resourceVersion": "7", "finalizers": ["foregroundDeletion"], "generation": 1}
    before = kept_of(mirror)
    mirror["metadata"]["annotations"] |= {"example.com/notes": "x" * 200_000}
    mirror["metadata"]["labels"] |= {f"example.com/{number}": "x" * 60 for number in range(5_000)}
    mirror["metadata"] |= {"managedFields": [{"manager": "x" * 50_000}], "generateName": "x" * 200, "selfLink": "x"}
    assert kept_of(mirror) == before
    assert (shows(before), before["metadata"]["uid"], before["metadata"]["finalizers"]) == (
        shows(mirror),
        "own",
        ["foregroundDeletion"],
    )
