"""Pod sets: requests, equality with a Workload, and what goes into templates."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from multikueue.core.model.names import Json
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kinds.injecting import Injection, TemplateConflictError, inject, restore
from multikueue.sandbox.kueue.scheduling.podsets import equivalent, injections, request
from tests.sandbox.kueue.objects import flavor, job


def container(**requests: str) -> Json:
    return {"name": "c", "resources": {"requests": requests}}


def amounts(spec: Json, count: int = 1) -> dict[str, int]:
    return dict(request({"name": "main", "count": count, "template": {"spec": spec}}).amounts)


def test_a_pod_set_asks_for_all_its_pods() -> None:
    assert amounts({"containers": [container(cpu="500m"), container(cpu="1")]}, count=3) == {
        "cpu": 4_500,
        "pods": 3_000,
    }


def test_a_limit_counts_where_no_request_is_given() -> None:
    spec = {"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1"}, "requests": {"memory": "2"}}}]}
    assert amounts(spec) == {"cpu": 2_000, "memory": 2_000, "pods": 1_000}


def test_an_init_container_counts_if_it_needs_more_and_a_sidecar_always() -> None:
    sidecar = {**container(cpu="1"), "restartPolicy": "Always"}
    assert amounts({"containers": [container(cpu="1")], "initContainers": [container(cpu="3")]})["cpu"] == 3_000
    assert amounts({"containers": [container(cpu="1")], "initContainers": [sidecar]})["cpu"] == 2_000


def test_overhead_is_added() -> None:
    assert amounts({"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}})["cpu"] == 1_250


def test_what_is_not_a_quantity_is_a_resource_nobody_has() -> None:
    """The user reads "resource cpu=many unavailable in ClusterQueue"; everybody else is served."""
    assert amounts({"containers": [container(cpu="many")]}) == {"cpu=many": 1_000, "pods": 1_000}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": 3}, 3),
        ({"parallelism": 2, "completions": 5}, 2),
        ({}, 1),
    ],
)
def test_a_job_counts_the_pods_that_run_at_once(spec: Any, count: int) -> None:
    assert BATCH_JOB.pods.read(job(**spec))[0]["count"] == count


def test_a_jobs_pod_set_lacks_the_labels_the_api_server_generates() -> None:
    batch_job = job()
    batch_job["spec"]["template"]["metadata"] = {
        "labels": {"controller-uid": "u", "batch.kubernetes.io/job-name": "j1"}
    }
    before = copy.deepcopy(batch_job)
    labels = BATCH_JOB.pods.read(batch_job)[0]["template"]["metadata"]["labels"]
    assert labels == {"batch.kubernetes.io/job-name": "j1"}
    assert batch_job == before, "the job itself is left alone"


def test_only_what_matters_for_quota_makes_a_job_another() -> None:
    """A worker may add labels, selectors or volumes; other containers or counts make the Workload worthless."""
    sets = BATCH_JOB.pods.read(job())
    other = copy.deepcopy(sets)
    other[0]["template"]["spec"].update(nodeSelector={"a": "b"}, volumes=[{"name": "v"}])
    other[0]["template"]["metadata"] = {"labels": {"more": "labels"}}
    assert equivalent(other, sets, tolerations=True)
    assert not equivalent(BATCH_JOB.pods.read(job(cpu="2")), sets, tolerations=False)
    assert not equivalent(BATCH_JOB.pods.read(job(parallelism=2)), sets, tolerations=False)
    assert not equivalent([], sets, tolerations=False)


def test_tolerations_matter_until_admission() -> None:
    sets = BATCH_JOB.pods.read(job())
    other = copy.deepcopy(sets)
    other[0]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert equivalent(other, sets, tolerations=False)
    assert not equivalent(other, sets, tolerations=True)


def admitted(labels: Json | None = None, **check: Any) -> Json:
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "1"}}
    return {
        "metadata": {"name": "job-j1-x", "labels": labels or {}},
        "spec": {"queueName": "lq"},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": [assignment]},
            "admissionChecks": [{"name": "prov", "state": "Ready", **check}] if check else [],
        },
    }


SPOT = flavor("spot", nodeLabels={"pool": "spot"}, tolerations=[{"key": "spot", "operator": "Exists"}])


def test_an_admission_puts_queue_names_and_the_flavors_place_into_the_template() -> None:
    template: Json = {"spec": {}}
    inject(template, injections(admitted(), {"spot": SPOT})["main"])
    assert template["metadata"]["labels"] == {
        "kueue.x-k8s.io/podset": "main",
        "kueue.x-k8s.io/local-queue-name": "lq",
        "kueue.x-k8s.io/cluster-queue-name": "cq",
    }
    assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/workload": "job-j1-x"}
    assert template["spec"]["nodeSelector"] == {"pool": "spot"}
    assert template["spec"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]


def test_pods_of_a_workload_copy_are_marked() -> None:
    """Only a Workload that MultiKueue brought has the origin label."""
    copied = admitted(labels={"kueue.x-k8s.io/multikueue-origin": "multikueue"})
    assert injections(copied, {})["main"].labels["kueue.x-k8s.io/multikueue-worker-workload-pod"] == "true"


def test_a_check_adds_to_the_template() -> None:
    update = {"name": "main", "labels": {"a": "b"}, "nodeSelector": {"zone": "z"}}
    injection = injections(admitted(podSetUpdates=[update]), {"spot": SPOT})["main"]
    assert injection.labels["a"] == "b"
    assert injection.node_selector == {"pool": "spot", "zone": "z"}


def test_a_check_that_contradicts_the_flavor_is_refused() -> None:
    update = {"name": "main", "nodeSelector": {"pool": "other"}}
    with pytest.raises(TemplateConflictError, match=r'in admission check "prov": .* conflict for key=pool'):
        injections(admitted(podSetUpdates=[update]), {"spot": SPOT})


def test_a_template_that_says_otherwise_is_refused() -> None:
    """A copy made from a started job carries the manager's queue name: it can never start on the worker."""
    template: Json = {"metadata": {"labels": {"kueue.x-k8s.io/cluster-queue-name": "manager-cq"}}}
    message = (
        "invalid admission check PodSetUpdate: conflict for labels: "
        "conflict for key=kueue.x-k8s.io/cluster-queue-name, value1=manager-cq, value2=cq"
    )
    with pytest.raises(TemplateConflictError) as caught:
        inject(template, Injection(labels={"kueue.x-k8s.io/cluster-queue-name": "cq"}))
    assert str(caught.value) == message


