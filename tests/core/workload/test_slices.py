"""Elastic jobs: they grow and shrink while they run, on the worker that has them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest

from multikueue.adapters import SyncRules
from multikueue.core.model.conditions import is_true
from multikueue.core.model.copies import drift_patch
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    GIVE_UP_ANNOTATION,
    JOB_MARK_ANNOTATION,
    LAST_WORKER_ANNOTATION,
    PREBUILT_WORKLOAD,
    SLICE_REPLACEMENT_ANNOTATION,
    SPEC_ANNOTATION,
    STARTED_LABELS,
)
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import dig, with_value
from multikueue.core.model.workload_names import workload_name
from multikueue.core.model.workloads import SLICE_REPLACED
from tests.core.applying import carry_out
from tests.core.building import (
    ADAPTER,
    EARLIER,
    JOB_NAME,
    condition,
    copy_of,
    job,
    job_copy_of,
    mark_on,
    marked_on,
    snapshot,
    worker,
    workload,
)
from tests.core.door import (
    FINISHING,
    NOW,
    VANISHED,
    WAITS,
    AnnounceWorkload,
    ApplyStatus,
    CreateJob,
    Lost,
    PatchJob,
    PatchWorkload,
    Refusal,
    Snapshot,
    Syncing,
    Unserved,
    Worker,
    decide,
    sole,
    those,
)
from tests.core.wording import in_words, words

OLD_NAME, NEW_NAME = (workload_name(JOB.gvk, JOB_NAME, "uid-of-job", str(generation)) for generation in (1, 3))
SMALL, BIG = job(elastic=True, parallelism=3), job(elastic=True, parallelism=5, generation=3, suspended=False)


def slice_of(name: str, count: int, **facts: Any) -> Json:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    pod_sets = [{"name": "main", "count": count, "template": template}]
    return workload(name=name, elastic=True, spec={"podSets": pod_sets}, **facts)


def old(**facts: Any) -> Json:
    return slice_of(OLD_NAME, 3, cluster="w1", check="Ready", **facts)


RUNNING_BIG = {**BIG, "status": {"active": 1}}
REPLACED = old(finished=SLICE_REPLACED)
NEW = slice_of(NEW_NAME, 5, cluster="w1", replaces=OLD_NAME)
COMPLETE = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True", "message": "All done"}]}
OLD_JOB = job_copy_of(old(), of=SMALL)
NEW_JOB = job_copy_of(NEW, of=BIG)


def growing(*workers: Worker, local: Json = NEW, sibling: Json = REPLACED, **facts: Any) -> Snapshot:
    """The new slice has quota and the old one's worker."""
    return snapshot(local, *workers, siblings=(sibling,), job=BIG, **facts)


