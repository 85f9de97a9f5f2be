"""The end of a job: first its status is synced to the manager, then its Workload is finished, then its copies go."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from multikueue.adapters.rules import never_finished
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import ADMISSION_MANAGER
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import clone, with_value
from tests.core.building import ADAPTER, CopyFacts, copy_of, job, job_copy_of, snapshot, worker, workload
from tests.core.door import NOW, SETTINGS, ApplyStatus, Lost, PatchJobStatus, Unserved, Worker, decide, only, sole
from tests.core.wording import in_words, words

LOCAL = workload(cluster="w1", check="Ready")
COMPLETE: Json = {
    "succeeded": 1,
    "startTime": "2026-11-21T11:00:00Z",
    "completionTime": "2026-11-21T11:59:00Z",
    "conditions": [
        {"type": kind, "status": "True", "message": "All done"} for kind in ("SuccessCriteriaMet", "Complete")
    ],
}
RUNNING_JOB = job(suspended=False, status={"active": 1})
ENDED_JOB = job(suspended=False, status=COMPLETE)


def done(*, ago: timedelta = timedelta(minutes=1), status: Json = COMPLETE) -> Worker:
    """w1 with the Workload finished and the job in `status`."""
    copy = copy_of(LOCAL, admitted=True, finished="Succeeded")
    copy["status"]["conditions"][-1]["lastTransitionTime"] = timestamp(NOW - ago)
    return worker("w1", copy, job_copy_of(LOCAL, status=status))


def test_the_jobs_status_is_synced_first() -> None:
    """Whoever waits for the Workload finds the job's result when it says Finished."""
    decided = decide(snapshot(LOCAL, done(), job=RUNNING_JOB))
    patch = sole(PatchJobStatus, decided.effects)
    assert patch.patch == {"metadata": {"resourceVersion": "rv-uid-of-job"}, "status": {"active": None, **COMPLETE}}
    assert decided.look_again == 30.0


def test_the_managers_kueue_may_finish_the_workload_itself() -> None:
    """It does so when it sees the job ended; both at once would make one of the two writes fail."""
    decided = decide(attrs.evolve(snapshot(LOCAL, done(), job=ENDED_JOB), quiet_for=timedelta(seconds=20)))
    assert (decided.effects, decided.look_again) == ((), 10.0)


def test_a_workload_that_kueue_does_not_finish_is_finished_by_us() -> None:
    """In the worker's words, as Kueue's own controller would have it."""
    seen = attrs.evolve(snapshot(LOCAL, done(), job=ENDED_JOB), quiet_for=timedelta(seconds=30))
    write = sole(ApplyStatus, decide(seen).effects)
    assert write.field_manager == ADMISSION_MANAGER
    assert write.object["status"]["conditions"][-1] == {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "Finished: Succeeded",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }


def test_a_job_whose_end_is_not_seen_yet_is_waited_for() -> None:
    """The two watches of a worker are not in step, and that of the job may be dead; without the job's last status its
    result would be lost."""
    seen = snapshot(LOCAL, done(status={"active": 1}), job=RUNNING_JOB)
    for seconds in (0, 119):
        plan = decide(attrs.evolve(seen, quiet_for=timedelta(seconds=seconds)))
        assert (plan.effects, plan.look_again) == ((), 120.0 - seconds)


def test_a_job_whose_end_never_comes_does_not_hold_its_workload_for_ever() -> None:
    """If the worker's Kueue finished the Workload for another reason, that counts after a while."""
    seen = attrs.evolve(snapshot(LOCAL, done(status={"active": 1}), job=RUNNING_JOB), quiet_for=timedelta(minutes=2))
    assert "finish Succeeded" in words(seen)


def test_a_kind_that_does_not_end_is_finished_with_its_workload() -> None:
    """A service that its worker finished does not wait for an end that never comes."""
    serving = attrs.evolve(ADAPTER, status=attrs.evolve(ADAPTER.status, finished=never_finished))
    seen = snapshot(LOCAL, done(status={"active": 1}), job=RUNNING_JOB, adapter=serving)
    assert words(seen) == ["finish Succeeded"]


