"""The rules of Jobs, pods and Secrets that clients meet."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.verbs.deleting import DeleteOptions
from multikueue.sandbox.apiserver.verbs.patching import MERGE_PATCH
from multikueue.sandbox.apiserver.verbs.updating import Target
from tests.sandbox.apiserver.objects import job

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def at(registry: Registry, group: str, plural: str, name: str, subresource: str = "") -> Target:
    return Target(registry.cluster.types[group, "v1", plural], "default", name, subresource)


def true(*kinds: str) -> Json:
    return {"conditions": [{"type": kind, "status": "True"} for kind in kinds]}


def pod(**spec: Any) -> Json:
    containers = [{"name": "a", "image": "x"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def causes_of(error: StatusError) -> set[str]:
    return {cause["field"] for cause in (error.details or {}).get("causes") or ()}


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"active": 1, "ready": 2}, "status.ready"),
        ({"completionTime": NOW}, "status.completionTime"),
        (true("Complete"), "status.completionTime"),
        ({**true("Complete"), "completionTime": NOW, "startTime": NOW}, "status.conditions"),
        ({**true("Failed"), "startTime": NOW}, "status.conditions"),
        (true("Failed", "FailureTarget"), "status.startTime"),
        (
            {**true("Complete", "SuccessCriteriaMet"), "startTime": LATER, "completionTime": NOW},
            "status.completionTime",
        ),
        ({**true("Failed", "FailureTarget"), "startTime": NOW, "active": 1}, "status.active"),
        (true("SuccessCriteriaMet", "FailureTarget"), "status.conditions"),
        ({"active": -1}, "status.active"),
    ],
)
def test_a_job_status_that_promises_too_much_is_refused(status: Json, field: str) -> None:
    """Whoever caches a remote Job's status has to send one that a real server takes."""
    registry = Registry()
    registry.create_object(job())
    with pytest.raises(StatusError) as caught:
        registry.patch(at(registry, "batch", "jobs", "j", "status"), MERGE_PATCH, {"status": status})
    assert caught.value.code == 422
    assert field in causes_of(caught.value)


def test_a_finished_job_stays_finished() -> None:
    """Its terminal condition, completion time and counters do not go back."""
    registry = Registry()
    registry.create_object(job())
    target = at(registry, "batch", "jobs", "j", "status")
    done = {**true("SuccessCriteriaMet", "Complete"), "startTime": NOW, "completionTime": LATER, "succeeded": 1}
    registry.patch(target, MERGE_PATCH, {"status": done})
    changes: list[Json] = [{"conditions": []}, {"completionTime": NOW}, {"succeeded": 0}]
    for change in changes:
        with pytest.raises(StatusError):
            registry.patch(target, MERGE_PATCH, {"status": change})


def test_a_suspended_job_that_never_ran_may_get_other_nodes() -> None:
    """That is how Kueue places it; the image stays fixed, and so does all of it once the Job runs."""
    registry = Registry()
    created = registry.create_object(job())
    target = at(registry, "batch", "jobs", "j")
    assert created["spec"]["suspend"] is True

    def template(**spec: Any) -> Json:
        return {"spec": {"template": {"spec": spec}}}

    registry.patch(target, MERGE_PATCH, template(nodeSelector={"n": "1"}))
    with pytest.raises(StatusError):
        registry.patch(target, MERGE_PATCH, template(containers=[{"name": "c", "image": "another"}]))
    registry.patch(target, MERGE_PATCH, {"spec": {"suspend": False}})
    with pytest.raises(StatusError):
        registry.patch(target, MERGE_PATCH, template(nodeSelector={"n": "2"}))


@pytest.mark.parametrize("affinity", [None, {}, {"nodeAffinity": {}}, {"podAffinity": {}}])
def test_its_nodes_may_change_whatever_affinity_it_has(affinity: Json | None) -> None:
    """Airflow's have an empty one, which stays: it is no change."""
    registry = Registry()
    made = job()
    if affinity is not None:
        made["spec"]["template"]["spec"]["affinity"] = affinity
    registry.create_object(made)
    target = at(registry, "batch", "jobs", "j")

    def template(**spec: Any) -> Json:
        return {"spec": {"template": {"spec": spec}}}

    placed, _ = registry.patch(target, MERGE_PATCH, template(nodeSelector={"n": "1"}))
    assert placed["spec"]["template"]["spec"].get("affinity") == affinity
    registry.patch(target, MERGE_PATCH, template(affinity={"nodeAffinity": {}}))
    with pytest.raises(StatusError):
        registry.patch(target, MERGE_PATCH, template(affinity={"podAntiAffinity": {}}))