def test_restoring_undoes_an_injection_and_keeps_generated_labels() -> None:
    original: Json = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}
    template = copy.deepcopy(original)
    template["metadata"]["labels"]["controller-uid"] = "u"
    inject(template, injections(admitted(), {"spot": SPOT})["main"])
    restore(template, original, ["controller-uid"])
    assert template == {"metadata": {"labels": {"app": "x", "controller-uid": "u"}}, "spec": {"containers": []}}


def test_a_sidecar_counts_beside_the_init_containers_after_it() -> None:
    """As Kubernetes' scheduler counts them: 2 and 3, before 1 and 2."""
    sidecar = {**container(cpu="2"), "restartPolicy": "Always"}
    spec = {"containers": [container(cpu="1")], "initContainers": [sidecar, container(cpu="3")]}
    assert amounts(spec)["cpu"] == 5_000
    spec["initContainers"].reverse()
    assert amounts(spec)["cpu"] == 3_000


def test_resources_of_a_whole_pod_count_in_place_of_its_containers() -> None:
    """Its limits only where nothing else is said."""
    spec = {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "5"}, "limits": {"memory": "2"}}}
    assert amounts(spec) == {"cpu": 5_000, "memory": 2_000, "pods": 1_000}
    assert amounts({"containers": [container(cpu="1")], "resources": {"limits": {"cpu": "5"}}})["cpu"] == 1_000
