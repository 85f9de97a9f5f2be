"""What is stopped: its job is stopped where it runs, then the manager's Kueue is shown that nothing runs.

Kueue keeps the quota of a Workload that it evicts until the manager's job shows no active pods. So the status synced
here decides when the quota is free; without quota, the next row removes the copies.

Somebody may also stop it without an eviction, by what he writes on a job, or by deleting the Workload. Whoever may
write the status of a job can settle its end, as Argo CD's menu does. A Kueue whose job does not match its Workload any
more suspends the job, deletes the Workload, and waits with the next one until the job shows no run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.adapter import Hold
from multikueue.core.model.conditions import changed_at, parse_timestamp
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.marks import Proof
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, is_terminating, uid
from multikueue.core.model.started import runs_here
from multikueue.core.model.workloads import is_live
from multikueue.core.workload import ending
from multikueue.core.workload.check_updates import finish, note_last_worker, take_off_hold
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.leftovers import quota_kept_for, unseen
from multikueue.core.workload.removal import remove, remove_all, stop
from multikueue.core.workload.seen.graces import GONE_AGAIN, KUEUE_GRACE, STEADY, STOP, SYNC_GRACE, TOLD_AFTER
from multikueue.core.workload.seen.runs import may_run_anywhere, may_run_of_gone, possible_runs, until_end_counts
from multikueue.core.workload.seen.shown import names_of
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import Way, always, first_of, named

MOST_AT_ONCE: Final = 8
"""So many evictions back a copy's attempt is looked for: Kueue may count several before it frees the quota."""


@once
def _jobs_by_worker(situation: Situation) -> tuple[tuple[Worker, list[Json]], ...]:
    """The workers in reach, each with the jobs that are being stopped there."""
    return tuple((worker, _own_jobs(situation, worker)) for worker in situation.workers if worker.reachable)


@once
def _stopping(situation: Situation) -> tuple[Json, ...]:
    """The jobs that have begun to stop."""
    return tuple(
        job
        for worker, jobs in _jobs_by_worker(situation)
        for job in jobs
        if worker.copy is None or worker.copy_facts.is_stopping or is_terminating(job)
    )


def _all_seen_have_begun(situation: Situation) -> bool:
    """Whether all that are seen have."""
    return len(_stopping(situation)) == sum(len(jobs) for _, jobs in _jobs_by_worker(situation))


@once
def _quota_left(situation: Situation) -> timedelta:
    """For how much longer its quota is held. It is stopped first, whatever clocks say."""
    begun = _all_seen_have_begun(situation) and not possible_runs(situation)
    return quota_kept_for(situation) if begun else max(quota_kept_for(situation), STOP - situation.snapshot.quiet_for)


@once
def _stops(situation: Situation) -> tuple[Effect, ...]:
    """What stops it on the workers."""
    return tuple(effect for worker, _ in _jobs_by_worker(situation) for effect in _take_away(situation, worker))


def _end_meanwhile(situation: Situation) -> Plan | None:
    return next(filter(None, (_end_on(situation, worker) for worker in situation.workers)), None)


def _wait_for_stop(situation: Situation) -> Plan:
    """While one has not begun to stop, or may run where nobody sees it, it is waited for as long as its quota may be
    held.
    """
    unseen_runs = (leftover for worker in situation.workers for leftover in unseen(situation, worker))
    warnings = [AnnounceWorkload("Warning", f"Waiting for {leftover}") for leftover in unseen_runs]
    stopped = Plan((*note_last_worker(situation), *_stops(situation), *warnings))
    return stopped.within(_quota_left(situation), *(run.until for run in possible_runs(situation)))


def _show_end(situation: Situation, *stopping: Json) -> Plan:
    """Show of the manager's job what these copies show, or that nothing runs. What is kept of it on the Workload may be
    refused, and keeps no quota then.
    """
    shown = _sync_stopped(situation, stopping)
    return Plan((*_stops(situation), *shown, *note_last_worker(situation))).within(_quota_left(situation) or None)


stop_evicted: Final = first_of(
    Way("ends meanwhile", always, _end_meanwhile),
    Way("ended before", always, ending.end_of_earlier_attempt),
    Way("waited long enough", lambda seen: not _quota_left(seen), _show_end),
    Way("may run unseen", lambda seen: bool(possible_runs(seen)), _wait_for_stop),
    Way("ends", _all_seen_have_begun, lambda seen: _show_end(seen, *_stopping(seen))),
    Way("is to stop", always, _wait_for_stop),
)
"""Stop the copy that runs, remove those that do not, and sync how it ends."""