class TestCleaning:
    FINISHED = workload(finished="Succeeded", cluster="w1", check="Ready")

    def test_the_copies_are_removed_once_the_end_is_synced(self) -> None:
        """The worker's quota and the job's objects are free."""
        seen = snapshot(self.FINISHED, done(), worker("w2", copy_of(LOCAL)), job=ENDED_JOB)
        assert words(seen) == ["delete job on w1", "delete workload on w1", "delete workload on w2"]

    def test_they_stay_until_the_last_status_is_synced(self) -> None:
        """Deleted before, the job's result would be gone for good."""
        seen = snapshot(self.FINISHED, done(), worker("w2", copy_of(LOCAL)), job=RUNNING_JOB)
        assert words(seen) == ["copy job status", "delete workload on w2"]

    def test_they_go_if_the_managers_server_takes_no_more_of_it(self) -> None:
        """Its definition of the kind is another one: it drops a field or fills one in, and answers that all is well."""
        seen = snapshot(self.FINISHED, done(), job=RUNNING_JOB)
        decided = decide(seen)
        effect = sole(PatchJobStatus, decided.effects)
        assert decided.look_again == 5.0
        after = attrs.evolve(seen, in_vain={effect.key.name: effect.patch})
        assert words(after) == ["delete job on w1", "delete workload on w1"]
        changed = attrs.evolve(seen, in_vain={effect.key.name: {**effect.patch, "status": {"succeeded": 2}}})
        assert words(changed) == ["copy job status"]

    def test_they_go_once_the_managers_server_has_refused_it(self) -> None:
        """Its Job has ended by an earlier attempt, say, and may not end again: copies would hold the worker's quota."""
        seen = snapshot(self.FINISHED, done(), job=RUNNING_JOB)
        patch = only(PatchJobStatus, decide(seen).effects)
        refused = attrs.evolve(seen, in_vain={patch.key.name: patch.patch})
        assert words(refused) == ["delete job on w1", "delete workload on w1"]

    def test_they_wait_for_as_long_as_it_may_not_be_written(self) -> None:
        seen = snapshot(self.FINISHED, done(), job=RUNNING_JOB, quiet_for=timedelta(minutes=10))
        assert words(seen) == ["copy job status"]

    def test_they_stay_while_the_job_cannot_be_seen(self) -> None:
        """Its kind's watch is down: its result is synced when it is up again."""
        hidden = worker("w1", copy_of(LOCAL, admitted=True, finished="Succeeded"), kind=Unserved())
        assert decide(snapshot(self.FINISHED, hidden, job=RUNNING_JOB)).effects == ()

    def test_a_job_stopped_by_hand_on_the_manager_goes_without_more(self) -> None:
        """The Workload is finished though the copy has not ended: there is no result to wait for."""
        running = worker("w1", copy_of(LOCAL, admitted=True), job_copy_of(LOCAL, status={"active": 1}))
        seen = snapshot(self.FINISHED, running, job=RUNNING_JOB)
        assert words(seen) == ["stop on w1", "delete job on w1 unless it is stopped"]

    @pytest.mark.parametrize("workers", [(), (worker("w1", reach=Lost()),)], ids=["unknown", "lost"])
    def test_a_worker_out_of_reach_does_not_delay_the_others_cleaning(self, workers: tuple[Worker, ...]) -> None:
        """The others' copies go now."""
        seen = snapshot(self.FINISHED, *workers, worker("w2", copy_of(LOCAL)), job=RUNNING_JOB)
        assert words(seen) == ["delete workload on w2"]

    def test_copies_of_a_kind_that_is_no_longer_registered_are_removed(self) -> None:
        """Copies can be deleted without the row that made them."""
        seen = snapshot(self.FINISHED, done(), adapter=None)
        assert words(seen) == ["delete job on w1"]


def ended_at(finished: Json, time: str) -> Json:
    """The Workload with another time of its end."""
    made: Json = clone(finished)
    next(entry for entry in made["status"]["conditions"] if entry["type"] == "Finished")["lastTransitionTime"] = time
    return made


