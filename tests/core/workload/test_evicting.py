"""A Workload the manager evicts while it holds quota: the job stops where it runs, then the quota is let go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Unpack

import attrs
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import ADMISSION_MANAGER, RETRY_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import dig, without
from multikueue.core.model.placements import Placement
from tests.core.building import (
    MARKS_OF_JOBS,
    RESERVED_AT,
    CopyFacts,
    condition,
    copy_of,
    job,
    job_copy_of,
    snapshot,
    worker,
    workload,
)
from tests.core.door import (
    NOW,
    ApplyStatus,
    Connecting,
    DeleteJob,
    Lost,
    PatchJobStatus,
    PatchWorkload,
    Snapshot,
    Syncing,
    Unserved,
    Worker,
    decide,
    only,
    sole,
    those,
)
from tests.core.pods import POD, RUNNING, copied, place, pod
from tests.core.wording import words

BEFORE = workload(cluster="w1", check="Ready")
EVICTED = workload(evicted="Preempted to accommodate a workload", evictions=1)
RUNNING_JOB = job(suspended=True, status={"active": 1, "ready": 1})


def w1(*, status: Json | None = None, suspended: bool = False, **said: Unpack[CopyFacts]) -> Worker:
    """The worker the job was on; its copies are of the attempt that is being evicted."""
    return worker("w1", copy_of(BEFORE, **said), job_copy_of(BEFORE, suspended=suspended, status=status))


def test_the_worker_is_asked_to_stop_the_job() -> None:
    """Kueue stops it in its own way; the job is deleted at once only where the request is refused."""
    write, refused = decide(snapshot(EVICTED, w1(admitted=True), job=RUNNING_JOB)).effects
    assert isinstance(refused, DeleteJob)
    assert (refused.propagation, refused.unless_stopped) == ("Foreground", True)
    assert isinstance(write, ApplyStatus)
    assert (write.cluster, write.field_manager) == ("w1", ADMISSION_MANAGER)
    assert write.object["metadata"]["resourceVersion"] == "rv-uid-copy"
    target = dig(write.object, "status", "conditions")[-1]
    assert (target["type"], target["reason"]) == ("DeactivationTarget", "EvictedOnManagerCluster")
    assert target["message"] == "Evicted on manager: Preempted to accommodate a workload"


def test_what_the_workers_kueue_wrote_on_the_copy_is_kept() -> None:
    """An apply under Kueue's name that lacks `admission` would drop the worker's quota."""
    write, _ = decide(snapshot(EVICTED, w1(admitted=True), job=RUNNING_JOB)).effects
    assert isinstance(write, ApplyStatus)
    assert write.object["status"]["admission"] == {"clusterQueue": "cq-of-worker"}
    assert [entry["type"] for entry in write.object["status"]["conditions"]][:2] == ["QuotaReserved", "Admitted"]


def test_it_is_asked_once() -> None:
    """No write is repeated while the worker stops."""
    assert decide(snapshot(EVICTED, w1(admitted=True, stopping=True), job=RUNNING_JOB)).effects == ()


def test_while_the_job_stops_its_status_is_synced() -> None:
    """The manager's Kueue frees the quota when the job shows no active pod."""
    stopped = w1(evicted=True, suspended=True, status={"active": 0})
    deleted, patch = decide(snapshot(EVICTED, stopped, job=RUNNING_JOB)).effects
    assert isinstance(deleted, DeleteJob)
    assert isinstance(patch, PatchJobStatus)
    assert patch.patch["status"] == {"active": 0, "ready": None}


def test_an_end_is_not_told_while_the_managers_job_cannot_be_seen() -> None:
    """Its kind may not be read there for a while (seed 277): a Finished Workload with a job that shows no end."""
    complete: Json = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True", "message": "All done"}]}
    ended = w1(finished="Succeeded", status=complete)
    assert decide(snapshot(EVICTED, ended, job={})).effects == ()
    assert words(snapshot(EVICTED, ended, job=RUNNING_JOB)) == ["copy job status"]