def _own_jobs(situation: Situation, worker: Worker) -> list[Json]:
    """The jobs on a worker that are being stopped."""
    if not (worker.in_sight and _may_have_it(situation, worker)):
        return []  # somebody else's: it goes, and nothing waits for it; or what is known of its jobs is out of date
    # Once the copy is gone, what others of a group run there is not this Workload's.
    others = situation.shared_job_on(worker) if worker.copy is None else None
    return [job for job in situation.jobs_on(worker) if job is not others]


def _end_on(situation: Situation, worker: Worker) -> Plan | None:
    """Show on the manager how its job ended there while it was being evicted: what has run is not run again.

    Its Workload copy says so, or the job alone was seen to end by itself.
    """
    copy, jobs = worker.copy, situation.jobs_on(worker)
    has_ended = (
        worker.copy_facts.has_ended and worker.copy_facts.finish_reason != workloads.SLICE_REPLACED
    )  # else its job goes on
    if copy is not None and worker.reachable and has_ended and _is_of_attempt(situation, worker, copy):
        if not worker.in_sight and (left := until_end_counts(situation, worker)):
            return Plan(row="job out of sight").within(left)  # its jobs are read after its Workloads
        return ending.only_there(situation, worker, ending.end_as(situation, copy, jobs))
    outcome = ending.own_end(situation, jobs)
    if outcome is None or not all(_is_of_attempt(situation, worker, job) for job in jobs):
        return None
    return ending.sync_outcome(situation, jobs, outcome)


def is_being_stopped(situation: Situation) -> bool:
    """Whether a worker has something of the attempt that the manager is evicting."""
    return any(not worker.is_empty and _may_have_it(situation, worker) for worker in situation.workers)


def activate(situation: Situation) -> Plan | None:
    """A check had it deactivated, and since then its user has asked for it, on the job: that he may change.

    What was asked is noted on it: somebody may deactivate it after that. Of a group any of its pods may say it.
    """
    if situation.facts.has_quota or situation.facts.is_active or not workloads.was_rejected(situation.workload):
        return None
    texts = (annotations_of(job).get(RETRY_ANNOTATION) for job in situation.snapshot.jobs.values())
    times = {at: text for text in texts if (at := parse_timestamp(text)) is not None}
    last, since = max(times, default=None), changed_at(situation.workload, "Evicted")
    noted = annotations_of(situation.workload).get(RETRY_ANNOTATION)
    if last is None or since is None or last < since or times[last] == noted:
        return None
    metadata: Json = {"uid": uid(situation.workload), "annotations": {RETRY_ANNOTATION: times[last]}}
    patch = PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata, "spec": {"active": True}})
    return clean_up_unadmitted(situation).also(patch)


def clean_up_unadmitted(situation: Situation) -> Plan:
    """It has no quota: remove the copies, and show of its job that it has stopped, once no copy may run.

    Kueue takes the quota of pods at once, whatever they show. Of other kinds what shows a run still would be taken for
    one that its Kueue has stopped, once this has quota again. What a job shows that others have is theirs.

    Its Kueue may also hold it for what its job says: that is taken back once the job's spec has changed, and then it is
    queued. Kueue itself leaves on hold what has stopped to say so, but for StatefulSets.
    """
    cleaned = ending.clean_up(situation).also(*note_last_worker(situation))
    job, adapter = situation.job, situation.snapshot.adapter
    hold = adapter.hold_here(job) if job is not None and adapter is not None else Hold.UNKNOWN
    over = hold is not Hold.ON and not situation.is_shared and not may_run_anywhere(situation)
    if over or hold is Hold.OUTDATED:
        cleaned = cleaned.also(*_sync_stopped(situation, ()))
    if hold is not Hold.OFF or not situation.facts.is_on_hold:
        return named("released" if over else "shown as it is", cleaned)
    if (left := STEADY - situation.snapshot.quiet_for) > timedelta(0):  # one of the two may be out of date
        return named("on hold", cleaned.within(left))
    return named("queue it again", cleaned.also(take_off_hold(situation)))


def end_deleted_by_pods(situation: Situation) -> Plan | None:
    """All pods of a group are on their way out on the manager, and none runs anywhere, nor may.

    Kueue holds them all the same, as it waits for others in their place, and would give the group quota again. So it is
    finished, unless another pod comes: Kueue lets go of the pods of a finished group, and they take it along.
    """
    pods, worker = situation.snapshot.jobs.values(), situation.recorded_or_none
    if not situation.facts.has_members or situation.facts.is_finished or not pods:
        return None
    hidden = situation.recorded_on is not None and (worker is None or not worker.in_sight)
    if hidden or not all(is_terminating(pod) and not runs_here(pod) for pod in pods) or may_run_anywhere(situation):
        return None
    cleaned = ending.clean_up(situation)
    if situation.snapshot.quiet_for < STEADY:
        return named("not for long", cleaned.within(STEADY))
    end = finish(situation, "Failed", "All pods of the group were deleted")
    return Plan((end, *cleaned.effects), cleaned.look_again, row="finish")