class TestGrowing:
    def test_a_slice_without_quota_costs_nothing(self) -> None:
        """The job runs on with what it has."""
        new = slice_of(NEW_NAME, 5, quota=False, replaces=OLD_NAME)
        for sibling in (old(), REPLACED):  # Kueue finishes the old slice a moment before the new one has quota
            seen = snapshot(new, worker("w1", shared=OLD_JOB), siblings=(sibling,), job=BIG)
            assert words(seen) == []

    def test_the_copy_is_made_where_the_job_runs_and_nowhere_else(self) -> None:
        """Nothing is nominated: Kueue has copied clusterName from the old slice."""
        assert words(growing(worker("w1", shared=OLD_JOB), worker("w2"))) == ["create workload on w1"]

    def test_while_it_waits_there_the_job_stays_as_it_is(self) -> None:
        """Its status is synced to the manager all the same."""
        seen = growing(worker("w1", copy_of(NEW), shared=OLD_JOB))
        assert words(seen) == []

    def test_admitted_it_takes_the_job_over(self) -> None:
        """The new size and the new slice's name in both forms, in one write."""
        (effect, *rest) = decide(growing(worker("w1", copy_of(NEW, admitted=True), shared=OLD_JOB))).effects
        assert isinstance(effect, PatchJob)
        assert effect.patch == {
            "metadata": {
                "uid": "uid-job-copy",
                "resourceVersion": "rv-uid-job-copy",
                "labels": {PREBUILT_WORKLOAD: NEW_NAME},
                "annotations": {
                    PREBUILT_WORKLOAD: NEW_NAME,
                    ATTEMPT_ANNOTATION: mark_on("w1", NEW),
                    JOB_MARK_ANNOTATION: Marks(b"").of_job(NEW, "w1"),
                },
            },
            "spec": {"parallelism": 5},
        }
        assert in_words(growing(), attrs.evolve(decide(growing()), effects=tuple(rest))) == ["copy job status"]

    def test_without_a_job_a_worker_that_refuses_one_is_given_up(self) -> None:
        """An evicted slice starts anew, and somebody else's job may have the name there."""
        there = worker("w1", copy_of(NEW, admitted=True), refusal=Refusal("its name is taken", timedelta(minutes=1)))
        (steps, *_) = words(growing(there))
        assert steps == 'retry: Worker cluster "w1" refuses the job: its name is taken'

    def test_once_the_job_is_its_own_it_is_recorded(self) -> None:
        """In the ordinary words, with the ordinary event and count."""
        seen = growing(worker("w1", copy_of(NEW, admitted=True), NEW_JOB))
        assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1", "copy job status"]

    def test_it_goes_through_step_by_step(self) -> None:
        """From quota to Ready without anything else than the worker's admission in between."""
        seen = carry_out(seen := growing(worker("w1", shared=OLD_JOB)), decide(seen))
        (where,) = seen.workers
        admitted = attrs.evolve(where, copy=copy_of(NEW, admitted=True))
        seen = attrs.evolve(seen, workers=(admitted,))
        seen = carry_out(seen, decide(seen))
        seen = carry_out(seen, decide(seen))
        assert dig(seen.workload, "status", "admissionChecks")[0]["state"] == "Ready"
        assert words(seen) == []

    def test_the_old_slice_does_not_follow_a_size_it_has_no_quota_for(self) -> None:
        """It sees the bigger job before it knows that it has been replaced."""
        running = worker("w1", copy_of(old(), admitted=True), job_copy_of(old(), of=SMALL))
        seen = snapshot(old(), running, job=RUNNING_BIG)
        assert words(seen) == []

    def test_a_slice_that_is_no_longer_the_latest_waits_for_the_latest(self) -> None:
        """The job has grown once more meanwhile."""
        bigger = job(elastic=True, parallelism=9, generation=7, suspended=False, status={"active": 1})
        seen = snapshot(
            NEW, worker("w1", copy_of(NEW, admitted=True), shared=OLD_JOB), siblings=(REPLACED,), job=bigger
        )
        assert words(seen) == []

    def test_a_change_of_something_else_than_the_size_does_not_make_it_wait(self) -> None:
        """Kueue makes no slice for it, and shrinks one that waits in place; its name is of an earlier generation."""
        edited = job(elastic=True, parallelism=5, generation=4, suspended=False)
        seen = snapshot(
            NEW, worker("w1", copy_of(NEW, admitted=True), shared=OLD_JOB), siblings=(REPLACED,), job=edited
        )
        assert "patch job on w1" in words(seen)

    def test_a_job_that_is_gone_is_made_for_the_new_slice(self) -> None:
        """Somebody deleted it on the worker while the slice waited."""
        seen = growing(worker("w1", copy_of(NEW, admitted=True)))
        assert words(seen) == ["create job on w1"]

    def test_a_job_that_was_started_and_is_gone_is_made_again_once_it_is_clear_that_it_has_not_ended(self) -> None:
        """Kueue never takes its marks off an elastic job that has grown: it was sent back again and again."""
        label = ("spec", "template", "metadata", "labels", STARTED_LABELS[0])
        started = with_value(BIG, label, "main")
        seen = snapshot(NEW, worker("w1", copy_of(NEW, admitted=True)), siblings=(REPLACED,), job=started)
        assert words(seen) == []
        assert decide(seen).look_again == VANISHED.total_seconds()
        created = sole(CreateJob, decide(attrs.evolve(seen, quiet_for=VANISHED)).effects)
        assert dig(created.object, *label) is None

    def test_a_job_that_has_run_for_this_very_slice_is_not_made_again(self) -> None:
        """Its worker's Kueue has noted it: it may have ended, and be gone since."""
        seen = snapshot(NEW, worker("w1", copy_of(NEW, admitted=True, owned=True)), siblings=(REPLACED,), job=BIG)
        assert words(seen) == []
        quiet = attrs.evolve(seen, quiet_for=VANISHED)
        assert words(quiet) == ["retry: Admitting remote no longer exists"]

    @pytest.mark.parametrize("copies", [(), (copy_of(NEW),), (copy_of(NEW, admitted=True),)])
    def test_a_job_that_is_being_deleted_is_waited_for(self, copies: tuple[Json, ...]) -> None:
        """Neither patched nor created over; it held the slice's quota without an end, and without a word."""
        goes = growing(worker("w1", *copies, shared=job_copy_of(old(), of=SMALL, deleting=True)))
        run = 'worker cluster "w1": Job "train" (UID uid-job-copy) is still ending, held by the finalizer'
        assert words(goes) == [f"say Waiting for {run} example.com/slow"]
        late = decide(attrs.evolve(goes, quiet_for=timedelta(minutes=10)))
        assert late.row == "slice replacement: its job goes: give back"
        assert [is_true(write.object, "Evicted") for write in those(ApplyStatus, late.effects)] == [True]
        told = with_value(NEW, ("status", "conditions"), [*NEW["status"]["conditions"], condition(WAITS, "EarlierRun")])
        assert words(growing(worker("w1"), local=told)) == ["end waits"]

    @pytest.mark.parametrize(
        "spoiled",
        [
            {"attempt": EARLIER},
            {"spec": {"queueName": "other"}},
            {"spec": {"active": False}},
            {"spec": {"active": False}, "evicted": True},
        ],
        ids=["of an earlier attempt", "of another spec", "deactivated there", "evicted for that"],
    )
    def test_a_copy_that_cannot_be_used_is_replaced_without_touching_the_job(self, spoiled: Json) -> None:
        """The job runs on the old slice's quota."""
        assert words(growing(worker("w1", copy_of(NEW, **spoiled), shared=OLD_JOB))) == ["delete workload on w1"]

    @pytest.mark.parametrize("said", [{"evicted": True}, {"deleting": True}], ids=["evicted", "being deleted"])
    def test_a_copy_that_has_to_queue_again_is_left_alone(self, said: Json) -> None:
        """The worker tries again; nothing ran for it yet."""
        assert words(growing(worker("w1", copy_of(NEW, **said), shared=OLD_JOB))) == []

    def test_a_new_priority_reaches_a_waiting_slice(self) -> None:
        """As in any copy."""
        urgent = slice_of(NEW_NAME, 5, cluster="w1", replaces=OLD_NAME)
        urgent["spec"]["priority"] = 9
        assert words(growing(worker("w1", copy_of(NEW), shared=OLD_JOB), local=urgent)) == ["patch workload on w1"]

    def test_copies_on_other_workers_are_removed(self) -> None:
        """The worker is recorded and does not change."""
        seen = growing(worker("w1", copy_of(NEW), shared=OLD_JOB), worker("w2", copy_of(NEW, uid="b")))
        assert words(seen) == ["delete workload on w2"]

    def test_a_job_that_ends_meanwhile_ends_the_slice(self) -> None:
        """It has run: nothing is made again. It is finished once its check is Ready."""
        ended = worker("w1", copy_of(NEW, finished="Succeeded"), shared=OLD_JOB)
        seen = attrs.evolve(growing(ended), quiet_for=timedelta(minutes=1), jobs={JOB_NAME: RUNNING_BIG})
        assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1"]

    @pytest.mark.parametrize(
        "facts",
        [{}, {"configured": False}, {"refusal": Refusal("denied", timedelta(minutes=5))}],
        ids=["waits there", "left the config", "blocked"],
    )
    def test_a_job_that_ends_at_its_old_size_ends_the_slice_that_waits(self, facts: Json) -> None:
        """The worker has no room for it, and never will."""
        made = job_copy_of(old(), of=SMALL, status=COMPLETE)
        waiting = copy_of(NEW) if not facts else None
        seen = growing(worker("w1", waiting, shared=made, **facts))
        decided = decide(seen)
        assert (in_words(seen, decided), decided.look_again) == (["copy job status"], FINISHING.total_seconds())
        shown = {**BIG, "status": COMPLETE}
        seen = attrs.evolve(seen, jobs={JOB_NAME: shown}, quiet_for=FINISHING)
        assert words(seen) == ["finish Succeeded"]

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            (worker("w1", reach=Lost()), []),
            (worker("w1", reach=Lost(NOW - timedelta(hours=1))), ["retry: Admitting remote lost"]),
            (worker("w1", kind=Unserved()), []),
            (worker("w1", configured=False, removed=True, shared=OLD_JOB), ["patch workload on "]),
        ],
        ids=["out of reach", "lost", "kind not seen", "removed"],
    )
    def test_a_worker_that_cannot_take_it_is_waited_for(self, where: Worker, expected: list[str]) -> None:
        """The job is there: going elsewhere would run it twice."""
        assert words(growing(where)) == expected

    def test_on_a_removed_worker_it_begins_anew_once_the_job_is_gone_there(self) -> None:
        """Seed 30048: somebody had deleted it on a worker without a MultiKueueCluster, and the slice waited on."""
        gone = worker("w1", configured=False, removed=True)
        noted = "patch workload on "
        assert (words(growing(gone)), decide(growing(gone)).look_again) == ([noted], VANISHED.total_seconds())
        assert [word.partition(":")[0] for word in words(growing(gone, quiet_for=VANISHED))] == ["retry", noted]

    def test_a_worker_that_left_the_config_takes_the_slice_of_the_job_it_runs(self) -> None:
        """A Placement does not select it any more: the running job stays, and may grow."""
        assert words(growing(worker("w1", configured=False, shared=OLD_JOB))) == ["create workload on w1"]

    def test_a_finished_old_slice_does_not_end_the_job(self) -> None:
        """While our cache still shows the old slice as the job's owner, the job is handed over all the same."""
        seen = growing(worker("w1", copy_of(NEW, admitted=True), shared=OLD_JOB), sibling=old())
        assert words(seen)[0] == "patch job on w1"

    def test_without_a_recorded_worker_it_waits_for_the_old_slices_end(self) -> None:
        """The job has the name that the new copy would need."""
        unplaced = slice_of(NEW_NAME, 5, nominated=("w1",), replaces=OLD_NAME)
        where = worker("w1", copy_of(unplaced, admitted=True), shared=OLD_JOB)
        assert words(growing(where, local=unplaced, sibling=old())) == []

    @pytest.mark.parametrize(("minutes", "waits"), [(5, True), (15, False)], ids=["for 5 minutes", "for 15 minutes"])
    def test_nor_is_it_recorded_while_the_worker_of_the_old_slice_is_lost(self, minutes: int, waits: bool) -> None:
        """The job may run there though it was never seen: the answer to its creation was lost with the worker."""
        unplaced = slice_of(NEW_NAME, 5, nominated=("w2",), replaces=OLD_NAME)
        lost, free = (
            worker("w1", reach=Lost(NOW - timedelta(minutes=minutes))),
            worker("w2", copy_of(unplaced, admitted=True)),
        )
        assert ("record w2" in words(growing(lost, free, local=unplaced))) is not waits
        evicted = slice_of(OLD_NAME, 3, finished=SLICE_REPLACED)  # replaced before it had a worker again
        evicted["metadata"]["annotations"][LAST_WORKER_ANNOTATION] = "w1"
        assert ("record w2" in words(growing(lost, free, local=unplaced, sibling=evicted))) is not waits

    @pytest.mark.parametrize("seen", [False, True], ids=["not read since", "read before"])
    def test_nor_while_the_job_may_run_where_nobody_can_tell_any_more(self, seen: bool) -> None:
        """The record of the old slice was erased while its worker could not be seen, and then the job grew."""
        unplaced = slice_of(NEW_NAME, 5, nominated=("w2",), replaces=OLD_NAME)
        erased = slice_of(OLD_NAME, 3, check="Ready", finished=SLICE_REPLACED)
        erased["status"]["conditions"].append({"type": "Admitted", "status": "True"})
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=5), seen=seen))
        free = worker("w2", copy_of(unplaced, admitted=True))
        assert ("record w2" in words(growing(lost, free, local=unplaced, sibling=erased))) is seen

    @pytest.mark.parametrize("seen", [False, True], ids=["not read since", "read before"])
    def test_nor_where_the_old_slice_was_evicted_while_nobody_noted_where(self, seen: bool) -> None:
        """No daemon ran when Kueue erased the record, and then the job grew (seed 781322: it ran twice)."""
        unplaced = slice_of(NEW_NAME, 5, nominated=("w2",), replaces=OLD_NAME)
        evicted = slice_of(OLD_NAME, 3, finished=SLICE_REPLACED)
        evicted["status"]["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": 1}]}
        lost = worker("w1", reach=Lost(NOW - timedelta(minutes=5), seen=seen))
        free = worker("w2", copy_of(unplaced, admitted=True))
        assert ("record w2" in words(growing(lost, free, local=unplaced, sibling=evicted))) is seen

    def test_nor_while_the_job_runs_for_another_slice_that_has_finished_elsewhere(self) -> None:
        """Kueue could not start the job's pods for that slice, finished it, and made this Workload: no successor."""
        failed, fresh = old(finished="FailedToStart"), slice_of(NEW_NAME, 3, nominated=("w2",))
        runs, free = worker("w1", shared=OLD_JOB), worker("w2", copy_of(fresh, admitted=True))
        assert "record w2" not in words(growing(runs, free, local=fresh, sibling=failed))
        ended = worker("w1", shared={**OLD_JOB, "status": COMPLETE})
        for gone in (ended, worker("w1")):
            assert "record w2" in words(growing(gone, free, local=fresh, sibling=failed))


