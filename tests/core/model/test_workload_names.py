"""Kueue's names for Workloads, as its own code makes them."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import GVK
from multikueue.core.model.workload_names import is_latest_slice, workload_name
from tests.core.building import job


@pytest.mark.parametrize(
    ("gvk", "name", "owner", "extra", "expected"),
    [
        (JOB.gvk, "job1", "uid1", "", "job-job1-c4e09"),
        (JOB.gvk, "job1", "uid1", "3", "job-job1-73e29"),
        (GVK("", "v1", "Pod"), "pod1", "uid1", "", "pod-pod1-bcb3a"),
        (GVK("ray.io", "v1", "RayCluster"), "rc1", "uid1", "2_5", "raycluster-rc1-0c392"),
        (GVK("apps", "v1", "StatefulSet"), "sts1", "uid1", "", "statefulset-sts1-740e5"),
        (
            GVK("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
            "lws1-0",
            "manager-uid-123",
            "",
            "leaderworkerset-lws1-0-3d2bb",
        ),
    ],
)
def test_the_names_are_those_of_kueues_code(gvk: GVK, name: str, owner: str, extra: str, expected: str) -> None:
    """Vectors made by the Go code (adapters.md §0.8)."""
    assert workload_name(gvk, name, owner, extra) == expected


def test_long_names_are_cut_to_the_limit() -> None:
    """The hash stays whole."""
    assert len(workload_name(JOB.gvk, "j" * 253, "uid")) == len(workload_name(JOB.gvk, "j" * 300, "uid")) == 253
    assert len(workload_name(JOB.gvk, "j" * 300, "uid", limit=63)) == 63


def test_a_slice_is_the_latest_while_the_job_has_not_changed_since() -> None:
    """In the long form or the short one: which of the two Kueue uses is a feature gate there."""
    local = job(generation=4) | {"metadata": job(generation=4)["metadata"] | {"name": "j" * 100}}
    for limit in (253, 63):
        assert is_latest_slice(JOB.gvk, local, workload_name(JOB.gvk, "j" * 100, "uid-of-job", "4", limit=limit))
    assert not is_latest_slice(JOB.gvk, local, workload_name(JOB.gvk, "j" * 100, "uid-of-job", "3"))
