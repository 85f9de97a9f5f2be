"""Elastic Ray clusters: their copies follow the sizes of their worker groups. RayJobs and RayServices cannot."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.adapters import JobKind
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, with_value
from multikueue.core.model.workload_names import workload_name
from multikueue.sandbox.apiserver.verbs.patching import merge_patch
from tests.adapters.kinds import NOW, STAMP, a_job, row

GROUPS = {
    "RayCluster": ("spec", "workerGroupSpecs"),
    "RayJob": ("spec", "rayClusterSpec", "workerGroupSpecs"),
    "RayService": ("spec", "rayClusterConfig", "workerGroupSpecs"),
}
fixed = pytest.mark.parametrize("name", ["RayJob", "RayService"])
CLUSTER = row("RayCluster")
OLD, NODE = "old", {"disk": "fast"}


def sized(kind: JobKind, *groups: Json, **annotations: str) -> Json:
    """An elastic one of the manager's."""
    job = with_value(a_job(kind), GROUPS[kind.resource.gvk.kind], list(groups))
    job["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true", **annotations}
    return job


def group(replicas: int | None, name: str = "small", **more: Any) -> Json:
    return {"groupName": name, **({} if replicas is None else {"replicas": replicas}), **more}


def started(job: Json, kind: JobKind, *groups: Json) -> Json:
    """Its copy for the slice before, as the worker's Kueue has started it."""
    made = kind.copy(job, Stamp("multikueue", OLD, "attempt"))
    made["metadata"] |= {"uid": "uid-of-copy", "resourceVersion": "9"}
    started = [{**group, "template": {"spec": {"nodeSelector": NODE}}} for group in groups]
    return with_value(made, GROUPS[kind.resource.gvk.kind], started)


def latest(kind: JobKind, job: Json, extra: str = "3") -> Stamp:
    """What marks the copies of the slice for the job's present size."""
    return Stamp("multikueue", workload_name(kind.resource.gvk, "mine", "uid-1", extra), "attempt")


def test_a_bigger_one_grows_and_gets_the_name_of_its_slice() -> None:
    """In one write, that holds only for the object that was read; what the worker's Kueue put there stays."""
    kind = CLUSTER
    job = sized(kind, group(3), group(1, "big", numOfHosts=2))
    remote = started(job, kind, group(1), group(1, "big"))
    patch = kind.forward_patch(job, remote, latest(kind, job))
    assert patch is not None
    assert (patch["metadata"]["uid"], patch["metadata"]["resourceVersion"]) == ("uid-of-copy", "9")
    after = merge_patch(remote, patch)
    small, big = dig(after, *GROUPS[kind.resource.gvk.kind])
    assert (small["replicas"], big["replicas"], big["numOfHosts"]) == (3, 1, 2)
    assert small["template"] == big["template"] == {"spec": {"nodeSelector": NODE}}
    assert kind.carriers_of(after) == (latest(kind, job).workload,)
    assert kind.forward_patch(job, after, latest(kind, job)) is None


@fixed
def test_a_job_or_a_service_keeps_the_size_it_was_made_with(name: str) -> None:
    """KubeRay passes no changed size on to their cluster: the quota would grow, and the pods would not."""
    kind = row(name)
    job = sized(kind, group(3))
    assert not kind.traits.resizable
    assert kind.forward_patch(job, started(job, kind, group(1)), latest(kind, job)) is None


def test_a_slice_that_has_no_quota_for_this_size_does_not_let_it_grow() -> None:
    """An older slice sees the bigger job before it knows that it has been replaced."""
    job = sized(CLUSTER, group(3))
    assert CLUSTER.forward_patch(job, started(job, CLUSTER, group(1)), Stamp("multikueue", OLD, "attempt")) is None


def test_the_generation_of_a_cluster_that_scales_itself_tells_its_slices_apart() -> None:
    """Beside its own."""
    mark = {"kueue.x-k8s.io/raycluster-generation": "5"}
    job = sized(CLUSTER, group(3), **mark)
    remote = started(job, CLUSTER, group(1))
    assert CLUSTER.forward_patch(job, remote, latest(CLUSTER, job)) is None
    assert CLUSTER.forward_patch(job, remote, latest(CLUSTER, job, "3_5")) is not None


def test_a_smaller_one_shrinks_for_the_slice_it_has() -> None:
    """Its Workload is the same, only smaller."""
    job = sized(CLUSTER, group(1))
    patch = CLUSTER.forward_patch(job, started(job, CLUSTER, group(4)), Stamp("multikueue", OLD, "attempt"))
    assert patch is not None
    assert [group["replicas"] for group in patch["spec"]["workerGroupSpecs"]] == [1]


