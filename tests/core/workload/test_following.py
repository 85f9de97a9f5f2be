"""A Workload that a worker has: only the copy there counts, and its status is synced to the manager."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import JobKind
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.labels import ADMISSION_MANAGER, CONTROLLER_NAME
from multikueue.core.model.names import Json
from tests.core.building import (
    ADAPTER,
    EARLIER,
    JOB_NAME,
    CopyFacts,
    copy_of,
    job,
    job_copy_of,
    snapshot,
    worker,
    workload,
)
from tests.core.door import (
    NOW,
    SETTINGS,
    AnnounceWorkload,
    ApplyStatus,
    Connecting,
    Lost,
    PatchJob,
    PatchWorkload,
    Unserved,
    Worker,
    decide,
    sole,
)
from tests.core.wording import in_words, words

LOCAL = workload(cluster="w1", check="Ready")
RUNNING_JOB = job(suspended=False, status={"active": 1})
COMPLETE = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True", "message": "All done"}]}


def running(local: Json = LOCAL, **facts: Any) -> Worker:
    """w1 as it runs the job, which the manager shows already."""
    return worker("w1", copy_of(local, admitted=True), job_copy_of(local, status={"active": 1}), **facts)


class TestStickiness:
    def test_a_running_workload_costs_nothing(self) -> None:
        """The built-in controller patches and tells on every pass; here no change is no request."""
        seen = snapshot(LOCAL, running(), worker("w2"), job=RUNNING_JOB)
        decided = decide(seen)
        assert (decided.effects, decided.look_again) == ((), None)

    @pytest.mark.parametrize(
        "said",
        [
            {"admitted": True},
            {"admitted": True, "attempt": EARLIER},
            {"admitted": True, "finished": "Succeeded"},
            {"finished": "OutOfSync"},
            {"evicted": True},
        ],
        ids=["admitted", "admitted earlier", "finished", "out of sync", "evicted"],
    )
    def test_a_copy_on_another_worker_is_removed_whatever_its_status(self, said: Json) -> None:
        """A worker back from a partition neither takes, ends nor evicts the job that runs (items 16 to 19)."""
        other = worker("w2", copy_of(LOCAL, **said), job_copy_of(LOCAL, status=COMPLETE))
        for workers in ((running(), other), (other, running())):
            seen = snapshot(LOCAL, *workers, job=RUNNING_JOB)
            assert words(seen) == ["delete job on w2", "delete workload on w2"]

    def test_a_copy_on_a_lost_worker_stays_until_that_reconnects(self) -> None:
        """Nothing can be done there now, and nothing here waits for it."""
        seen = snapshot(LOCAL, running(), worker("w2", copy_of(LOCAL), reach=Lost()), job=RUNNING_JOB)
        assert decide(seen).effects == ()

    def test_a_worker_taken_from_the_config_keeps_its_job(self) -> None:
        """It is drained, and never forgotten: a second worker would run the job a second time (item 28)."""
        seen = snapshot(LOCAL, worker("w2"), running(configured=False), job=RUNNING_JOB)
        assert decide(seen).effects == ()


class TestLostWorkers:
    @pytest.mark.parametrize(
        ("minutes", "words", "look_again"),
        [(0, [], 60.0), (10, [], 300.0), (15, ["retry: Admitting remote lost"], None)],
        ids=["just now", "for 10 minutes", "for 15 minutes"],
    )
    def test_the_assignment_is_kept_until_the_timeout_and_then_retried(
        self, minutes: int, words: list[str], look_again: float | None
    ) -> None:
        """The job may well be running: it is not started elsewhere before the operator's timeout.

        A loss is told once it has lasted for a minute.
        """
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=minutes)))
        seen = snapshot(LOCAL, lost)
        decided = decide(seen)
        assert (in_words(seen, decided), decided.look_again) == (words, look_again)

    def test_the_timeout_is_the_operators(self) -> None:
        """Short for a fleet of spot clusters, long for one whose API servers are upgraded by hand."""
        lost = worker("w1", reach=Lost(NOW - timedelta(seconds=61)))
        settings = attrs.evolve(SETTINGS, worker_lost_timeout=timedelta(minutes=1))
        assert words(snapshot(LOCAL, lost), settings=settings) == ["retry: Admitting remote lost"]

    @pytest.mark.parametrize("workers", [(), (worker("w1", reach=Lost()),)], ids=["unknown", "no word yet"])
    def test_the_assignment_to_an_unknown_worker_is_kept(self, workers: tuple[Worker, ...]) -> None:
        """A manager that has just started does not evict what runs on workers it has not reached yet."""
        decided = decide(snapshot(LOCAL, *workers))
        assert (decided.effects, decided.look_again) == ((), 900.0)

    def test_copies_on_other_workers_are_removed_meanwhile(self) -> None:
        """Waiting for one worker is no reason to hold another's quota."""
        seen = snapshot(LOCAL, worker("w1", reach=Lost(NOW)), worker("w2", copy_of(LOCAL)))
        assert words(seen) == ["delete workload on w2"]

    def test_a_worker_that_stopped_serving_the_kind_is_waited_for(self) -> None:
        """While the jobs cannot be seen, a missing job proves nothing."""
        seen = snapshot(LOCAL, worker("w1", copy_of(LOCAL, admitted=True), kind=Unserved()), worker("w2"))
        assert decide(seen).effects == ()

    def test_a_loss_noted_before_the_start_does_not_count_until_the_first_answer(self) -> None:
        """The manager was off for an hour: it must not evict everything before the first connection attempt."""
        w1 = worker("w1", reach=Connecting())
        decided = decide(snapshot(LOCAL, w1, running_for=timedelta(0)))
        assert (decided.effects, decided.look_again) == ((), 60)

    @pytest.mark.parametrize(
        ("minutes", "copy", "words", "look_again"),
        [
            (14, {"admitted": True}, [], 60),
            (14, {"admitted": True, "finished": "Succeeded"}, [], 60),
            (14, None, [], 60),
            (1, {"admitted": True, "evicted": True}, ['retry: Workload evicted on worker cluster: "w1"', "tell"], None),
            (15, {"admitted": True}, ["retry: Admitting remote lost"], None),
            (15, {"admitted": True, "finished": "Succeeded"}, ["finish Succeeded"], None),
            (15, {"admitted": True, "finished": "OutOfSync"}, ["retry: Admitting remote lost"], None),
            (15, None, ["retry: Admitting remote lost"], None),
        ],
    )
    def test_a_kind_that_is_lost_is_waited_for_as_long_as_a_worker(
        self, minutes: int, copy: CopyFacts | None, words: list[str], look_again: float | None
    ) -> None:
        """Its CRD or a permission is gone. What the worker's Kueue says of the Workload is known meanwhile."""
        made = copy_of(LOCAL, **copy) if copy is not None else None
        w1 = worker("w1", made, kind=Unserved(timedelta(minutes=minutes)))
        seen = snapshot(LOCAL, w1, worker("w2"), quiet_for=timedelta(minutes=1))
        decided = decide(seen)
        assert (in_words(seen, decided), decided.look_again) == (words, look_again)

    def test_an_eviction_counts_for_kinds_that_stay_pending_too(self) -> None:
        local = workload(cluster="w1")
        made = copy_of(local, admitted=True, evicted=True)
        pods = attrs.evolve(ADAPTER, keeps_check_pending=True)
        w1 = worker("w1", made, kind=Unserved(timedelta(minutes=1)))
        seen = snapshot(local, w1, adapter=pods)
        assert words(seen) == ['retry: Workload evicted on worker cluster: "w1"', "tell"]

    def test_the_check_says_why_under_our_own_name(self) -> None:
        """One entry and nothing else, so that Kueue's part of the status stays Kueue's."""
        lost = worker("w1", reach=Lost(NOW - timedelta(hours=1)))
        write = sole(ApplyStatus, decide(snapshot(LOCAL, lost)).effects)
        assert write.field_manager == CONTROLLER_NAME
        assert set(write.object["status"]) == {"admissionChecks"}
        assert write.object["status"]["admissionChecks"] == [
            {
                "name": "mk",
                "state": "Retry",
                "message": 'Admitting remote lost, Previously: "Ready"',
                "lastTransitionTime": "2026-11-21T12:00:00Z",
            }
        ]
        assert write.object["metadata"]["resourceVersion"] == "rv-uid-local"