COMPLETE: Json = {
    "succeeded": 1,
    "startTime": "2026-11-21T11:00:00Z",
    "completionTime": "2026-11-21T11:59:00Z",
    "conditions": [
        {"type": kind, "status": "True", "message": "All done"} for kind in ("SuccessCriteriaMet", "Complete")
    ],
}


@pytest.mark.parametrize(
    "behind",
    [{"kind": Syncing()}, {"kind": Unserved(timedelta(minutes=1))}, {"quiet_for": timedelta(seconds=100)}],
    ids=["being read", "failing", "watched"],
)
def test_what_has_ended_is_not_removed_before_its_job_shows_that(behind: dict[str, Any]) -> None:
    """A worker that is back shows its Workloads first. The copies were removed then, and the job ran again."""
    quiet = behind.pop("quiet_for", timedelta(0))
    ended = attrs.evolve(w1(finished="Succeeded", status={"active": 1}), **behind)
    seen = snapshot(EVICTED, ended, job=RUNNING_JOB, quiet_for=quiet)
    assert "delete" not in " ".join(words(seen))
    assert decide(seen).look_again is not None


def test_what_has_ended_and_is_gone_is_not_run_again() -> None:
    gone = worker("w1", copy_of(BEFORE, finished="Succeeded"))
    assert "finish Succeeded" in words(snapshot(EVICTED, gone, job=RUNNING_JOB, quiet_for=timedelta(minutes=1)))


def test_an_end_that_was_seen_counts_though_its_worker_is_lost() -> None:
    """Its quota was released as that of a job of which nothing runs, and it ran again on another worker."""
    lost = attrs.evolve(w1(admitted=True, status=COMPLETE), reach=Lost(NOW - timedelta(seconds=5)))
    patch = sole(PatchJobStatus, decide(snapshot(EVICTED, lost, job=RUNNING_JOB)).effects)
    assert patch.patch["status"]["conditions"] == COMPLETE["conditions"]
    shown = snapshot(EVICTED, lost, job=job(suspended=True, status=COMPLETE), quiet_for=timedelta(minutes=1))
    assert words(shown) == ["finish Succeeded"]


def test_an_end_that_is_seen_counts_though_its_workload_copy_is_gone() -> None:
    """A worker's Kueue removes what has finished by `objectRetentionPolicies`. The job was removed, and ran again."""
    gone = worker("w1", None, job_copy_of(BEFORE, status=COMPLETE))
    assert words(snapshot(EVICTED, gone, worker("w2"), job=RUNNING_JOB)) == ["copy job status"]
    shown = snapshot(EVICTED, gone, job=job(suspended=True, status=COMPLETE), quiet_for=timedelta(minutes=1))
    assert words(shown) == ["finish Succeeded"]


def test_a_pod_that_was_being_deleted_has_not_ended_by_itself() -> None:
    """Its worker's Kueue had stopped it, and the worker was lost: the Workload failed, and nobody ran it again."""
    local = pod("train", RUNNING)
    local["metadata"] |= {"labels": {}, "annotations": {}, "uid": "uid-of-job"}
    before = workload(cluster="w1", check="Pending", owner=("v1", "Pod"))
    evicted = workload(evicted="Preempted", evictions=1, owner=("v1", "Pod"))
    copy = copy_of(before, admitted=True, evicted=True, stopping=True, owned=True)
    stopping = copied(before, local, {"phase": "Failed"}, deleting=True)
    lost = place("w1", copy, stopping, reach=Lost(NOW - timedelta(seconds=20)))
    seen = snapshot(evicted, lost, job=local, adapter=POD, quiet_for=timedelta(minutes=1), last_worker=lost.name)
    assert not any(word.startswith("finish") for word in words(seen))


