"""Copies that wait for admission: kept in line with the manager's Workload, or made anew."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import Json
from tests.core.building import EARLIER, copy_of, job_copy_of, snapshot, worker, workload
from tests.core.door import PatchWorkload, decide, sole
from tests.core.wording import words

OFFERED = workload(nominated=("w1", "w2"))


class TestMending:
    def test_what_a_worker_adds_is_no_drift(self) -> None:
        """A worker's defaults and webhooks do not lead to deleting and creating for ever (item 25)."""
        defaulted = {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"nodeSelector": {"x": "y"}}}}]}
        seen = snapshot(OFFERED, worker("w1", copy_of(OFFERED, spec=defaulted)), worker("w2", copy_of(OFFERED)))
        assert decide(seen).effects == ()

    def test_a_changed_workload_gets_a_new_copy(self) -> None:
        """The copy that was made from the old spec goes; the new one is made when it is gone."""
        before = workload(nominated=("w1",), spec={"podSets": [{"name": "main", "count": 2}]})
        seen = snapshot(workload(nominated=("w1",)), worker("w1", copy_of(before)))
        assert words(seen) == ["delete workload on w1"]

    def test_a_new_priority_is_patched(self) -> None:
        """The copy keeps its place in the worker's queue."""
        urgent = workload(nominated=("w1",), spec={"priority": 100})
        patch = sole(PatchWorkload, decide(snapshot(urgent, worker("w1", copy_of(workload())))).effects)
        assert patch.patch == {"metadata": {"uid": "uid-copy"}, "spec": {"priority": 100}}

    @pytest.mark.parametrize("reason", ["OutOfSync", "OwnerNotFound"])
    def test_a_copy_that_can_never_run_is_replaced(self, reason: str) -> None:
        """A copy its worker gave up does not hold the Workload for ever (item 19)."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, finished=reason), job_copy_of(local, suspended=True)))
        assert words(seen) == ["delete job on w1"]

    def test_a_copy_deactivated_on_its_worker_is_replaced(self) -> None:
        """An inactive Workload is never admitted: left alone, it would hold the manager's quota for ever."""
        local = workload(nominated=("w1",))
        seen = snapshot(local, worker("w1", copy_of(local, evicted=True, spec={"active": False})))
        assert words(seen) == ["delete workload on w1"]

    def test_a_job_whose_workload_was_deleted_on_the_worker_is_removed(self) -> None:
        """It can never run without its Workload, and it is in the way of a new offer."""
        local = workload(nominated=("w1",))
        assert words(snapshot(local, worker("w1", None, job_copy_of(local)))) == ["delete job on w1"]

    def test_nothing_is_deleted_twice_when_a_drifted_copy_has_a_stale_job(self) -> None:
        """Two reasons to delete one object are one delete."""
        local = workload(nominated=("w1",))
        drifted = copy_of(local, spec={"queueName": "other"})
        seen = snapshot(local, worker("w1", drifted, job_copy_of(local, attempt=EARLIER)))
        assert sorted(words(seen))[:1] == ["delete job on w1"]
        assert " ".join(words(seen)).count("delete") == 1

    def test_a_copy_that_is_being_deleted_is_waited_for(self) -> None:
        """Neither deleted twice nor created over."""
        local = workload(nominated=("w1",))
        going = copy_of(local, deleting=True, spec={"queueName": "other"})
        assert decide(snapshot(local, worker("w1", going))).effects == ()


RECORDED: Json = {"mode": "Fast"}
NEW_DEFAULT: Json = {
    **RECORDED,
    "podSets": [{"name": "main", "count": 1, "placement": "Spread"}],
    "retries": 3,
}
"""What a new version of the CRD shows of the same Workload."""


class TestRecorded:
    @pytest.mark.parametrize("upgraded", ["manager", "worker"])
    def test_a_new_default_of_either_crd_takes_no_running_job(self, upgraded: str) -> None:
        """An upgrade of the manager's Kueue sent back all that ran."""
        before, after = (workload(cluster="w1", check="Ready", spec=spec) for spec in (RECORDED, NEW_DEFAULT))
        local, seen_there = (after, RECORDED) if upgraded == "manager" else (before, NEW_DEFAULT)
        remote = copy_of(before, admitted=True, owned=True, spec=seen_there)
        assert _sent_back(local, remote) == []

    @pytest.mark.parametrize(
        "spec",
        [{"queueName": "other"}, {"podSets": [{"name": "main", "count": 2}]}, {"mode": "Slow"}],
        ids=["queue", "count", "a field of both"],
    )
    def test_what_both_sides_have_and_differs_sends_it_back(self, spec: Json) -> None:
        made_from = workload(cluster="w1", check="Ready", spec={"queueName": "queue", **RECORDED})
        local = workload(cluster="w1", check="Ready", spec={"queueName": "queue", **RECORDED, **spec})
        assert _sent_back(local, copy_of(made_from, admitted=True, owned=True)) != []


def _sent_back(local: Json, remote: Json) -> list[str]:
    seen = snapshot(local, worker("w1", remote, job_copy_of(local)))
    return [word for word in words(seen) if word.startswith("retry")]