class TestEnds:
    def test_a_finished_job_that_is_gone_is_not_made_again(self) -> None:
        """Its TTL has removed it; it has run, and runs once (item 14)."""
        seen = snapshot(LOCAL, worker("w1", copy_of(LOCAL, admitted=True, finished="Succeeded")), job=RUNNING_JOB)
        assert words(seen) == ["finish Succeeded"]

    @pytest.mark.parametrize(
        ("ended", "reason"), [("Complete", "Succeeded"), ("Failed", "Failed")], ids=["succeeded", "failed"]
    )
    def test_a_finished_job_whose_workload_was_removed_by_retention_is_finished(self, ended: str, reason: str) -> None:
        """The worker's retention policy removed the Workload before we saw its end (item 15)."""
        status = {"conditions": [{"type": ended, "status": "True", "message": "so it ended"}]}
        seen = snapshot(LOCAL, worker("w1", None, job_copy_of(LOCAL, status=status)), job=RUNNING_JOB)
        assert words(seen) == ["copy job status"]
        shown = attrs.evolve(seen, jobs={JOB_NAME: job(status=status)}, quiet_for=timedelta(seconds=30))
        assert words(shown) == [f"finish {reason}"]
        finished = sole(ApplyStatus, decide(shown).effects)
        assert finished.object["status"]["conditions"][-1]["message"] == "so it ended"

    def test_a_running_job_whose_workload_vanished_is_retried(self) -> None:
        """The worker's Kueue stops such a job: the manager must find it a place again."""
        seen = snapshot(LOCAL, worker("w1", None, job_copy_of(LOCAL)), job=RUNNING_JOB)
        assert words(seen) == ["retry: Admitting remote no longer exists"]

    def test_an_eviction_on_the_worker_is_told(self) -> None:
        """The user sees on which cluster it was evicted, in Kueue's words, and in the event the worker's own, too."""
        seen = snapshot(LOCAL, worker("w1", copy_of(LOCAL, admitted=True, evicted=True), job_copy_of(LOCAL)))
        _, write, event = decide(seen).effects
        text = 'Workload evicted on worker cluster: "w1", resetting for re-admission. Previously: "Ready"'
        assert isinstance(write, ApplyStatus)
        assert write.field_manager == ADMISSION_MANAGER
        assert write.object["status"]["admissionChecks"][0]["message"] == text
        assert write.object["status"]["clusterName"] == "w1"
        assert event == AnnounceWorkload("Normal", f"{text}. There: Evicted Preempted")

    def test_what_was_stopped_from_here_is_not_told_as_the_workers_doing(self) -> None:
        """A user suspends the job on the manager, where Kueue starts it again."""
        stopped = copy_of(LOCAL, admitted=True, evicted=True)
        stopped["status"]["conditions"][-1]["reason"] = "DeactivatedDueToEvictedOnManagerCluster"
        (words_of_it,) = words(snapshot(LOCAL, worker("w1", stopped)))[:1]
        assert words_of_it == 'retry: Workload evicted on worker cluster: "w1", as its job was stopped here'

    def test_an_out_of_sync_copy_is_retried_with_a_warning(self) -> None:
        """Retrying in silence would look like a job that never starts for no reason."""
        seen = snapshot(LOCAL, worker("w1", copy_of(LOCAL, admitted=True, finished="OutOfSync"), job_copy_of(LOCAL)))
        _, write, event = decide(seen).effects
        text = (
            'Remote workload on worker cluster "w1" is out of sync with its user job, resetting for re-dispatch, '
            'Previously: "Ready"'
        )
        assert isinstance(write, ApplyStatus)
        assert write.object["status"]["admissionChecks"][0]["message"] == text
        assert event == AnnounceWorkload("Warning", text)

    @pytest.mark.parametrize(
        "w1",
        [
            worker("w1", copy_of(LOCAL), job_copy_of(LOCAL)),
            worker("w1", copy_of(LOCAL, admitted=True, deleting=True), job_copy_of(LOCAL)),
            worker("w1", copy_of(LOCAL, admitted=True, spec={"queueName": "other"}), job_copy_of(LOCAL)),
        ],
        ids=["no longer admitted", "being deleted", "changed"],
    )
    def test_a_copy_that_is_no_longer_what_was_admitted_is_retried(self, w1: Worker) -> None:
        """Nothing runs there any more: the manager finds it a place again."""
        assert words(snapshot(LOCAL, w1, job=RUNNING_JOB)) == ["retry: Admitting remote no longer exists"]

    def test_a_job_that_is_gone_is_retried_after_a_moment(self) -> None:
        """One that ended may be removed (its TTL) a moment before its Workload says Finished: it has run."""
        seen = snapshot(LOCAL, worker("w1", copy_of(LOCAL, admitted=True)), job=RUNNING_JOB)
        decided = decide(seen)
        assert (decided.effects, decided.look_again) == ((), 5.0)
        seen = attrs.evolve(seen, quiet_for=timedelta(seconds=5))
        assert words(seen) == ["retry: Admitting remote no longer exists"]


