"""What is stopped on a worker that returns, before anything else is read there: only what a mark proves to be over."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from multikueue.adapters import SafeAdapter
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB
from multikueue.core.model.kinds import POD as PODS
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, LAST_WORKER_ANNOTATION, PLACEMENTS_ANNOTATION
from multikueue.core.model.marks import Marks, Whose
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.workloads import attempt
from multikueue.core.returns import (
    BEFORE_LOSS,
    has_left,
    may_be_over,
    stop_over,
    whose_there,
)
from tests.core.building import ADAPTER, CHECK, UNMARKED, condition, copy_of, job_copy_of, marked_on, workload
from tests.core.door import NOW, SETTINGS, ApplyStatus, DeleteJob, JobCopy, those
from tests.core.pods import BROKEN, DONE, PENDING, POD, RUNNING, copied, group, pod

W1, W2 = ClusterName("w1"), ClusterName("w2")
BOTH = {"w1", "w2"}
MARKS = Marks(SETTINGS.mark_key)
BEFORE = workload(cluster="w1")
"""The Workload as it was when w1 had it."""
MOVED = workload(cluster="w2", evictions=1)
JOBS = SafeAdapter(ADAPTER)
ENDED = {"active": 0, "conditions": [condition("Complete")]}


def on(worker: str, copied: Json) -> Json:
    return marked_on(worker, copied)


def there(local: Json | None, copy: Json | None, *jobs: Json) -> list[str]:
    """What is done on w1, in words."""
    pairs = [(JOBS, JobCopy(JOB, job)) for job in jobs]
    effects = stop_over(W1, local, copy, pairs, marks=MARKS, workers=BOTH, now=NOW)
    return ["stop" if isinstance(effect, ApplyStatus) else f"delete {effect.uid}" for effect in effects]


def left(**facts: Any) -> tuple[Json, Json]:
    """The Workload copy that w1 has admitted before, and the job beside it, which runs."""
    copied = copy_of(BEFORE, admitted=True, **facts)
    return on("w1", copied), on("w1", job_copy_of(BEFORE))


def test_what_runs_of_an_earlier_attempt_is_stopped_by_its_kueue_and_deleted() -> None:
    assert there(MOVED, *left()) == ["stop", "delete uid-job-copy"]
    assert there(None, *left()) == ["stop", "delete uid-job-copy"]
    assert there(workload(deleting=True), *left()) == ["stop", "delete uid-job-copy"]
    assert there(workload(quota=False, evictions=1, reserved_at="later"), *left()) == ["stop", "delete uid-job-copy"]


def test_a_job_alone_is_deleted() -> None:
    assert there(MOVED, None, left()[1]) == ["delete uid-job-copy"]


def test_what_is_of_the_present_attempt_is_left_alone_under_any_name_of_its_worker() -> None:
    """Two MultiKueueClusters may lead to one cluster: w1 shows what was made in the name of w2."""
    for name in BOTH:
        copy, job = on(name, copy_of(MOVED, admitted=True)), on(name, job_copy_of(MOVED))
        assert there(MOVED, copy, job) == []
        assert there(MOVED, left()[0], job) == []


def test_what_is_being_evicted_is_stopped_and_not_deleted() -> None:
    """Its last status is to be synced. Kueue counts an eviction as it begins, and may count several."""
    for evictions in (0, 1, 2):
        assert there(workload(cluster="w1", evicted="Preempted", evictions=evictions), *left()) == ["stop"]


def test_what_nothing_proves_is_left_alone() -> None:
    plain, foreign = on("w1", job_copy_of(BEFORE, attempt=UNMARKED)), on("w1", job_copy_of(BEFORE))
    foreign["metadata"]["annotations"][ATTEMPT_ANNOTATION] = "01234567." + 32 * "0"
    assert there(MOVED, None, plain) == there(MOVED, None, foreign) == there(None, None, foreign) == []


def test_what_has_ended_there_is_left_to_the_plan() -> None:
    """What has run is not run again: its end is looked at with everything else."""
    copy, _ = left()
    assert there(MOVED, copy, on("w1", job_copy_of(BEFORE, status=ENDED))) == []
    assert there(MOVED, on("w1", copy_of(BEFORE, admitted=True, finished="Succeeded")), left()[1]) == []


def test_what_goes_already_and_what_another_object_has_made_is_not_deleted() -> None:
    copy, job = left()
    assert there(MOVED, copy, on("w1", job_copy_of(BEFORE, deleting=True))) == ["stop"]
    child = {**job, "metadata": {**job["metadata"], "ownerReferences": [{"kind": "CronJob", "controller": True}]}}
    assert there(MOVED, None, child) == []


def test_a_copy_behind_which_no_job_has_been_is_not_asked_to_stop() -> None:
    assert there(MOVED, on("w1", copy_of(BEFORE, admitted=True))) == []


class TestGroups:
    """The pods of a group. Kueue frees them when their Workload copy is deleted, which the plan does."""

    BEFORE = group("a", "b", cluster="w1")
    MOVED = group("a", "b", cluster="w2", evictions=1)

    def there(self, local: Json | None, *statuses: Json, alone: bool = False) -> list[str]:
        copy = None if alone else on("w1", copy_of(self.BEFORE, admitted=True, owned=True))
        names = "ab"[: len(statuses)]
        pods = [on("w1", copied(self.BEFORE, pod(name), status)) for name, status in zip(names, statuses, strict=True)]
        pairs = [(SafeAdapter(POD), JobCopy(PODS, pod)) for pod in pods]
        effects = stop_over(W1, local, copy, pairs, marks=MARKS, workers=BOTH, now=NOW)
        steps = ["stop" if isinstance(effect, ApplyStatus) else f"delete {effect.uid}" for effect in effects]
        assert all(effect.propagation == "Background" for effect in those(DeleteJob, effects))
        return steps

    @pytest.mark.parametrize("local", [MOVED, None], ids=["moved", "gone"])
    def test_it_is_stopped_and_its_pods_are_deleted(self, local: Json | None) -> None:
        assert self.there(local, RUNNING, PENDING) == ["stop", "delete copy-a", "delete copy-b"]
        assert self.there(local, RUNNING, PENDING, alone=True) == ["delete copy-a", "delete copy-b"]

    @pytest.mark.parametrize("status", [DONE, BROKEN], ids=["succeeded", "failed"])
    def test_one_pod_that_has_ended_leaves_none_running(self, status: Json) -> None:
        """It is no end of the group: its other pods ran on until everything there had been read."""
        assert self.there(self.MOVED, status, RUNNING) == ["stop", "delete copy-b"]

    def test_one_that_has_ended_is_left_to_the_plan(self) -> None:
        assert self.there(self.MOVED, DONE, DONE) == []

    def test_one_that_should_be_there_is_left_alone(self) -> None:
        assert self.there(self.BEFORE, RUNNING, RUNNING) == []


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (None, True),
        (MOVED, True),
        (workload(quota=False), True),
        (workload(), True),
        (workload(finished="Succeeded", cluster="w2"), True),
        (workload(deleting=True, cluster="w1"), True),
        (workload(evicted="Preempted", cluster="w1"), True),
        (workload(cluster="w1"), False),
        (workload(finished="Succeeded", cluster="w1"), False),
        (workload(check="Ready"), False),
        (workload(elastic=True, cluster="w2"), False),
        (workload(index="0", cluster="w2"), False),
    ],
    ids=lambda value: "",
)
def test_who_may_have_something_on_a_lost_worker_that_a_mark_alone_tells(local: Json | None, expected: bool) -> None:
    """Not who has it there, what another slice or part may share, nor what is recorded by its copies."""
    assert may_be_over(local, CHECK, W1) is expected


def test_marks_of_each_attempt() -> None:
    job = on("w1", job_copy_of(BEFORE))
    assert whose_there(job, BEFORE, MARKS, BOTH) is Whose.THIS
    assert whose_there(job, MOVED, MARKS, BOTH) is Whose.EARLIER
    assert whose_there(job, MOVED, Marks(b"another"), BOTH) is Whose.UNPROVEN
    assert attempt(BEFORE) != attempt(MOVED)


def test_what_a_worker_that_is_gone_has_is_stopped_nowhere() -> None:
    """The one that returns leads to the same cluster. Its MultiKueueCluster was deleted while the job ran."""
    local = workload(cluster="gone")
    assert there(local, on("gone", copy_of(local, admitted=True)), on("gone", job_copy_of(local))) == []
    evicted = workload(cluster="w2", evictions=1)
    assert there(evicted, on("gone", copy_of(local, admitted=True)), on("gone", job_copy_of(local)))[0] == "stop"


def test_a_workload_says_where_it_was() -> None:
    """Its notes are old after a while: only a placement that ended in this loss, or just before it, counts."""

    def noted(until: timedelta, **annotations: str) -> Json:
        entry = {"worker": "w1", "since": timestamp(NOW - timedelta(hours=9)), "until": timestamp(NOW + until)}
        local = workload(cluster="w2")
        local["metadata"]["annotations"] = {PLACEMENTS_ANNOTATION: json.dumps([entry]), **annotations}
        return local

    assert has_left(noted(timedelta(seconds=30)), W1, NOW)
    assert has_left(noted(-BEFORE_LOSS), W1, NOW)
    assert not has_left(noted(timedelta(hours=-1)), W1, NOW)
    assert has_left(noted(timedelta(hours=-1)), W1, None)
    assert not has_left(noted(timedelta(seconds=30)), W2, NOW)
    assert has_left(noted(timedelta(hours=-1), **{LAST_WORKER_ANNOTATION: "w1"}), W1, NOW)