def test_a_stopped_job_whose_status_is_synced_is_deleted_once() -> None:
    """It stays while its pods end, and costs nothing more."""
    stopped = w1(evicted=True, suspended=True, status={"active": 0})
    assert words(snapshot(EVICTED, stopped, job=job(status={"active": 0}))) == ["delete job on w1"]
    made = job_copy_of(BEFORE, suspended=True, status={"active": 0}, deleting=True)
    ending = worker("w1", copy_of(BEFORE, evicted=True), made)
    assert decide(snapshot(EVICTED, ending, job=job(status={"active": 0}))).effects == ()


def test_a_workload_evicted_before_it_ran_is_not_offered_again() -> None:
    """Copies made now would be deleted moments later (item 21)."""
    assert words(snapshot(EVICTED, worker("w1", copy_of(BEFORE)), worker("w2"))) == ["delete workload on w1"]


@pytest.mark.parametrize(
    "workers", [(), (worker("w1"),), (worker("w1", reach=Lost()),)], ids=["no worker", "no copy", "lost"]
)
def test_when_nothing_can_be_seen_running_the_quota_is_released(workers: tuple[Worker, ...]) -> None:
    """A job lost with its worker would show active pods, and hold its quota, for ever."""
    patch = sole(PatchJobStatus, decide(snapshot(EVICTED, *workers, job=RUNNING_JOB)).effects)
    assert patch.patch == {"metadata": {"resourceVersion": "rv-uid-of-job"}, "status": {"active": 0, "ready": 0}}


def test_the_quota_is_held_while_the_worker_is_first_asked() -> None:
    """That it was lost when the manager was started, an hour ago by its object, says nothing about now."""
    asked = worker("w1", reach=Connecting())
    decided = decide(snapshot(EVICTED, asked, job=RUNNING_JOB))
    assert (decided.effects, decided.look_again) == ((), 60)


def test_the_outdated_status_of_a_kind_that_is_lost_does_not_count() -> None:
    """The worker's Kueue has stopped it. Its last known status says that it runs, and was written again and again."""
    stopped = worker("w1", copy_of(BEFORE, evicted=True), job_copy_of(BEFORE, status={"active": 1}), kind=Unserved())
    deleted, patch = decide(snapshot(EVICTED, stopped, job=RUNNING_JOB)).effects
    assert isinstance(deleted, DeleteJob)
    assert isinstance(patch, PatchJobStatus)
    assert patch.patch["status"] == {"active": 0, "ready": 0}


def test_an_eviction_that_another_clock_dates_back_is_stopped_before_its_quota_goes() -> None:
    """Somebody has set the clock of our host an hour ahead: what is seen running is not shown to have stopped."""
    runs = worker("w1", copy_of(BEFORE, admitted=True), job_copy_of(BEFORE, status={"active": 1}))
    decided = decide(snapshot(EVICTED, runs, job=RUNNING_JOB), at=NOW + timedelta(hours=1))
    assert not any(isinstance(effect, PatchJobStatus) for effect in decided.effects)


def test_the_quota_is_held_while_a_job_of_a_kind_that_is_lost_may_run_without_its_workload() -> None:
    """Its deletion may have been refused with the permission that was lost."""
    left = worker("w1", None, job_copy_of(BEFORE), kind=Unserved(timedelta(minutes=5)))
    seen = snapshot(EVICTED, left, job=RUNNING_JOB)
    assert words(seen) == ["delete job on w1"]
    assert decide(seen).look_again == 88, "of the pods' grace and a minute: it was evicted 2 s ago"
    over = snapshot(EVICTED, attrs.evolve(left, kind=Unserved(timedelta(minutes=15))), job=RUNNING_JOB)
    assert words(over) == ["delete job on w1", "copy job status"]


def test_the_quota_is_held_while_another_worker_still_runs_the_job() -> None:
    """Two copies ran, by whatever accident: the quota is free when both are gone."""
    other = worker("w2", None, job_copy_of(BEFORE))
    assert words(snapshot(EVICTED, worker("w1", reach=Lost()), other, job=RUNNING_JOB)) == [
        "delete job on w2",
        "copy job status",
    ]