class TestFixedSize:
    """A kind that cannot change its size, though its jobs may say that they are elastic."""

    KIND = attrs.evolve(ADAPTER, sync=SyncRules())

    def test_it_runs_on_for_the_slice_it_was_made_for_and_that_is_told(self) -> None:
        """Quota for a bigger one would be held on the worker for nothing."""
        for copy in (None, copy_of(NEW, admitted=True)):
            seen = growing(worker("w1", copy, shared=OLD_JOB), adapter=self.KIND)
            decided = decide(seen)
            removed = [] if copy is None else ["delete workload on w1"]
            assert in_words(seen, decided) == ["warn", *removed, "copy job status"]
            (warning, *_) = decided.effects
            assert isinstance(warning, AnnounceWorkload)
            assert warning.note == (
                'Job "train" runs on worker cluster "w1" with the size it was started with, which this kind cannot '
                "change: create it again to have another"
            )

    def test_its_end_is_the_end_of_the_slice_that_waits(self) -> None:
        """Nothing is made again."""
        made = job_copy_of(old(), of=SMALL, status=COMPLETE)
        seen = growing(worker("w1", shared=made), adapter=self.KIND)
        seen = attrs.evolve(seen, jobs={JOB_NAME: {**BIG, "status": COMPLETE}}, quiet_for=FINISHING)
        assert words(seen) == ["finish Succeeded"]

    def test_being_deleted_it_is_waited_for_as_any_other(self) -> None:
        """It was said to run on, and held the slice's quota for as long as a finalizer or a dead node held it."""
        leaving = job_copy_of(old(), of=SMALL, deleting=True)
        seen = growing(worker("w1", copy_of(NEW, admitted=True), shared=leaving), adapter=self.KIND)
        assert decide(seen).row == "slice replacement: its job goes: wait"
        late = decide(attrs.evolve(seen, quiet_for=timedelta(minutes=10)))
        assert late.row == "slice replacement: its job goes: give back"

    def test_made_for_the_slice_itself_it_has_its_size(self) -> None:
        """It had never run before."""
        seen = growing(worker("w1", copy_of(NEW, admitted=True), NEW_JOB), adapter=self.KIND)
        assert words(seen) == ["admit on w1 as Ready", "tell", "count cq w1", "copy job status"]