def test_a_smaller_one_waits_for_its_workload() -> None:
    """A worker's Kueue stops a cluster that is smaller than its Workload."""
    job, before = sized(CLUSTER, group(1)), Stamp("multikueue", OLD, "attempt", {"small": 4})
    assert CLUSTER.forward_patch(job, started(job, CLUSTER, group(4)), before) is None


def test_a_group_that_says_nothing_of_its_size_has_one_pod_per_host() -> None:
    """The API's default; names are compared without their case."""
    job = sized(CLUSTER, group(None, "SMALL", numOfHosts=2))
    remote = started(job, CLUSTER, group(2, "small"))
    assert CLUSTER.forward_patch(job, remote, Stamp("multikueue", OLD, "attempt")) is None
    other = started(job, CLUSTER, group(5, "SMALL"))
    patch = CLUSTER.forward_patch(job, other, Stamp("multikueue", OLD, "attempt"))
    assert patch is not None
    (changed,) = patch["spec"]["workerGroupSpecs"]
    assert ("replicas" in changed, changed["numOfHosts"]) == (False, 2)


def test_groups_that_only_one_of_the_two_has_are_left_alone() -> None:
    """A group is not added to a running cluster."""
    job = sized(CLUSTER, group(1), group(2, "new"))
    remote = started(job, CLUSTER, group(1), group(2, "old"))
    assert CLUSTER.forward_patch(job, remote, Stamp("multikueue", OLD, "attempt")) is None


def test_a_new_slice_of_the_same_size_gives_its_name_only() -> None:
    """Its list of groups stays untouched."""
    job = sized(CLUSTER, group(1))
    patch = CLUSTER.forward_patch(job, started(job, CLUSTER, group(1)), latest(CLUSTER, job))
    assert patch is not None
    assert set(patch) == {"metadata"}


def test_one_that_is_not_elastic_keeps_its_size() -> None:
    """As Kueue's controller does: it is made once."""
    job = sized(CLUSTER, group(3))
    job["metadata"]["annotations"] = {}
    assert CLUSTER.forward_patch(job, started(job, CLUSTER, group(1)), STAMP) is None


@pytest.mark.parametrize("name", GROUPS)
def test_a_cluster_that_its_worker_would_size_is_refused_with_the_field(name: str) -> None:
    """The worker's Kueue takes a copy whose sizes its KubeRay has changed for another job: OutOfSync, a new cluster."""
    kind, path = row(name), (*GROUPS[name][:-1], "enableInTreeAutoscaling")
    job = with_value(a_job(kind), path, True)
    assert kind.refused(job).startswith(f"{'.'.join(path)} is true: ")
    assert [kind.refused(with_value(job, path, value)) for value in (False, None)] == ["", ""]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("RayCluster", ("head",)),
        ("RayJob", ("rayClusterStatus", "head")),
        ("RayService", ("activeServiceStatus", "rayClusterStatus", "head")),
    ],
)
def test_the_status_of_a_head_has_names_and_no_addresses(name: str, path: tuple[str, ...]) -> None:
    kind = row(name)
    head = {"podIP": "10.0.0.1", "serviceIP": "10.96.0.7", "podName": "head-x", "serviceName": "head-svc"}
    local, remote = a_job(kind), with_value(a_job(kind), ("status", *path), head)
    assert kind.copies.suspend is not None
    patch = kind.status_patch(with_value(local, kind.copies.suspend, False), remote, NOW)
    assert patch is not None
    assert dig(patch, "status", *path) == {"podName": "head-x", "serviceName": "head-svc"}


@pytest.mark.parametrize(("replicas", "before"), [(3, 2), (2, 2)], ids=["grows", "stays"])
def test_what_bounds_the_replicas_of_a_group_goes_with_them(replicas: int, before: int) -> None:
    """KubeRay kept to the old `maxReplicas`: the quota of a bigger cluster was held, and its pods never came."""
    job = sized(CLUSTER, group(replicas, minReplicas=1, maxReplicas=3))
    remote = started(job, CLUSTER, group(before, minReplicas=2, maxReplicas=2))
    patch = CLUSTER.forward_patch(job, remote, latest(CLUSTER, job))
    assert patch is not None
    (changed,) = patch["spec"]["workerGroupSpecs"]
    assert (changed["replicas"], changed["minReplicas"], changed["maxReplicas"]) == (replicas, 1, 3)


def test_bounds_that_only_the_copy_has_stay() -> None:
    """The worker's API server fills them in."""
    job = sized(CLUSTER, group(3))
    remote = started(job, CLUSTER, group(1, minReplicas=0, maxReplicas=2147483647))
    patch = CLUSTER.forward_patch(job, remote, latest(CLUSTER, job))
    assert patch is not None
    (changed,) = patch["spec"]["workerGroupSpecs"]
    assert (changed["replicas"], changed["maxReplicas"]) == (3, 2147483647)