@pytest.mark.parametrize("turned", [False, True], ids=["in this order", "in the other"])
def test_of_two_copies_the_status_of_the_one_with_pods_is_synced(turned: bool) -> None:
    """A stopped copy that hid a running one would free the quota too early, and the two would take turns for ever."""
    busy = job_copy_of(BEFORE, suspended=True, status={"active": 1})
    idle = job_copy_of(BEFORE, suspended=True, status={"active": 0})
    workers = [worker("w1", copy_of(BEFORE, evicted=True), busy), worker("w2", copy_of(BEFORE, evicted=True), idle)]
    seen = snapshot(EVICTED, *(reversed(workers) if turned else workers), job=job(status={"active": 2}))
    *deleted, patch = decide(seen).effects
    assert [effect.cluster for effect in those(DeleteJob, deleted)] == [effect.name for effect in seen.workers]
    assert isinstance(patch, PatchJobStatus)
    assert patch.patch["status"] == {"active": 1}


@pytest.mark.parametrize("last", [ClusterName("w1"), None], ids=["known", "after a restart"])
def test_its_end_counts_though_kueue_has_counted_two_evictions(last: ClusterName | None) -> None:
    """It was preempted, and before it had stopped somebody deactivated it: that is a second one of the same attempt."""
    evicted = workload(evicted="The workload is deactivated", evictions=2, spec={"active": False})
    seen = snapshot(evicted, w1(finished="Succeeded", status=COMPLETE), job=RUNNING_JOB)
    assert words(attrs.evolve(seen, last_worker=last)) == ["copy job status"]


@pytest.mark.parametrize("status", [COMPLETE, {"active": 1}], ids=["ended", "running"])
def test_who_was_offered_it_has_no_say_once_another_worker_was_recorded(status: Json) -> None:
    """A user of that worker can read the mark of the offer and make copies with it: a job that ends, or never stops."""
    finished = "Succeeded" if status is COMPLETE else None
    made = without(job_copy_of(BEFORE, status=status), MARKS_OF_JOBS)
    forged = worker("w2", copy_of(BEFORE, admitted=True, finished=finished), made)
    stopped = w1(evicted=True, suspended=True, status={"active": 0})
    seen = snapshot(EVICTED, stopped, forged, job=RUNNING_JOB)
    decided = decide(
        attrs.evolve(seen, last_worker=ClusterName("w1"), placement=Placement(ClusterName("w1"), RESERVED_AT))
    )
    patch = only(PatchJobStatus, decided.effects)
    assert patch.patch["status"] == {"active": 0, "ready": None}


def test_nothing_is_synced_while_another_copy_has_not_begun_to_stop() -> None:
    """Its pods run: the quota is not free."""
    idle = worker("w2", copy_of(BEFORE, evicted=True), job_copy_of(BEFORE, suspended=True, status={"active": 0}))
    expected = ["stop on w1", "delete job on w1 unless it is stopped", "delete job on w2"]
    assert words(snapshot(EVICTED, w1(admitted=True), idle, job=RUNNING_JOB)) == expected


def test_an_attempt_may_be_evicted_more_than_once() -> None:
    """While no daemon ran: its job, which runs, was shown to have stopped (seed 61009)."""
    twice = workload(evicted="Preempted", evictions=2)
    expected = ["stop on w1", "delete job on w1 unless it is stopped"]
    assert words(snapshot(twice, w1(admitted=True), job=RUNNING_JOB)) == expected


def test_a_job_that_is_released_is_not_written_again() -> None:
    """Nothing runs and the job says so."""
    assert decide(snapshot(EVICTED, worker("w1"), job=job(status={"active": 0}))).effects == ()


def test_a_workload_evicted_while_its_job_cannot_be_seen_is_cleaned_all_the_same() -> None:
    """The job's cache fills later; what is known can be done."""
    assert words(snapshot(EVICTED, worker("w1", copy_of(BEFORE)), job={})) == ["delete workload on w1"]