class TestReplaced:
    @pytest.mark.parametrize("where", ["admitted", "finished"])
    def test_a_replaced_slice_leaves_the_job_alone(self, where: str) -> None:
        """It runs on for the new slice (item 23)."""
        copy = copy_of(old(), admitted=True, finished=SLICE_REPLACED if where == "finished" else None)
        for sibling in (NEW, slice_of(NEW_NAME, 5, quota=False)):
            seen = snapshot(REPLACED, worker("w1", copy, OLD_JOB), siblings=(sibling,), job=BIG)
            assert words(seen) == []

    def test_its_own_copy_goes_when_the_job_has_a_new_name(self) -> None:
        """Nothing leads to it any more; it may still hold the worker's quota."""
        copy = copy_of(old(), admitted=True)
        seen = snapshot(REPLACED, worker("w1", copy, shared=NEW_JOB), siblings=(NEW,), job=BIG)
        assert words(seen) == ["delete workload on w1"]

    @pytest.mark.parametrize("facts", [{"reach": Lost()}, {"kind": Unserved()}], ids=["lost", "job not seen"])
    def test_it_stays_where_the_job_cannot_be_seen(self, facts: Json) -> None:
        """A worker's Kueue stops a job whose Workload is gone."""
        seen = snapshot(REPLACED, worker("w1", copy_of(old()), **facts), worker("w2"), siblings=(NEW,), job=BIG)
        assert words(seen) == []

    def test_once_no_slice_runs_what_a_lost_worker_kept_is_removed(self) -> None:
        """The job was moved while that worker was out of sight, and names the slice of that time."""
        ended = slice_of(NEW_NAME, 5, cluster="w2", finished="Succeeded")
        back = worker("w1", copy_of(old(), admitted=True), shared=OLD_JOB)
        seen = snapshot(REPLACED, back, worker("w2"), siblings=(ended,), job=BIG)
        assert words(seen) == ["stop on w1", "delete job on w1 unless it is stopped"]

    @pytest.mark.parametrize(
        ("seconds", "expected"), [(0, []), (60, ["stop on w1", "delete job on w1 unless it is stopped"])]
    )
    def test_nor_is_it_left_once_no_other_slice_comes(self, seconds: int, expected: list[str]) -> None:
        """Somebody deleted the Workload of the slice that ran."""
        back = worker("w1", copy_of(old(), admitted=True), OLD_JOB)
        assert words(snapshot(REPLACED, back, job=BIG, quiet_for=timedelta(seconds=seconds))) == expected

    def test_but_not_where_the_last_slice_ended(self) -> None:
        """Its status is synced first, and then that slice removes it."""
        ended = slice_of(NEW_NAME, 5, cluster="w1", finished="Succeeded")
        there = worker("w1", copy_of(old(), admitted=True), shared=OLD_JOB)
        assert words(snapshot(REPLACED, there, siblings=(ended,), job=BIG)) == []

    def test_deleted_it_leaves_the_live_job_and_what_that_needs(self) -> None:
        """Kueue's controller deletes the running job when the old slice is cleaned up on the manager (item 23)."""
        seen = snapshot(None, worker("w1", copy_of(old()), OLD_JOB), siblings=(NEW,), check=None, job={})
        seen = attrs.evolve(seen, key=seen.key._replace(name=OLD_NAME))
        decided = decide(seen)
        assert (decided.effects, decided.look_again) == ((), 10.0)
        (where,) = seen.workers
        taken = attrs.evolve(where, jobs=(), shared=tuple(attrs.evolve(job, object=NEW_JOB) for job in where.jobs))
        seen = attrs.evolve(seen, workers=(taken,))
        assert words(seen) == ["delete workload on w1"]

    def test_deleted_with_all_its_siblings_it_leaves_nothing(self) -> None:
        """The user deleted the job."""
        for siblings in ((), (slice_of(NEW_NAME, 5, cluster="w1", deleting=True),)):
            seen = snapshot(None, worker("w1", copy_of(old()), OLD_JOB), siblings=siblings, check=None, job={})
            seen = attrs.evolve(seen, key=seen.key._replace(name=OLD_NAME))
            assert words(seen) == ["delete job on w1"]

    def test_a_copy_of_another_slice_is_removed_by_that_one(self) -> None:
        """Each copy is removed by the one Workload it names."""
        seen = snapshot(None, worker("w1", shared=OLD_JOB), check=None, job={})
        assert words(seen) == []