def test_a_job_that_is_deleted_without_a_policy_waits_for_its_orphans() -> None:
    """The default of batch/v1 is to orphan pods; with a policy the Job is gone at once."""
    registry = Registry(garbage_collection=False)
    registry.create_object(job())
    left, gone = registry.delete(at(registry, "batch", "jobs", "j"), DeleteOptions())
    assert (left["metadata"]["finalizers"], gone) == (["orphan"], False)
    _, gone = registry.delete(at(registry, "batch", "jobs", "j"), DeleteOptions(propagation="Background"))
    assert gone


def test_an_unknown_policy_is_refused_before_anything_is_looked_up() -> None:
    """Even for an object that is not there."""
    registry = Registry()
    with pytest.raises(StatusError) as caught:
        registry.delete(at(registry, "batch", "jobs", "nowhere"), DeleteOptions(propagation="Sometimes"))
    assert caught.value.code == 422


def test_new_pods_are_completed() -> None:
    """As the admission plugins that are always on do it."""
    created = Registry().create_object(pod())
    assert created["spec"]["serviceAccountName"] == "default"
    assert [item["key"].rpartition("/")[2] for item in created["spec"]["tolerations"]] == ["not-ready", "unreachable"]
    assert created["status"]["qosClass"] == "BestEffort"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_quality_of_service(resources: Json, expected: str) -> None:
    """Limits count as requests, and only CPU and memory count."""
    containers = [{"name": "a", "image": "x", "resources": resources}]
    assert Registry().create_object(pod(containers=containers))["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": [{"name": "a", "image": "x", "command": ["y"]}]}, "spec"),
        ({"containers": []}, "spec.containers"),
        ({"activeDeadlineSeconds": 20}, "spec.activeDeadlineSeconds"),
        ({"schedulingGates": [{"name": "e.com/h"}]}, "spec.schedulingGates[0].name"),
        ({"tolerations": [{"key": "x", "operator": "Exists", "value": "y"}]}, "spec.tolerations[0].operator"),
        ({"nodeSelector": {"m": "1"}}, "spec.nodeSelector"),
        ({"restartPolicy": "Bogus"}, "spec.restartPolicy"),
    ],
)
def test_most_of_a_pod_is_fixed(change: Json, field: str) -> None:
    """A gated pod may still lose gates and gain node selectors, but not the other way round."""
    registry = Registry()
    gated = {"schedulingGates": [{"name": "e.com/g"}], "nodeSelector": {"n": "1"}, "activeDeadlineSeconds": 10}
    manifest = pod(**gated)
    registry.create_object(manifest)
    spec = {**manifest["spec"], **change}
    if "nodeSelector" in change:
        spec["nodeSelector"] = {**change["nodeSelector"], "n": None}
    with pytest.raises(StatusError) as caught:
        registry.patch(at(registry, "", "pods", "p"), MERGE_PATCH, {"spec": spec})
    assert field in causes_of(caught.value)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"type": "kubernetes.io/tls"}, {"data[tls.crt]", "data[tls.key]"}),
        ({"type": "kubernetes.io/basic-auth"}, {"data[username]", "data[password]"}),
        (
            {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "dg=="}},
            {"data[.dockerconfigjson]"},
        ),
        ({"data": {"a b": "dg=="}}, {"data[a b]"}),
    ],
)
def test_secrets_hold_what_their_type_says(body: Json, fields: set[str]) -> None:
    """A kubeconfig in the wrong place is found when it is written."""
    with pytest.raises(StatusError) as caught:
        Registry().create_object({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **body})
    assert causes_of(caught.value) == fields


@pytest.mark.parametrize("more", [0, 1])
def test_a_config_map_holds_a_mebibyte(more: int) -> None:
    registry, half = Registry(), 1 << 19
    binary = base64.b64encode(b"x" * half).decode()
    content: Json = {"data": {"a": "x" * (half - 1), "b": "x" * more, "c": "x"}, "binaryData": {"d": binary}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, **content}
    if not more:
        registry.create_object(made)
        return
    with pytest.raises(StatusError) as caught:
        registry.create_object(made)
    assert causes_of(caught.value) == {"[]"}


@pytest.mark.parametrize("claims", [["data"], []])
def test_containers_of_a_stateful_set_mount_the_claims_that_its_pods_get(claims: list[str]) -> None:
    """No volume of the template has their names: most public StatefulSets look so."""
    container = {"name": "a", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    spec = {
        "serviceName": "s",
        "selector": {"matchLabels": {"app": "s"}},
        "template": {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": name}, "spec": {}} for name in claims],
    }
    registry, made = (
        Registry(),
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec},
    )
    if claims:
        registry.create_object(made)
        return
    with pytest.raises(StatusError) as caught:
        registry.create_object(made)
    assert causes_of(caught.value) == {"spec.template.spec.containers[0].volumeMounts[0].name"}