def test_a_copy_without_owner_is_cleaned() -> None:
    """A Workload that names no job has none to stop."""
    local = workload(evicted="Preempted", evictions=1, owner=None)
    assert words(snapshot(local, worker("w1", copy_of(local, admitted=True)))) == ["delete workload on w1"]


LATER, EARLIER = timestamp(NOW - timedelta(minutes=5)), timestamp(NOW - timedelta(hours=5))


@pytest.mark.parametrize(
    ("reason", "on_job", "on_workload", "row"),
    [
        ("DeactivatedDueToAdmissionCheck", LATER, None, "retry asked: released"),
        ("DeactivatedDueToAdmissionCheck", LATER, LATER, "no quota: released"),
        ("DeactivatedDueToAdmissionCheck", EARLIER, None, "no quota: released"),
        ("DeactivatedDueToAdmissionCheck", "now", None, "no quota: released"),
        ("DeactivatedDueToAdmissionCheck", None, LATER, "no quota: released"),
        ("Deactivated", LATER, None, "no quota: released"),
    ],
    ids=["asked", "counted", "before", "no time", "not on the job", "off by hand"],
)
def test_what_a_check_has_rejected_is_made_active_once_for_each_time_its_user_asks(
    reason: str, on_job: str | None, on_workload: str | None, row: str
) -> None:
    local, asked = workload(quota=False, spec={"active": False}), job()
    local["status"]["conditions"].append(condition("Evicted", reason))
    for obj, at in ((local, on_workload), (asked, on_job)):
        obj["metadata"]["annotations"] = {RETRY_ANNOTATION: at} if at else {}
    decided = decide(snapshot(local, worker("w1"), job=asked))
    assert decided.row == row
    patches = [effect.patch for effect in those(PatchWorkload, decided.effects)]
    noted = {"uid": "uid-local", "annotations": {RETRY_ANNOTATION: on_job}}
    assert patches == ([{"metadata": noted, "spec": {"active": True}}] if row == "retry asked: released" else [])


def test_once_a_job_alone_shows_its_end_nothing_of_it_stays_elsewhere() -> None:
    """What has ended is not run again, so nobody needs what was offered: it goes with the first write of that end."""
    ended = worker("w1", None, job_copy_of(BEFORE, status=COMPLETE))
    offered = worker("w2", copy_of(BEFORE, admitted=True))
    assert words(snapshot(EVICTED, ended, offered, job=RUNNING_JOB)) == ["copy job status", "delete workload on w2"]


@pytest.mark.parametrize(
    ("recorded", "row"),
    [(None, "ends meanwhile"), (Placement(ClusterName("w1"), RESERVED_AT), "ended before")],
    ids=["nobody saw the record", "another was recorded"],
)
def test_the_end_of_a_job_of_ours_counts_wherever_it_is(recorded: Placement | None, row: str) -> None:
    """Only a recorded worker gets our mark of a job, and an eviction erases the record. It is not run again."""
    ended = worker("w2", copy_of(BEFORE, finished="Succeeded"), job_copy_of(BEFORE, status=COMPLETE))
    shown = job(suspended=True, status=COMPLETE)
    seen = snapshot(EVICTED, worker("w1"), ended, job=shown, quiet_for=timedelta(minutes=1))
    decided = decide(attrs.evolve(seen, last_worker=ClusterName("w1"), placement=recorded))
    assert decided.row == f"evicted: {row}: finish"


@pytest.mark.parametrize(
    ("copy", "waits"),
    [({"admitted": True}, True), ({"evicted": True}, False), ({}, False)],
    ids=["admitted", "stopped", "not admitted"],
)
def test_an_offered_copy_may_have_a_job_where_jobs_are_hidden(copy: CopyFacts, waits: bool) -> None:
    """Its worker may have been recorded, and the eviction has erased that: its Kueue is to stop it first."""
    hides = worker("w2", copy_of(BEFORE, **copy), kind=Unserved(timedelta(hours=1), seen=False))
    decided = decide(snapshot(EVICTED, worker("w1"), hides, job=RUNNING_JOB))
    assert (decided.row == "evicted: may run unseen") is waits
    assert any(isinstance(effect, PatchJobStatus) for effect in decided.effects) is not waits