class TestRetention:
    """`retention.finished`: the winner's copies stay for a while."""

    HOUR = attrs.evolve(SETTINGS, finished_retention=timedelta(hours=1))

    def decided(
        self, *workers: Worker, after: timedelta = timedelta(0), of: Json = TestCleaning.FINISHED
    ) -> tuple[list[str], float | None]:
        """What is done so long after the end, and when it is looked at again."""
        seen = snapshot(ended_at(of, timestamp(NOW - after)), *workers, job=ENDED_JOB)
        decided = decide(seen, settings=self.HOUR)
        return in_words(seen, decided), decided.look_again

    def test_the_winners_copies_stay_and_the_others_go(self) -> None:
        words, again = self.decided(done(), worker("w2", copy_of(LOCAL)), after=timedelta(minutes=10))
        assert (words, again) == (["delete workload on w2"], 3000.0)

    def test_they_stay_where_a_name_shows_them_of_which_nobody_knows_the_cluster(self) -> None:
        first, again = done(), attrs.evolve(done(), name=ClusterName("again"), identified=False)
        assert self.decided(first, again)[0] == []
        other = attrs.evolve(again, identified=True)
        assert self.decided(first, other)[0] == ["delete job on again", "delete workload on again"]

    def test_then_they_go(self) -> None:
        gone = (["delete job on w1", "delete workload on w1"], None)
        assert self.decided(done(), after=timedelta(hours=1)) == gone
        assert self.decided(done(), after=timedelta(hours=1, seconds=-1)) == ([], 1.0)

    def test_an_end_in_the_last_year_that_there_is_breaks_nothing(self) -> None:
        seen = snapshot(ended_at(TestCleaning.FINISHED, "9999-12-31T23:59:59Z"), done(), job=ENDED_JOB)
        assert decide(seen, settings=self.HOUR).effects == ()

    @pytest.mark.parametrize(("finished", "seconds"), [(None, 5), ("Succeeded", 120)], ids=["nowhere", "not yet"])
    def test_an_end_that_does_not_show_there_is_not_waited_for_long(self, finished: str | None, seconds: int) -> None:
        """A watch is behind; or somebody has settled it on the manager: kept, it would run on and hold quota, for two
        minutes in seed 33644."""
        copy = copy_of(LOCAL, admitted=True, finished=finished)
        running = worker("w1", copy, job_copy_of(LOCAL, status={"active": 1}))
        assert self.decided(running, after=timedelta(seconds=seconds - 1)) == ([], 1.0)
        later = self.decided(running, after=timedelta(seconds=seconds))
        stopped = ["stop on w1", "delete job on w1 unless it is stopped"]
        assert later[0] == (["delete job on w1"] if finished else stopped)

    @pytest.mark.parametrize("reason", ["Succeeded", "Failed"])
    @pytest.mark.parametrize("copy", [{"admitted": True}, {"admitted": True, "finished": "Succeeded"}, None])
    def test_whichever_kueue_has_finished_its_workload_first(self, reason: str, copy: CopyFacts | None) -> None:
        """The manager's may: the status that we sync is seen there before the worker's Kueue acts on its own job. A
        third of short jobs kept nothing."""
        end = {"conditions": [{"type": {"Succeeded": "Complete"}.get(reason, reason), "status": "True"}]}
        made = copy_of(LOCAL, **copy) if copy is not None else None
        there = worker("w1", made, job_copy_of(LOCAL, status=end))
        of = workload(finished=reason, cluster="w1", check="Ready")
        seen = snapshot(ended_at(of, timestamp(NOW)), there, job=job(suspended=False, status=end))
        assert (words(seen, settings=self.HOUR), decide(seen, settings=self.HOUR).look_again) == ([], 3600.0)

    @pytest.mark.parametrize(
        ("reason", "failed", "again"), [("Failed", 100, 3600.0), ("Failed", 101, 600.0), ("Succeeded", 0, 600.0)]
    )
    def test_those_of_failed_jobs_stay_for_longer_a_hundred_in_a_namespace(
        self, reason: str, failed: int, again: float
    ) -> None:
        """Whoever asks why a job has failed needs its logs; whoever submits jobs chooses how many fail."""
        minutes = timedelta(minutes=10)
        settings = attrs.evolve(self.HOUR, finished_retention=minutes, failed_retention=timedelta(hours=1))
        end = {"conditions": [{"type": {"Succeeded": "Complete"}.get(reason, reason), "status": "True"}]}
        copies = copy_of(LOCAL, admitted=True, finished=reason), job_copy_of(LOCAL, status=end)
        there = worker("w1", *copies, failed=failed)
        of = workload(finished=reason, cluster="w1", check="Ready")
        seen = snapshot(ended_at(of, timestamp(NOW)), there, job=job(suspended=False, status=end))
        assert (words(seen, settings=settings), decide(seen, settings=settings).look_again) == ([], again)

    @pytest.mark.parametrize("reason", ["OwnerNotFound", "OutOfSync"])
    def test_what_did_not_end_is_not_kept(self, reason: str) -> None:
        of = workload(finished=reason, cluster="w1", check="Ready")
        assert self.decided(done(), of=of)[0] == ["delete job on w1", "delete workload on w1"]

    def test_nor_is_what_the_worker_evicts(self) -> None:
        evicted = worker("w1", copy_of(LOCAL, evicted=True, finished="Succeeded"), job_copy_of(LOCAL, status=COMPLETE))
        assert self.decided(evicted)[0] == ["delete job on w1", "delete workload on w1"]

    def test_without_a_job_there_is_nothing_to_keep_the_workload_copy_for(self) -> None:
        """Somebody, or its own time to live, has removed the job."""
        alone = worker("w1", copy_of(LOCAL, admitted=True, finished="Succeeded"))
        assert self.decided(alone)[0] == ["delete workload on w1"]

    def test_a_worker_that_was_taken_out_of_the_config_is_let_go(self) -> None:
        left = attrs.evolve(done(), configured=False)
        assert self.decided(left)[0] == ["delete job on w1", "delete workload on w1"]

    def test_a_deleted_workload_is_cleaned_at_once(self) -> None:
        deleted = with_value(TestCleaning.FINISHED, ("metadata", "deletionTimestamp"), timestamp(NOW))
        assert self.decided(done(), of=deleted)[0] == ["delete job on w1", "delete workload on w1"]

    def test_an_end_without_a_time_keeps_nothing(self) -> None:
        seen = snapshot(ended_at(TestCleaning.FINISHED, "yesterday"), done(), job=ENDED_JOB)
        assert words(seen, settings=self.HOUR) == ["delete job on w1", "delete workload on w1"]

    def test_the_last_status_is_synced_meanwhile(self) -> None:
        seen = snapshot(ended_at(TestCleaning.FINISHED, timestamp(NOW)), done(), job=RUNNING_JOB)
        decided = decide(seen, settings=self.HOUR)
        assert (in_words(seen, decided), decided.look_again) == (["copy job status"], 5.0)