class TestStopping:
    EVICTED = slice_of(NEW_NAME, 5, evicted="Preempted", evictions=1, replaces=OLD_NAME)

    def test_a_slice_evicted_before_it_took_the_job_stops_the_job(self) -> None:
        """Stopping its own copy would not: the job runs on the old slice's, for ever (Kueue's controller leaves it)."""
        where = worker("w1", copy_of(NEW), shared=OLD_JOB)
        seen = snapshot(self.EVICTED, where, siblings=(REPLACED,), job=RUNNING_BIG)
        assert words(seen) == ["delete job on w1"]

    def test_while_the_workers_jobs_are_not_read_yet_nobody_says_that_it_has_stopped(self) -> None:
        """Its own copy never ran; the job may, for the old slice."""
        unread = worker("w1", copy_of(NEW), kind=Syncing())
        seen = snapshot(self.EVICTED, unread, siblings=(REPLACED,), job=RUNNING_BIG)
        assert "copy job status" not in words(seen)
        alone = snapshot(self.EVICTED, unread, job=RUNNING_BIG)
        assert "copy job status" in words(alone)

    def test_without_quota_its_job_goes(self) -> None:
        """Named after it or still after the slice it replaced."""
        local = slice_of(NEW_NAME, 5, quota=False, evicted="Preempted", evictions=1, replaces=OLD_NAME)
        for where in (worker("w1", copy_of(NEW), NEW_JOB), worker("w1", copy_of(NEW), shared=OLD_JOB)):
            seen = snapshot(local, where, siblings=(REPLACED,), job=BIG)
            assert words(seen) == ["delete job on w1"]  # the Workload copy goes after it

    def test_finished_it_takes_the_job_along(self) -> None:
        """Even one that never got its name."""
        ended = slice_of(NEW_NAME, 5, finished="Succeeded", cluster="w1", check="Ready")
        seen = snapshot(ended, worker("w1", copy_of(NEW), shared=OLD_JOB), siblings=(REPLACED,), job=BIG)
        assert words(seen) == ["delete job on w1"]