class TestFollowing:
    def test_a_new_priority_reaches_the_copy(self) -> None:
        """The worker's preemption sees the priority the user has set."""
        local = workload(cluster="w1", check="Ready", spec={"priority": 100})
        effect = sole(PatchWorkload, decide(snapshot(local, running(), job=RUNNING_JOB)).effects)
        assert effect.patch == {"metadata": {"uid": "uid-copy"}, "spec": {"priority": 100}}

    def test_what_a_kind_forwards_reaches_the_copy(self) -> None:
        """An elastic job is resized where it runs."""

        class Elastic(JobKind):
            def forward_patch(self, local: Json, remote: Json, stamp: Stamp) -> Json | None:
                return {"metadata": {"uid": remote["metadata"]["uid"]}, "spec": {"parallelism": 5}}

        elastic = Elastic(**attrs.asdict(ADAPTER, recurse=False))
        effect = sole(PatchJob, decide(snapshot(LOCAL, running(), job=RUNNING_JOB, adapter=elastic)).effects)
        assert effect.patch["metadata"]["uid"] == "uid-job-copy"

    @pytest.mark.parametrize("look", ["missing", "evicted"])
    def test_a_kind_that_stays_pending_is_retried_too(self, look: str) -> None:
        """Its check never says Ready, so Pending is no reason to do nothing."""
        pods = attrs.evolve(ADAPTER, keeps_check_pending=True)
        local = workload(cluster="w1", check="Pending")
        where = worker("w1") if look == "missing" else worker("w1", copy_of(local, evicted=True), job_copy_of(local))
        seen = snapshot(local, where, adapter=pods)
        assert words(seen)[-1 if look == "missing" else -2].startswith("retry: ")


