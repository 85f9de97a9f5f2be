"""Reading a Workload: its owner, its attempt, its checks.

Kueue's names for Workloads, as its own code makes them.
"""

from __future__ import annotations

import itertools

import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import JOB_OWNER_GVK_ANNOTATION, JOB_OWNER_NAME_ANNOTATION
from multikueue.core.model.names import GVK, Json
from multikueue.core.model.workload_names import is_latest_slice, workload_name
from multikueue.core.model.workloads import (
    CheckState,
    Owner,
    attempt,
    check_state,
    cluster_queue,
    finish_reason,
    is_made_for,
    other_checks_ready,
    owner,
)
from tests.core.building import CHECK, job, workload
from tests.core.recorded import recorded

BATCH_JOB = Owner(GVK("batch", "v1", "Job"), "train")


def reference(name: str, *, controller: bool) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "controller": controller}


class TestOwner:
    def test_the_controller_is_the_job(self) -> None:
        assert owner(workload()) == BATCH_JOB

    def test_a_pod_group_has_owners_but_no_controller(self) -> None:
        """The first stands for the group."""
        local = workload(owner=None)
        local["metadata"]["ownerReferences"] = [reference("a", controller=False), reference("b", controller=False)]
        assert owner(local) == Owner(GVK("", "v1", "Pod"), "a")
        local["metadata"]["ownerReferences"].append(reference("c", controller=True))
        assert owner(local) == Owner(GVK("", "v1", "Pod"), "c")

    def test_another_job_of_the_same_name_is_not_the_owner(self) -> None:
        """The Workload of the one before lingers for a moment. One that notes no UID goes by the name."""
        assert is_made_for(workload(), BATCH_JOB, job())
        assert not is_made_for(workload(), BATCH_JOB, {"metadata": {"name": "train", "uid": "uid-of-the-next"}})
        local = workload()
        local["metadata"]["ownerReferences"] = []
        assert is_made_for(local, BATCH_JOB, job())

    def test_the_owner_annotations_come_first(self) -> None:
        """StatefulSets: the Workload's owner reference leads to a pod."""
        local = workload()
        noted = {JOB_OWNER_GVK_ANNOTATION: "apps/v1, Kind=StatefulSet", JOB_OWNER_NAME_ANNOTATION: "db"}
        local["metadata"]["annotations"] = noted
        assert owner(local) == Owner(GVK("apps", "v1", "StatefulSet"), "db")
        local["metadata"]["annotations"] = {**noted, JOB_OWNER_NAME_ANNOTATION: ""}
        assert owner(local) == BATCH_JOB
        local["metadata"]["annotations"] = {**noted, JOB_OWNER_GVK_ANNOTATION: "nonsense"}
        assert owner(local) == BATCH_JOB

    def test_a_workload_may_have_none(self) -> None:
        assert owner(workload(owner=None)) is None


class TestAttempt:
    def test_every_reservation_of_quota_is_a_new_attempt(self) -> None:
        """Also where nobody saw the state in between: the second counts what the first may have missed."""
        seen = [
            workload(),
            workload(evictions=1),
            workload(evictions=2),
            workload(reserved_at="2026-11-21T11:45:00Z"),
            workload(evictions=1, reserved_at="2026-11-21T11:45:00Z"),
        ]
        assert all(attempt(either) != attempt(other) for either, other in itertools.combinations(seen, 2))

    def test_it_stays_while_the_quota_is_held(self) -> None:
        """Nomination, admission and other checks are steps of one attempt."""
        steps = [workload(nominated=("w1",)), workload(cluster="w1", check="Ready", other_checks={"a": "Ready"})]
        assert {attempt(step) for step in steps} == {attempt(workload())}

    def test_another_workload_of_the_same_name_is_another_attempt(self) -> None:
        """Deleted and made again while we were down."""
        again = workload()
        again["metadata"]["uid"] = "another"
        assert attempt(again) != attempt(workload())

    def test_in_a_real_run_it_changes_with_the_eviction_only(self) -> None:
        """Steps 01 to 04 are one attempt, 05 after `Retry` is the next."""
        runs = {
            (example.step[:2], example.object["metadata"]["name"]): attempt(example.object)
            for example in recorded("workloads", "manager")
        }
        first = {made_for for (step, name), made_for in runs.items() if step <= "04" and name.startswith("job-j1")}
        after = {made_for for (step, name), made_for in runs.items() if step == "05" and name.startswith("job-j1")}
        assert len(first) == len(after) == bool(runs)
        assert not first & after


class TestChecks:
    @pytest.mark.parametrize("state", list(CheckState))
    def test_states_are_read(self, state: CheckState) -> None:
        assert check_state(workload(check=state), CHECK) is state

    def test_a_check_without_state_is_pending(self) -> None:
        """Kueue adds the entry before it fills it in."""
        local = workload()
        del local["status"]["admissionChecks"][0]["state"]
        assert check_state(local, CHECK) is CheckState.PENDING
        assert check_state(workload(check=None), CHECK) is CheckState.PENDING

    def test_all_the_others_must_be_ready(self) -> None:
        assert other_checks_ready(workload(), CHECK)
        assert other_checks_ready(workload(other_checks={"a": "Ready", "b": "Ready"}), CHECK)
        assert not other_checks_ready(workload(other_checks={"a": "Ready", "b": "Pending"}), CHECK)


def test_what_is_not_there_reads_as_empty() -> None:
    assert cluster_queue(workload(quota=False)) == finish_reason(workload()) == ""
    assert finish_reason(workload(finished="Failed")) == "Failed"


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