OTHER_SETS = slice_of(OLD_NAME, 3)
OTHER_SETS["spec"]["podSets"][0]["name"] = "other"


class TestShrinking:
    def test_the_job_waits_for_its_workload(self) -> None:
        """Seen beside Kueue 0.19.2: a worker's Kueue that sees a Job smaller than its Workload stops it (OutOfSync)."""
        before = slice_of(OLD_NAME, 3, cluster="w1", check="Ready")
        shrunk = job(elastic=True, parallelism=2, generation=2, suspended=False, status={"active": 1})
        running = worker("w1", copy_of(old(), admitted=True), OLD_JOB)
        assert words(snapshot(before, running, job=shrunk)) == []

    def test_the_copy_follows_in_place(self) -> None:
        """A replaced copy would stop the job."""
        smaller = slice_of(OLD_NAME, 2, cluster="w1", check="Ready")
        shrunk = job(elastic=True, parallelism=2, generation=2, suspended=False, status={"active": 1})
        running = worker("w1", copy_of(old(), admitted=True), OLD_JOB)
        patch, forward = decide(snapshot(smaller, running, job=shrunk)).effects
        assert isinstance(patch, PatchWorkload)
        assert [pod_set["count"] for pod_set in patch.patch["spec"]["podSets"]] == [2]
        assert patch.patch["metadata"]["uid"] == "uid-copy"
        # by it a worker's Kueue lets the job follow
        assert SLICE_REPLACEMENT_ANNOTATION in patch.patch["metadata"]["annotations"]
        assert isinstance(forward, PatchJob)
        seen = {"uid": "uid-job-copy", "resourceVersion": "rv-uid-job-copy"}
        assert forward.patch == {"metadata": seen, "spec": {"parallelism": 2}}, "held up, it must not undo a later size"

    def test_the_copy_follows_in_place_beside_a_new_default(self) -> None:
        """The manager's Kueue was upgraded since the copy was made."""
        smaller = slice_of(OLD_NAME, 2, cluster="w1", check="Ready")
        smaller["spec"]["podSets"][0]["placement"] = "Spread"
        running = worker("w1", copy_of(old(), admitted=True), OLD_JOB)
        seen = snapshot(smaller, running, job=job(elastic=True, parallelism=2, suspended=False))
        assert "patch workload on w1" in words(seen)

    def test_afterwards_there_is_nothing_to_patch(self) -> None:
        """What the copy was made from is noted anew."""
        smaller = slice_of(OLD_NAME, 2, nominated=("w1",))
        seen = snapshot(smaller, worker("w1", copy_of(slice_of(OLD_NAME, 3))), job=SMALL)
        decided = decide(seen)
        assert in_words(seen, decided) == ["patch workload on w1"]
        seen = carry_out(seen, decided)
        assert words(seen) == []
        assert SPEC_ANNOTATION in dig(seen.workers[0].copy, "metadata", "annotations")

    def test_a_new_priority_goes_with_it(self) -> None:
        """One write for both."""
        smaller = slice_of(OLD_NAME, 2)
        smaller["spec"]["priority"] = 7
        patch = drift_patch(smaller, copy_of(slice_of(OLD_NAME, 3)))
        assert patch is not None
        assert (patch["spec"]["priority"], patch["spec"]["podSets"][0]["count"]) == (7, 2)

    def test_what_the_worker_added_to_the_pod_sets_stays(self) -> None:
        """Only the count may change there."""
        made = copy_of(slice_of(OLD_NAME, 3))
        made["spec"]["podSets"][0]["template"]["spec"]["schedulerName"] = "theirs"
        patch = drift_patch(slice_of(OLD_NAME, 2), made)
        assert patch is not None
        assert patch["spec"]["podSets"][0]["template"]["spec"]["schedulerName"] == "theirs"

    @pytest.mark.parametrize(
        ("local", "made"),
        [
            (slice_of(OLD_NAME, 4), slice_of(OLD_NAME, 3)),
            (workload(spec={"podSets": [{"name": "main", "count": 2}]}), workload()),
            (slice_of(OLD_NAME, 2), OTHER_SETS),
        ],
        ids=["grown", "not elastic", "other pod sets"],
    )
    def test_other_changes_are_no_shrinking(self, local: Json, made: Json) -> None:
        """They get a new copy, as with any other Workload."""
        assert drift_patch(local, copy_of(made)) is None

    def test_a_job_that_has_the_right_size_is_not_written(self) -> None:
        """A running elastic job costs nothing."""
        local = job(elastic=True, parallelism=3, suspended=False, status={"active": 1})
        running = worker("w1", copy_of(old(), admitted=True), OLD_JOB)
        assert words(snapshot(old(), running, job=local)) == []

    def test_a_job_that_is_not_elastic_keeps_its_size(self) -> None:
        """Kueue would find it out of sync with its Workload."""
        local = workload(cluster="w1", check="Ready")
        grown = job(parallelism=4, suspended=False, status={"active": 1})
        seen = snapshot(local, worker("w1", copy_of(local, admitted=True), job_copy_of(local)), job=grown)
        assert words(seen) == []