class TestUnchecked:
    """Our check was taken off the queue, and Kueue took it off the Workload that runs."""

    TAKEN_OFF = workload(cluster="w1", check=None)

    def words(self, *workers: Worker, local: Json = TAKEN_OFF) -> list[str]:
        seen = snapshot(local, *workers, check=None)
        return words(seen)

    def test_the_job_runs_on_and_its_status_is_synced(self) -> None:
        assert self.words(running(self.TAKEN_OFF)) == ["copy job status"]

    def test_its_end_is_synced(self) -> None:
        made = copy_of(self.TAKEN_OFF, admitted=True, finished="Succeeded")
        assert self.words(worker("w1", made, job_copy_of(self.TAKEN_OFF, status=COMPLETE))) == ["copy job status"]
        assert words(snapshot(self.TAKEN_OFF, worker("w1", made), check=None)) == ["finish Succeeded"]

    @pytest.mark.parametrize(
        "w1",
        [
            worker("w1", reach=Lost(NOW - timedelta(hours=1))),
            worker("w1", copy_of(TAKEN_OFF, admitted=True), kind=Unserved()),
        ],
        ids=["lost", "kind not served"],
    )
    def test_nothing_else_can_be_asked_of_kueue(self, w1: Worker) -> None:
        assert self.words(w1) == []

    def test_one_whose_copies_are_gone_is_told(self) -> None:
        """It cannot be sent back, and its job says that it runs. What has ended may go just before its end shows."""
        gone = snapshot(self.TAKEN_OFF, worker("w1"), check=None, quiet_for=timedelta(minutes=1))
        assert (self.words(worker("w1")), words(gone)) == ([], ["warn"])

    def test_copies_on_other_workers_are_removed(self) -> None:
        """A worker that was lost and is back may still run an earlier attempt."""
        back = worker("w2", copy_of(self.TAKEN_OFF, attempt=EARLIER), job_copy_of(self.TAKEN_OFF, attempt=EARLIER))
        removed = ["delete job on w2"]  # the Workload copy goes once nothing runs there
        assert self.words(running(self.TAKEN_OFF), back) == ["copy job status", *removed]
        assert self.words(worker("w1", reach=Lost()), back) == removed

    def test_where_only_our_check_holds_it_back_it_runs_on_the_manager_from_now_on(self) -> None:
        """Pods: the manager's lose their gates with it."""
        pods = attrs.evolve(ADAPTER, keeps_check_pending=True)
        seen = snapshot(self.TAKEN_OFF, running(self.TAKEN_OFF), check=None, adapter=pods)
        assert words(seen) == ["stop on w1", "delete job on w1 unless it is stopped"]

    def test_evicted_it_is_stopped_as_any(self) -> None:
        """Removed at once, the manager's job would say for ever that it runs, and hold its quota."""
        evicted = workload(check=None, evicted="Preempted", evictions=1)
        assert self.words(running(self.TAKEN_OFF), local=evicted) == [
            "stop on w1",
            "delete job on w1 unless it is stopped",
        ]

    def test_what_never_was_ours_is_not_touched_when_it_is_evicted(self) -> None:
        assert self.words(worker("w1"), local=workload(check=None, evicted="Preempted")) == []
