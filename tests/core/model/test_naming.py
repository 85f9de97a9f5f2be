"""Workloads are called what Kueue calls them."""

from __future__ import annotations

import pytest

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.names import GVK
from multikueue.core.model.workload_names import workload_name

PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"


@pytest.mark.parametrize(
    ("gvk", "name", "uid", "extra", "expected"),
    [
        (GVK("batch", "v1", "Job"), "job1", "uid1", "", "job-job1-c4e09"),
        (GVK("batch", "v1", "Job"), "job1", "uid1", "3", "job-job1-73e29"),
        (GVK("", "v1", "Pod"), "pod1", "uid1", "", "pod-pod1-bcb3a"),
        (GVK("ray.io", "v1", "RayCluster"), "rc1", "uid1", "2_5", "raycluster-rc1-0c392"),
        (
            GVK("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
            "lws1-0",
            "manager-uid-123",
            "",
            "leaderworkerset-lws1-0-3d2bb",
        ),
    ],
)
def test_names_are_those_the_go_code_gives(gvk: GVK, name: str, uid: str, extra: str, expected: str) -> None:
    assert workload_name(gvk, name, uid, extra) == expected


def test_a_long_name_is_cut_to_what_the_api_takes() -> None:
    assert len(workload_name(GVK("batch", "v1", "Job"), "x" * 253, "uid1")) == 253


def test_the_annotation_names_the_prebuilt_workload_before_the_label() -> None:
    """A worker's Kueue with its default gates reads them in this order."""
    both = {"metadata": {"labels": {PREBUILT: "old"}, "annotations": {PREBUILT: "new"}}}
    assert prebuilt_workload(both) == "new"
    assert prebuilt_workload({"metadata": {"labels": {PREBUILT: "old"}}}) == "old"
    assert prebuilt_workload({"metadata": {}}) == ""