@pytest.mark.parametrize(
    ("lost_for", "recorded"), [(timedelta(seconds=20), False), (timedelta(hours=1), True)], ids=["just now", "given up"]
)
def test_a_run_of_a_slice_that_is_over_is_waited_for_also_on_a_worker_that_is_lost(
    lost_for: timedelta, recorded: bool
) -> None:
    """It was evicted and resized while its pods were ending: Kueue finished its Workload as OutOfSync.

    The next slice waited for its job as long as that was seen, and began elsewhere once it was not (seed 20078).
    """
    over = slice_of(OLD_NAME, 3, evicted=True, finished="OutOfSync")
    waiting = slice_of(NEW_NAME, 5, nominated=("w1", "w2"))
    left = job_copy_of(over, of=SMALL, attempt=EARLIER, deleting=True)
    ending = worker("w1", shared=left, reach=Lost(NOW - lost_for))
    admitted = worker("w2", copy_of(waiting, admitted=True))
    seen = snapshot(waiting, ending, admitted, siblings=(over,), job=job(elastic=True, parallelism=5, generation=3))
    assert any(word == "record w2" for word in words(seen)) is recorded


class TestMovedOnWhereJobsAreHidden:
    """The job's kind cannot be seen on the worker, for longer than it is waited for: the next slice goes elsewhere."""

    COPY = copy_of(old(), admitted=True, owned=True)

    @pytest.mark.parametrize(
        ("following", "stops"),
        [
            (NEW, False),
            (slice_of(NEW_NAME, 5, quota=False), False),
            (TestStopping.EVICTED, True),
            (slice_of(NEW_NAME, 5, nominated=("w2",), replaces=OLD_NAME), True),
            (slice_of(NEW_NAME, 5, cluster="w2", replaces=OLD_NAME), True),
            (slice_of(NEW_NAME, 5, cluster="w2", finished="Succeeded"), True),
        ],
        ids=["stays", "has no quota yet", "evicted", "offered anew", "runs elsewhere", "ended elsewhere"],
    )
    @pytest.mark.parametrize("grown", [1, 2], ids=["grown once", "grown twice"])
    def test_the_run_of_the_replaced_slice_is_stopped_there(self, following: Json, stops: bool, grown: int) -> None:
        """Its Workload copy can be told: nobody else stops the job, which ran beside the next one's (seed 776)."""
        hides = worker("w1", self.COPY, kind=Unserved(timedelta(minutes=15), seen=False))
        between = slice_of(f"{OLD_NAME}-2", 4, cluster="w1", finished=SLICE_REPLACED)
        siblings = (following, between)[:grown]
        assert words(snapshot(REPLACED, hides, worker("w2"), siblings=siblings, job=BIG)) == ["stop on w1"] * stops

    @pytest.mark.parametrize("kind", [Syncing(), Unserved(timedelta(seconds=1))], ids=["syncing", "not served"])
    def test_it_runs_on_while_jobs_are_hidden_for_a_moment_only(self, kind: Syncing | Unserved) -> None:
        """The next slice has quota, and is about to take it over there."""
        hides = worker("w1", self.COPY, kind=kind)
        offered = slice_of(NEW_NAME, 5, nominated=("w1",), replaces=OLD_NAME)
        assert words(snapshot(REPLACED, hides, worker("w2"), siblings=(offered,), job=BIG)) == []

    @pytest.mark.parametrize("stopped", [False, True], ids=["its Kueue is dead", "stopped"])
    def test_the_next_slice_is_recorded_elsewhere_only_once_that_run_is_stopped(self, stopped: bool) -> None:
        """That worker's Kueue may be dead, too: then nobody but a person knows whether the job runs."""
        moved = slice_of(NEW_NAME, 5, nominated=("w2",), replaces=OLD_NAME)
        left = marked_on(
            "w1", copy_of(old(), admitted=not stopped, evicted=stopped, owned=True, spec={"active": not stopped})
        )
        hides = worker("w1", kind=Unserved(timedelta(hours=1), seen=False), slices=(left,))
        takes = worker("w2", copy_of(moved, admitted=True))
        seen = snapshot(moved, hides, takes, siblings=(REPLACED,), job=BIG, quiet_for=timedelta(minutes=1))
        assert ("record w2" in words(seen)) is stopped
        [*warned] = [note.note for note in those(AnnounceWorkload, decide(seen).effects) if note.type == "Warning"]
        assert [OLD_NAME in text for text in warned] == [True] * (not stopped)

    def test_who_gives_up_one_of_two_such_runs_has_given_up_something(self) -> None:
        moved = slice_of(NEW_NAME, 5, nominated=("w2",), replaces=OLD_NAME)
        left = with_value(copy_of(old(), admitted=True, owned=True), ("metadata", "uid"), "uid-left")
        moved = with_value(moved, ("metadata", "annotations", GIVE_UP_ANNOTATION), "w1/uid-left")
        hide = [
            worker(name, kind=Unserved(timedelta(hours=1), seen=False), slices=(marked_on(name, left),))
            for name in ("w1", "w3")
        ]
        seen = snapshot(moved, *hide, worker("w2", copy_of(moved, admitted=True)), siblings=(REPLACED,), job=BIG)
        [*notes] = [note.note for note in those(AnnounceWorkload, decide(seen).effects)]
        assert any("w3" in note for note in notes)
        assert not any("gives up nothing" in note for note in notes)