@pytest.mark.parametrize("minutes", [1, 5])
def test_its_quota_is_held_no_longer_for_an_end_whose_job_is_out_of_sight(minutes: int) -> None:
    """Its worker was lost, and is read again: its Workloads come first (seed 22205)."""
    told = worker("w1", copy_of(BEFORE, finished="Succeeded", owned=True), kind=Syncing())
    seen = snapshot(EVICTED, told, job=RUNNING_JOB, quiet_for=timedelta(seconds=20))
    decided = decide(seen, at=NOW + timedelta(minutes=minutes))
    assert decided.row == f"evicted: ends meanwhile: {'job out of sight' if minutes == 1 else 'finish'}"


class TestStoppedHereWithoutEviction:
    """The manager's job is suspended while its status says that it runs."""

    LOCAL = workload(cluster="w1", check="Ready")

    def seen(self, local: Json, minutes: int) -> Snapshot:
        there = worker("w1", copy_of(self.LOCAL, admitted=True), job_copy_of(self.LOCAL))
        runs = job(status={"active": 1})
        return snapshot(local, there, job=runs, unchanged_here_for=timedelta(minutes=minutes))

    @pytest.mark.parametrize("minutes", [0, 1])
    def test_what_its_kueue_has_yet_to_start_runs_on(self, minutes: int) -> None:
        """The check is Ready, its Workload not Admitted yet: KubeRay says early that it runs, and it began anew."""
        assert "stop on w1" not in words(self.seen(self.LOCAL, minutes))

    @pytest.mark.parametrize("evictions", [0, 1])
    def test_a_slice_takes_over_what_runs_and_a_later_attempt_of_it_does_not(self, evictions: int) -> None:
        local = workload(cluster="w1", check="Ready", elastic=True, replaces="slice-0", evictions=evictions)
        assert ("stop on w1" in words(self.seen(local, 1))) is (evictions == 0)

    @pytest.mark.parametrize("minutes", [0, 1])
    def test_what_it_has_started_stops_after_a_moment(self, minutes: int) -> None:
        local = workload(cluster="w1", check="Ready", admitted=True)
        assert ("stop on w1" in words(self.seen(local, minutes))) is (minutes == 1)


class TestActiveAgain:
    """Kueue v0.19.2 has deactivated it for a cause, and somebody has made it active again."""

    def requeued(self, reason: str, *, active: bool) -> list[Json]:
        local = workload(quota=False, evicted="The workload is deactivated", spec={"active": active})
        left_out = {"type": "Requeued", "status": "False", "reason": reason, "message": "The workload is deactivated"}
        local["status"]["conditions"].append(left_out)
        writes = those(ApplyStatus, decide(snapshot(local, job=job())).effects)
        made = (entry for write in writes for entry in write.object["status"]["conditions"])
        return [entry for entry in made if entry["type"] == "Requeued" and entry["status"] == "True"]

    @pytest.mark.parametrize("cause", ["AdmissionCheck", "RequeuingLimitExceeded"])
    def test_it_is_queued_again(self, cause: str) -> None:
        """Kueue forgot that, and it was said to wait for quota for ever; `multikueue retry` did no more."""
        (again,) = self.requeued(f"DeactivatedDueTo{cause}", active=True)
        assert again["reason"] == "Reactivated"

    @pytest.mark.parametrize(
        ("reason", "active"), [("DeactivatedDueToAdmissionCheck", False), ("PodsReadyTimeout", True)]
    )
    def test_what_is_switched_off_or_rests_is_left_alone(self, reason: str, active: bool) -> None:
        assert self.requeued(reason, active=active) == []