def _take_away(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Remove what runs. A set that several Workloads share is another's as soon as this one has no quota."""
    if situation.facts.component_index is None:
        yield from remove(situation, worker)
    elif not worker.copy_facts.is_stopping:
        yield from stop(situation, worker)


def _may_have_it(situation: Situation, worker: Worker) -> bool:
    """Whether what a worker shows may be the job that is being stopped: it ran there, or a mark proves it."""
    if situation.last_worker in names_of(situation, worker):
        return True
    return any(
        _is_of_attempt(situation, worker, copy) for copy in filter(None, (*situation.jobs_on(worker), worker.copy))
    )


def _is_of_attempt(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether a copy is of the attempt that ends: by its mark, or because nothing speaks against it where it ran.

    Where it was recorded, no other worker has run it: users of one that was offered it can read the mark of the offer.
    The job of a group, or of an elastic job, may have the mark of another of its Workloads.
    """
    elsewhere = _recorded_on(situation) not in (None, *names_of(situation, worker))
    proofs = set() if elsewhere else set(_proofs(situation, worker, copy, situation.workload))
    if Proof.EXACT in proofs or (Proof.NONE in proofs and situation.last_worker in names_of(situation, worker)):
        return True
    return any(Proof.EXACT in _proofs(situation, worker, copy, sibling) for sibling in situation.snapshot.siblings)


def _recorded_on(situation: Situation) -> ClusterName | None:
    """The worker that was recorded for the attempt that ends; None: this process has not seen that."""
    last, began = situation.snapshot.placement, situation.facts.reserved_at
    since = parse_timestamp(last.since) if last is not None else None
    return last.worker if last is not None and since is not None and began is not None and since >= began else None


def _proofs(situation: Situation, worker: Worker, copy: Json, workload: Json) -> Iterator[Proof]:
    """What its mark says of the attempts at a Workload that may end now.

    Kueue counts an eviction as it begins, and may count several before the quota is free: a copy of the attempt that
    they end is marked with so many less.
    """
    for evictions_ago in range(min(workloads.evictions(workload), MOST_AT_ONCE) + 1):
        ended = workloads.attempt(workload, evictions_ago=evictions_ago)
        for name in names_of(situation, worker):
            yield situation.marks.proof(copy, workload, name, ended)


def _sync_stopped(situation: Situation, stopping: Sequence[Json]) -> Iterator[Effect]:
    """Sync the status of each of the manager's jobs from its copy, or show that nothing of it runs.

    What shows that already is not shown to run again: its quota is free, or about to be.
    """
    for _, local in sorted(situation.snapshot.jobs.items()) if situation.snapshot.adapter is not None else ():
        copies = [job for job in stopping if situation.job_of(job) is local]
        if not copies:
            yield from show_stopped(situation, local)
            continue
        # The copy whose status counts, as a rule the only one. Of several, one that still has pods.
        copy = next((job for job in copies if situation.adapter.release_patch(job) is not None), copies[0])
        shows_run = situation.traits.keeps_check_pending or situation.adapter.release_patch(local) is not None
        if shows_run or situation.adapter.release_patch(copy) is None:  # else it would show a run again
            yield from ending.sync_status(situation, [copy])


def show_stopped(situation: Situation, local: Json) -> Iterator[Effect]:
    """No copy runs: show that on the manager's job, or Kueue would hold its quota for ever.

    A pod that was started on the manager itself, before its queue had our check, does run: its status stays.
    """
    if situation.traits.keeps_check_pending and runs_here(local):
        return
    yield from ending.patch_status(situation, local, situation.adapter.release_patch(local))


def end_settled(situation: Situation) -> Plan | None:
    """Its job shows how it can only end, and no copy does: somebody asks for it, or it has ended.

    Stop what runs of it; then its job ends as it can only end, and was perhaps never started.
    """
    job, adapter = situation.job, situation.snapshot.adapter
    if job is None or adapter is None or (end := adapter.settled_end(job)) is None or situation.facts.has_members:
        return None
    if situation.facts.gives_quota_back and not quota_kept_for(situation):
        return None  # its quota is given back first
    if any(adapter.settled_end(copy) for worker in situation.workers for copy in situation.jobs_on(worker)):
        return None
    patch = adapter.settled_patch(job, situation.now) if situation.snapshot.refused_for < SYNC_GRACE else None
    shown = tuple(ending.patch_status(situation, job, patch))
    if shown or situation.snapshot.quiet_for < KUEUE_GRACE:
        return _stop_first(situation, Plan(shown, row="show it").within(KUEUE_GRACE))
    return _stop_first(situation, Plan((finish(situation, end.reason, end.message),), row="finish"))


def stop_here(situation: Situation) -> Plan | None:
    """The manager's Kueue has suspended a job that runs, and has not evicted its Workload.

    Stop what runs of it, and show that; nothing else is written on a job that its Kueue is stopping. What a person has
    suspended Kueue starts again within `KUEUE_GRACE`: its Workload stays as it is, and so does its run.
    """
    job, adapter, worker = situation.job, situation.snapshot.adapter, situation.recorded_or_none
    if job is None or adapter is None or situation.recorded_on is None or not adapter.is_stopped_here(job):
        return None
    if worker is not None and ending.own_end(situation, situation.jobs_on(worker)) is not None:
        return None  # it has ended before that: its end is shown
    if situation.facts.is_admitted and situation.snapshot.unchanged_here_for < KUEUE_GRACE:
        return Plan(row="Kueue starts it again or deletes its Workload").within(KUEUE_GRACE)
    return _stop_first(situation, Plan(tuple(show_stopped(situation, job)), row="release it"))


def _stop_first(situation: Situation, then: Plan) -> Plan:
    """Remove the copies; what follows is done once no job of it may run on a worker."""
    stopped = tuple(remove_all(situation))
    if may_run_anywhere(situation):
        return Plan(stopped, row="stop it").within(*(run.until for run in possible_runs(situation)))
    return attrs.evolve(then, effects=(*stopped, *then.effects))


def _release_stopped(situation: Situation) -> Plan:
    """It is being deleted: its job is shown to run no more once that is so. No event tells when a loss is long.

    Kueue does not let go of one whose job has ended while that was being stopped, unless it is finished.
    """
    end = None if situation.facts.is_finished else ending.own_end(situation, _jobs_that_stay(situation))
    late = [finish(situation, end.reason, end.message)] if end and situation.snapshot.quiet_for >= KUEUE_GRACE else []
    placed = situation.recorded_on or situation.facts.is_admitted or situation.facts.is_evicted  # records are erased
    if situation.snapshot.check is not None and placed and not may_run_anywhere(situation):
        return named("released", _show_all_stopped(situation).also(*late).within(KUEUE_GRACE if end else None))
    return named("stops first", ending.clean_up(situation).within(*(run.until for run in possible_runs(situation))))


def _show_all_stopped(situation: Situation) -> Plan:
    released = (effect for job in _jobs_that_stay(situation) for effect in show_stopped(situation, job))
    return ending.clean_up(situation).also(*released)


def _jobs_that_stay(situation: Situation) -> list[Json]:
    return [job for job in situation.snapshot.jobs.values() if not is_terminating(job)]


def _wait_for_run_of_gone(situation: Situation) -> Plan | None:
    """No Workload tells which worker had the job: none may show a copy of it."""
    stay, quiet_for = _jobs_that_stay(situation), situation.snapshot.quiet_for
    having = next((worker.name for worker in situation.workers if may_run_of_gone(situation, worker)), None)
    if not stay or having is None:
        return None
    why = f'Waiting for worker cluster "{having}": it may still run a job whose Workload is gone'
    waits = [AnnounceWorkload("Warning", why, about=job) for job in stay if quiet_for >= TOLD_AFTER]
    return ending.clean_up(situation).within(GONE_AGAIN).also(*waits)


def _job_is_anothers(situation: Situation) -> bool:
    return situation.snapshot.adapter is None or any(map(is_live, situation.snapshot.siblings))


clean_up_gone: Final = first_of(
    Way("its job is another's", _job_is_anothers, ending.clean_up),
    Way("has ended", always, ending.end_of_gone),
    Way("goes", lambda seen: seen.snapshot.workload is not None, _release_stopped),
    Way("may still run", always, _wait_for_run_of_gone),
    Way("released", always, _show_all_stopped),
)
"""It was deleted, or is being deleted: remove the copies, and show of its job that it has ended, or runs no more.

Kueue releases the one that goes, and goes on with the next one, only once the job shows that nothing runs.
"""