class TestUnlistedWorker:
    """The MultiKueueCluster of a worker is deleted while a job is held there: only a note names it after a restart."""

    OVER = slice_of(OLD_NAME, 3, evicted=True, finished="OutOfSync")
    WAITING = slice_of(NEW_NAME, 5, nominated=("w2",))
    GROWN = job(elastic=True, parallelism=5, generation=3)
    LEFT = job_copy_of(slice_of(OLD_NAME, 3, evicted=True), of=SMALL, attempt=EARLIER, deleting=True)

    @staticmethod
    def noted(seen: Snapshot) -> list[str]:
        patches = those(PatchWorkload, decide(seen).effects)
        return [patch.patch["metadata"]["annotations"][LAST_WORKER_ANNOTATION] for patch in patches]

    @pytest.mark.parametrize("removed", [True, False])
    def test_it_is_noted_on_the_slice_that_waits(self, removed: bool) -> None:
        held = worker("w1", shared=self.LEFT, configured=not removed, removed=removed)
        seen = snapshot(self.WAITING, held, worker("w2"), siblings=(self.OVER,), job=self.GROWN)
        assert self.noted(seen) == ["w1"] * removed

    def test_what_has_ended_there_is_no_run(self) -> None:
        ended = job_copy_of(self.OVER, of=SMALL, attempt=EARLIER, status=COMPLETE)
        held = worker("w1", shared=ended, configured=False, removed=True)
        seen = snapshot(self.WAITING, held, worker("w2"), siblings=(self.OVER,), job=self.GROWN)
        assert self.noted(seen) == []

    @pytest.mark.parametrize("removed", [True, False])
    def test_and_on_the_one_that_is_evicted(self, removed: bool) -> None:
        evicted = slice_of(OLD_NAME, 3, evicted=True)
        left = job_copy_of(evicted, of=SMALL, deleting=True)
        held = worker("w1", None, left, configured=not removed, removed=removed)
        seen = snapshot(evicted, held, worker("w2"), job=SMALL, last_worker=ClusterName("w1"))
        assert self.noted(seen) == ["w1"] * removed

    @pytest.mark.parametrize("minutes", [5, 15])
    def test_nor_is_the_next_slice_recorded_while_it_may_run_there(self, minutes: int) -> None:
        """The next slice began elsewhere nine seconds after the worker was gone (seed 20689)."""
        over = slice_of(OLD_NAME, 3, evicted=True, finished="OutOfSync")
        over["metadata"]["annotations"][LAST_WORKER_ANNOTATION] = "w1"
        gone = worker("w1", configured=False, removed=True, reach=Lost(NOW - timedelta(minutes=minutes), seen=False))
        free = worker("w2", copy_of(self.WAITING, admitted=True))
        seen = snapshot(self.WAITING, gone, free, siblings=(over,), job=self.GROWN)
        assert ("record w2" in words(seen)) is (minutes == 15)


class TestEvictedBeforeTheNextSliceHasIt:
    """A worker's queue is drained while the job grows: the next slice was held there, though others had room."""

    def test_the_next_slice_begins_anew(self) -> None:
        left = copy_of(old(), evicted=True, owned=True)
        stopped = job_copy_of(old(), of=SMALL, suspended=True)
        seen = growing(worker("w1", copy_of(NEW), shared=stopped, slices=(left,)), worker("w2"))
        assert words(seen) == ["copy job status", 'retry: Workload evicted on worker cluster: "w1"', "tell"]

    def test_what_its_worker_evicted_long_ago_takes_nothing_from_the_next_one(self) -> None:
        """The job runs for the slice in between, and the copy of the first is still being deleted."""
        first = workload(name="slice-0", elastic=True, finished="WorkloadSliceReplaced", cluster="w1", check="Ready")
        runs = copy_of(old(), admitted=True, owned=True)
        for deleting in (False, True):
            left = copy_of(first, evicted=True, owned=True, deleting=deleting, held=deleting, uid="uid-of-first")
            there = worker("w1", copy_of(NEW), shared=OLD_JOB, slices=(left, runs))
            assert words(growing(there, worker("w2"), quiet_for=VANISHED)) == []

    def test_it_waits_where_the_job_runs(self) -> None:
        runs = copy_of(old(), admitted=True, owned=True)
        there = worker("w1", copy_of(NEW), shared=OLD_JOB, slices=(runs,))
        assert words(growing(there, worker("w2"), quiet_for=VANISHED)) == []

    def test_admitted_it_takes_over_what_is_stopped(self) -> None:
        """The worker's Kueue has room again, and starts the job for it."""
        left = copy_of(old(), evicted=True, owned=True)
        there = worker("w1", copy_of(NEW, admitted=True), shared=OLD_JOB, slices=(left,))
        assert those(PatchJob, decide(growing(there)).effects)
