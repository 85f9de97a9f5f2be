"""An earlier attempt has run to its end, and only its worker knows: what has run is not run again.

A Workload can be evicted, and get quota again, before the manager's job has shown that it runs: its copy is then of an
attempt whose reservation the manager has forgotten.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import with_value, without
from tests.core.building import MARKS_OF_JOBS, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, JobCopy, Kind, Opaque, Snapshot, Syncing, Unserved, Worker, decide
from tests.core.pods import DONE, RUNNING, copied, group, place, pod, seen
from tests.core.wording import words

EARLY = timestamp(NOW - timedelta(hours=2))
BEFORE = workload(reserved_at=EARLY)
AGAIN = workload(nominated=("w1", "w2"), evictions=1)
COMPLETE: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True", "message": "All done"}]}
SHOWN = job(status=COMPLETE)
LATE = timedelta(seconds=30)
STATES = {
    "it has quota again": AGAIN,
    "it waits for quota": workload(quota=False, evicted="Preempted", evictions=1),
    "it is evicted once more": workload(evicted="Preempted", evictions=2),
    "it was deactivated": workload(quota=False, evicted="Deactivated", evictions=1, spec={"active": False}),
}


def ended(local: Json = BEFORE, *, status: Json = COMPLETE, removed: bool = False, **said: Any) -> Worker:
    """w1, where the job of `local` has ended."""
    copy = copy_of(local, **{"admitted": True, "owned": True, "finished": "Succeeded", **said})
    return worker("w1", copy, job_copy_of(local, status=status, deleting=removed))


def end_counts(there: Worker, local: Json = AGAIN, **facts: Any) -> bool:
    """Whether its end is shown; else it is removed, to be run again."""
    steps = words(snapshot(local, there, worker("w2"), **facts))
    assert ("copy job status" in steps) != ("delete workload on w1" in steps or "delete job on w1" in steps)
    return "copy job status" in steps


def in_pods(*statuses: Json, finished: str | None = "Succeeded") -> Snapshot:
    """A group of two pods that was evicted: what its copies on w1 show."""
    before, again = group("a", "b", reserved_at=EARLY), group("a", "b", nominated=("w1", "w2"), evictions=1)
    pods = [pod("a"), pod("b")]
    copies = [copied(before, pod, status) for pod, status in zip(pods, statuses, strict=False)]
    there = place("w1", copy_of(before, admitted=True, owned=True, finished=finished), *copies)
    return seen(again, pods, there, place("w2", None))


class TestItsEndCounts:
    @pytest.mark.parametrize("now", STATES)
    def test_it_is_shown_and_then_the_workload_is_finished(self, now: str) -> None:
        """It was deleted, and ran once more."""
        assert words(snapshot(STATES[now], ended(), worker("w2"))) == ["copy job status"]
        (written,) = words(snapshot(STATES[now], ended(), worker("w2"), job=SHOWN, quiet_for=LATE))
        assert written.startswith("finish Succeeded")

    def test_it_was_another_workload_of_the_same_job(self) -> None:
        """Kueue deletes a Workload that its job does not match, and makes one of the same name: it ran twice."""
        assert end_counts(ended(with_value(BEFORE, ("metadata", "uid"), "uid-former")))

    def test_it_is_not_evicted_before_that(self) -> None:
        assert words(snapshot(workload(check="Retry", evictions=1), ended(), worker("w2"))) == ["copy job status"]

    def test_what_is_offered_elsewhere_goes(self) -> None:
        beside = worker("w2", copy_of(AGAIN, admitted=True))
        assert words(snapshot(AGAIN, ended(), beside)) == ["copy job status", "delete workload on w2"]

    @pytest.mark.parametrize("gone", [True, False])
    def test_the_job_alone_tells(self, gone: bool) -> None:
        """The worker's Kueue removes Workloads that have finished, or has not seen the end yet."""
        there = attrs.evolve(ended(), copy=None) if gone else ended(finished=None)
        assert end_counts(there)

    def test_the_workload_copy_alone_tells(self) -> None:
        """The job has a TTL, and the Workload is known to have been there."""
        there = attrs.evolve(ended(), jobs=())
        before = with_value(AGAIN, ("metadata", "annotations"), {PLACEMENTS_ANNOTATION: '[{"worker":"w1"}]'})
        for again, last in ((before, None), (AGAIN, ClusterName("w1"))):
            (written,) = words(attrs.evolve(snapshot(again, there, worker("w2")), last_worker=last))
            assert written.startswith("finish Succeeded")

    def test_it_waits_until_the_jobs_are_read(self) -> None:
        """They are listed after the Workloads; one without its Workload copy would be deleted, too."""
        syncing = attrs.evolve(ended(), jobs=(), kind=Syncing())
        plan = decide(snapshot(AGAIN, syncing, worker("w2")))
        assert (plan.effects, plan.look_again) == ((), 60.0)
        unreadable = snapshot(AGAIN, attrs.evolve(syncing, kind=Opaque()), worker("w2"))
        assert decide(attrs.evolve(unreadable, last_worker=ClusterName("w1"))).look_again == 900.0

    def test_a_worker_that_comes_back_has_time_to_show_its_jobs(self) -> None:
        """However long it was away: its jobs are listed after its Workloads."""
        back = attrs.evolve(ended(), jobs=(), kind=Unserved(timedelta(hours=1)))
        seen = attrs.evolve(snapshot(AGAIN, back, worker("w2")), last_worker=ClusterName("w1"))
        assert (decide(seen).effects, decide(seen).look_again) == ((), 60.0)
        (written,) = words(attrs.evolve(seen, quiet_for=timedelta(minutes=1)))
        assert written.startswith("finish Succeeded")

    def test_a_job_that_shows_after_its_workload_copy_has_told_the_end_is_shown_before_it_goes(self) -> None:
        """The watch of the jobs was behind: the manager's job never showed how it ended."""
        over, late = workload(finished="Succeeded", evictions=1), attrs.evolve(ended(), copy=None)
        assert words(snapshot(over, late, worker("w2"))) == ["copy job status"]
        assert words(snapshot(over, late, worker("w2"), job=SHOWN)) == ["delete job on w1"]

    def test_it_is_kept_for_as_long_as_the_managers_server_forbids_what_it_shows(self) -> None:
        """A kind was forbidden on the manager for minutes, and hidden on the worker before (seed 20668)."""
        over, late = workload(finished="Succeeded", evictions=1), attrs.evolve(ended(), copy=None)
        forbidden = snapshot(over, late, worker("w2"), refused_for=timedelta(minutes=4))
        assert words(forbidden) == ["copy job status"]
        gone = attrs.evolve(forbidden, workload=None)
        assert "copy job status" not in words(gone), "its quota is waited for"

    def test_it_waits_for_the_managers_job(self) -> None:
        """Without its status a Finished Workload tells too little."""
        assert words(snapshot(AGAIN, ended(), worker("w2"), job={})) == []

    def test_pods_tell_it_together(self) -> None:
        assert "copy job status" in words(in_pods(DONE, DONE))


class TestItDoesNot:
    @pytest.mark.parametrize("reason", ["OutOfSync", "OwnerNotFound", "WorkloadSliceReplaced"])
    def test_where_the_worker_has_given_it_up(self, reason: str) -> None:
        assert not end_counts(ended(finished=reason))

    def test_where_the_job_was_deleted_unless_it_has_succeeded(self) -> None:
        """One that is deleted may have failed of that."""
        failed: Json = {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}
        gone = ended(status=failed, finished="Failed", removed=True)
        assert words(snapshot(AGAIN, gone, worker("w2"))) == ["create workload on w2", "delete workload on w1"]
        assert end_counts(ended(removed=True))

    @pytest.mark.parametrize("kind", [Opaque(), Unserved()], ids=["unreadable", "not served"])
    def test_where_it_was_only_offered_and_jobs_are_hidden(self, kind: Kind) -> None:
        """A user there could hold up everybody for as long as that lasts."""
        offered = attrs.evolve(ended(), jobs=(), kind=kind)
        steps = words(snapshot(AGAIN, offered, worker("w2", copy_of(AGAIN, admitted=True))))
        assert "delete workload on w1" in steps
        assert "delete workload on w2" not in steps

    def test_where_the_worker_was_only_offered_it(self) -> None:
        """A user there may read the mark of the offer, and make what has ended."""
        there = ended()
        bare = (without(copy.object, MARKS_OF_JOBS) for copy in there.jobs)
        assert not end_counts(attrs.evolve(there, jobs=tuple(JobCopy(JOB, job) for job in bare)))
        assert not end_counts(attrs.evolve(there, jobs=()))

    def test_where_the_job_has_no_mark(self) -> None:
        """A former version has made it."""
        there = ended()
        jobs = tuple(attrs.evolve(copy, object=without(copy.object, MARKS_OF_JOBS)) for copy in there.jobs)
        assert not end_counts(attrs.evolve(there, jobs=jobs))

    def test_where_the_mark_is_of_another_worker(self) -> None:
        w3 = worker("w3", None, job_copy_of(BEFORE, status=COMPLETE))
        assert not end_counts(attrs.evolve(w3, name=ClusterName("w1")))

    def test_where_it_was_another_job(self) -> None:
        """Of the same name, as its Workload: its user has created it anew."""
        before = with_value(BEFORE, ("metadata", "uid"), "uid-former")
        made_of = with_value(job(), ("metadata", "uid"), "uid-of-former-job")
        copy = copy_of(before, admitted=True, owned=True, finished="Succeeded")
        assert not end_counts(worker("w1", copy, job_copy_of(before, of=made_of, status=COMPLETE)))

    def test_where_not_all_pods_have_ended(self) -> None:
        assert "copy job status" not in words(in_pods(DONE, RUNNING, finished=None))

    def test_where_pods_are_gone(self) -> None:
        """They were deleted, which their Kueue takes for a failure."""
        assert "delete workload on w1" in words(in_pods(finished="Failed"))

    @pytest.mark.parametrize("stopped", ["stopping", "evicted"])
    def test_where_it_failed_after_it_was_asked_to_stop(self, stopped: str) -> None:
        """A controller may say of a job that it has stopped that it failed."""
        failed: Json = {"failed": 1, "conditions": [{"type": "Failed", "status": "True"}]}
        asked: Json = {stopped: True}
        assert end_counts(ended(status=failed, finished="Failed"))
        assert not end_counts(ended(status=failed, finished="Failed", **asked))
        assert not end_counts(ended(status=failed, finished=None, **asked))
        assert end_counts(ended(**asked))

    @pytest.mark.parametrize("stopped", ["stopping", "evicted", "deleting"])
    def test_where_the_job_is_gone_and_its_copy_was_stopped(self, stopped: str) -> None:
        asked: Json = {stopped: True}
        there = attrs.evolve(ended(**asked), jobs=())
        assert not any(word.startswith("finish") for word in words(snapshot(AGAIN, there, worker("w2"))))

    def test_where_another_worker_has_it_by_now(self) -> None:
        """It was lost for long, and is back: the job runs elsewhere, and nothing that runs is taken."""
        local = workload(cluster="w2", check="Ready", evictions=1)
        there = worker("w2", copy_of(local, admitted=True, owned=True), job_copy_of(local))
        steps = words(snapshot(local, ended(), there))
        assert {"delete job on w1", "delete workload on w1"} <= set(steps)
