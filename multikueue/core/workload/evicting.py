"""Eviction and other stops: stop the job where it runs, then show on the manager's job that nothing runs.

Kueue keeps the quota of a Workload that it evicts until the manager's job shows no active pods. So the status synced
here decides when the quota is free; without quota, the row `no quota` removes the copies.

A job is also stopped without an eviction. Its Workload is deleted. Or the status of the manager's job settles its end,
which whoever may write that status can do, as Argo CD's menu does. Or the job does not match its Workload any more:
then the manager's Kueue suspends the job, deletes the Workload, and makes the next one once the job shows no run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.adapter import OnHold, Outcome
from multikueue.core.model.conditions import changed_at, parse_timestamp
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, is_terminating, uid
from multikueue.core.model.started import runs_here
from multikueue.core.workload import ending
from multikueue.core.workload.check_updates import finish, note_last_worker, requeue, take_off_hold
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.leftovers import end_past_waits, quota_kept_for, unseen
from multikueue.core.workload.removal import remove_all, stop
from multikueue.core.workload.seen.graces import GONE_AGAIN, RESUMING, STEADY, STOP, SYNC_GRACE, TOLD_AFTER
from multikueue.core.workload.seen.runs import may_run_anywhere, may_run_of_gone, possible_runs, until_end_counts
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import Way, first_of, given, named, otherwise


@once
def _jobs_to_stop(situation: Situation) -> tuple[tuple[Json, bool], ...]:
    """The job copies in sight that are to stop, each with whether it has begun to."""
    pairs = ((worker, job) for worker in situation.workers for job in _jobs_to_stop_on(situation, worker))
    return tuple((job, worker.facts.is_stopping or is_terminating(job)) for worker, job in pairs)


def _all_have_begun_to_stop(situation: Situation) -> bool:
    return all(begun for _, begun in _jobs_to_stop(situation))


@once
def _quota_left(situation: Situation) -> timedelta:
    """For how much longer the eviction holds quota: for a run that has not begun to stop at least `STOP`, whatever
    clocks say."""
    begun = _all_have_begun_to_stop(situation) and not possible_runs(situation)
    return quota_kept_for(situation) if begun else max(quota_kept_for(situation), STOP - situation.snapshot.quiet_for)


def _end_meanwhile(situation: Situation) -> ending.End | None:
    """How the job has ended while its Workload was being evicted; None: it has not."""
    return next(filter(None, (_end_on(situation, worker) for worker in situation.workers)), None)


def _wait_for_stop(situation: Situation) -> Plan:
    """A job has not begun to stop, or may run unseen: wait for it, but only for as long as quota may be held."""
    unseen_runs = (leftover for worker in situation.workers for leftover in unseen(situation, worker))
    warnings = [AnnounceWorkload("Warning", f"Waiting for {leftover}") for leftover in unseen_runs]
    stopped = Plan((*note_last_worker(situation), *_stop_all(situation), *warnings))
    return stopped.within(_quota_left(situation), *(run.until for run in possible_runs(situation)))


def _sync_what_stops(situation: Situation, *stopping: Json) -> Plan:
    """Sync the status of these copies to the manager's jobs; where none is left, show that nothing runs.

    The note of the last worker comes last: where that write is refused, the status has been written all the same.
    """
    shown = _sync_or_release(situation, stopping)
    return Plan((*_stop_all(situation), *shown, *note_last_worker(situation))).within(_quota_left(situation) or None)


stop_evicted: Final = first_of(
    Way("ends meanwhile", *given(_end_meanwhile, ending.show_end)),
    Way("ended before", *given(ending.earlier_end, ending.show_end)),
    Way("waited long enough", lambda seen: not _quota_left(seen), _sync_what_stops),
    Way("may run unseen", lambda seen: bool(possible_runs(seen)), _wait_for_stop),
    Way("ends", _all_have_begun_to_stop, lambda seen: _sync_what_stops(seen, *(job for job, _ in _jobs_to_stop(seen)))),
    Way("is to stop", otherwise, _wait_for_stop),
)
"""An eviction: stop the job where it runs, remove copies that do not run, and sync the status meanwhile."""


def _jobs_to_stop_on(situation: Situation, worker: Worker) -> list[Json]:
    """The job copies on a worker that are to stop."""
    if not (worker.in_sight and _may_have_run_it(situation, worker)):
        return []  # another's job is removed and not waited for; out of sight, what is known of jobs is out of date
    # Once the copy is gone, what others of a group run there is not this Workload's.
    others = situation.shared_job_on(worker) if worker.copy is None else None
    return [job for job in situation.jobs_on(worker) if job is not others]


def _end_on(situation: Situation, worker: Worker) -> ending.End | None:
    """How the job ended there, by its Workload copy, or by the job alone where it ended by itself; None: it did not."""
    copy, jobs = worker.copy, situation.jobs_on(worker)
    # The job of a slice that was replaced goes on.
    has_ended = worker.facts.has_ended and worker.facts.finish_reason != workloads.SLICE_REPLACED
    if copy is not None and worker.reachable and has_ended and situation.whose(worker, copy).runs_for_it:
        # Its jobs are read after its Workloads; for them its quota is held no longer than for a run.
        left = timedelta(0) if worker.in_sight else min(until_end_counts(situation, worker), _quota_left(situation))
        return ending.End(worker, jobs, worker.facts.outcome, left)
    outcome = ending.own_end(situation, jobs)
    if outcome is None or not all(situation.whose(worker, job).runs_for_it for job in jobs):
        return None
    return ending.End(worker, jobs, outcome)


def is_being_stopped(situation: Situation) -> bool:
    """Whether a worker has something of the attempt that the manager is evicting."""
    return any(not worker.is_empty and _may_have_run_it(situation, worker) for worker in situation.workers)


def retry_asked(situation: Situation) -> str:
    """When its user has asked for another try since a check was Rejected, which deactivates the Workload; empty: never.

    `multikueue retry` annotates the job, as users may not write Workloads; of a group any pod counts.
    """
    if situation.facts.has_quota or situation.facts.is_active or not workloads.was_rejected(situation.workload):
        return ""
    texts = (annotations_of(job).get(RETRY_ANNOTATION) for job in situation.snapshot.jobs.values())
    times = {at: text for text in texts if (at := parse_timestamp(text)) is not None}
    last, since = max(times, default=None), changed_at(situation.workload, "Evicted")
    noted = annotations_of(situation.workload).get(RETRY_ANNOTATION)
    asked = times.get(last) if last is not None and since is not None and last >= since else None
    return "" if asked is None or asked == noted else asked


def activate(situation: Situation, asked: str) -> Plan:
    """Activate the Workload, and note the request on it: a later deactivation must not meet the same request again."""
    metadata: Json = {"uid": uid(situation.workload), "annotations": {RETRY_ANNOTATION: asked}}
    patch = PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata, "spec": {"active": True}})
    return clean_up_unadmitted(situation).also(patch)


def clean_up_unadmitted(situation: Situation) -> Plan:
    """It has no quota: remove the copies; once no copy may run, show on its job that nothing runs.

    Kueue takes the quota of pods at once, whatever their status shows. A job of another kind that still shows a run
    would seem to be stopped by the manager's Kueue once it has quota again. The status of a shared job stays.

    The Workload may be on hold because of its job's status. That status is reset once the job's spec was changed; then
    the Workload is queued again. Kueue itself would leave it on hold, but for StatefulSets.
    """
    written = note_last_worker(situation) or tuple(requeue(situation)) or tuple(end_past_waits(situation))
    cleaned = ending.clean_up(situation).also(*written)
    job = situation.job
    hold = situation.adapter.on_hold_here(job) if job is not None else OnHold.UNKNOWN
    over = hold is not OnHold.YES and not situation.is_shared and not may_run_anywhere(situation)
    if over or hold is OnHold.OUTDATED:
        cleaned = cleaned.also(*_sync_or_release(situation, ()))
    if hold is not OnHold.NO or not situation.facts.is_on_hold:
        return named("released" if over else "shown as it is", cleaned)
    # One of the two may be out of date, or is about to be.
    if (left := STEADY - (timedelta(0) if written else situation.snapshot.quiet_for)) > timedelta(0):
        return named("on hold", cleaned.within(left))
    return named("queue it again", cleaned.also(take_off_hold(situation)))


def are_pods_deleted(situation: Situation) -> bool:
    """Whether all pods of a group are being deleted on the manager, and none may run anywhere."""
    pods, worker = situation.snapshot.jobs.values(), situation.recorded_or_none
    if not situation.facts.has_members or situation.facts.is_finished or not pods:
        return False
    hidden = situation.recorded_on is not None and (worker is None or not worker.in_sight)
    go = all(is_terminating(pod) and not runs_here(pod) for pod in pods)
    return go and not hidden and not may_run_anywhere(situation)


def end_deleted_by_pods(situation: Situation) -> Plan:
    """Finish the Workload of a group whose pods are all being deleted, unless another pod comes.

    Kueue keeps its finalizers on these pods, as it waits for others in their place, and would give the group quota
    again. Of a finished group it takes them off, and the Workload goes with its pods.
    """
    cleaned = ending.clean_up(situation)
    if situation.snapshot.quiet_for < STEADY:
        return named("not for long", cleaned.within(STEADY))
    end = finish(situation, Outcome("Failed", "All pods of the group were deleted"))
    return Plan((end, *cleaned.effects), cleaned.look_again, row="finish")


def _stop_all(situation: Situation) -> Iterator[Effect]:
    """Remove the copies. A job that several Workloads share is stopped, not deleted: the others may have it next."""
    if situation.facts.component_index is None:
        yield from remove_all(situation)
        return
    for worker in situation.workers:
        if worker.reachable and not worker.facts.is_stopping:
            yield from stop(situation, worker)


def _may_have_run_it(situation: Situation, worker: Worker) -> bool:
    """Whether a worker may have run the attempt that is being stopped: it was recorded last, or a mark proves it."""
    had_it = situation.last_worker in situation.names_of(worker)
    shown = filter(None, (*situation.jobs_on(worker), worker.copy))
    return had_it or any(situation.whose(worker, copy).runs_for_it for copy in shown)


def _sync_or_release(situation: Situation, stopping: Sequence[Json]) -> Iterator[Effect]:
    """Sync the status of each of the manager's jobs from its copy; without a copy, show that nothing runs.

    A job that shows this already does not show a run again: its quota is free, or about to be.
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

    The status of a pod that was started on the manager, before its queue had our check, stays: it does run.
    """
    if situation.traits.keeps_check_pending and runs_here(local):
        return
    yield from ending.patch_status(situation, local, situation.adapter.release_patch(local))


def settled_end(situation: Situation) -> tuple[Json, Outcome] | None:
    """The manager's job whose status settles how it ends, and that end, while no copy's does: somebody asks for this
    end, or the job has ended. An eviction that still holds quota comes first."""
    job = situation.job
    end = situation.adapter.settled_end(job) if job is not None else None
    if job is None or end is None or situation.facts.has_members:
        return None
    copies = (copy for worker in situation.workers for copy in situation.jobs_on(worker))
    gives_back = situation.facts.gives_quota_back and not quota_kept_for(situation)
    return None if gives_back or any(map(situation.adapter.settled_end, copies)) else (job, end)


def end_settled(situation: Situation, settled: tuple[Json, Outcome]) -> Plan:
    """Stop the copies; then write the settled end on the manager's job, which may never have been started. Kueue has
    time to finish the Workload of a job that shows its end.
    """
    (job, end), adapter = settled, situation.adapter
    patch = adapter.settled_patch(job, situation.now) if situation.snapshot.refused_for < SYNC_GRACE else None
    shown = tuple(ending.patch_status(situation, job, patch))
    again = ending.finished_in(situation, shown)
    shows, ends = Plan(shown, row="show it").within(again), Plan([finish(situation, end)], row="finish")
    left = quota_kept_for(situation) if situation.facts.gives_quota_back else None
    return _stop_first(situation, shows if again else ends).within(left)


def job_stopped_here(situation: Situation) -> Json | None:
    """The running job that the manager's Kueue has suspended without evicting its Workload; None: there is none, or it
    had ended before, and its end is synced.

    Kueue starts a job when its Workload is Admitted. Before that it is suspended anyway, but for a slice that takes
    over a running job.
    """
    job, worker = situation.job, situation.recorded_or_none
    if job is None or situation.recorded_on is None or not situation.adapter.is_stopped_here(job):
        return None
    has_ended = worker is not None and ending.own_end(situation, situation.jobs_on(worker)) is not None
    takes_over = workloads.replaces_slice(situation.workload) and not workloads.evictions(situation.workload)
    started = situation.facts.is_admitted or situation.check_stays_pending or takes_over
    return job if started and not has_ended else None


def stop_here(situation: Situation, job: Json) -> Plan:
    """Stop the copies, and show that nothing runs; nothing else is written on a job that its Kueue is stopping.

    A job that a person has suspended is started again by Kueue within `RESUMING`: it runs on, with the same Workload.
    """
    if situation.snapshot.unchanged_here_for < RESUMING:
        return Plan(row="Kueue starts it again or deletes its Workload").within(RESUMING)
    return _stop_first(situation, Plan(show_stopped(situation, job), row="release it"))


def _stop_first(situation: Situation, then: Plan) -> Plan:
    """Remove the copies; do `then` once no job of the Workload may run on a worker."""
    stopped = tuple(remove_all(situation))
    if may_run_anywhere(situation):
        return Plan(stopped, row="stop it").within(*(run.until for run in possible_runs(situation)))
    return attrs.evolve(then, effects=(*stopped, *then.effects))


def _release_stopped(situation: Situation) -> Plan:
    """The Workload is being deleted: once nothing may run, show that on its job. No event tells when a loss is long.

    Where the job ended while it was being stopped, Kueue keeps its finalizer on the Workload until that is Finished.
    """
    end = None if situation.facts.is_finished else ending.own_end(situation, _jobs_that_stay(situation))
    late = [finish(situation, end)] if end and situation.snapshot.quiet_for >= STEADY else []
    placed = situation.recorded_on or situation.facts.is_admitted or situation.facts.is_evicted  # records are erased
    if situation.snapshot.check is not None and placed and not may_run_anywhere(situation):
        return named("released", _show_all_stopped(situation).also(*late).within(STEADY if end else None))
    return named("stops first", ending.clean_up(situation).within(*(run.until for run in possible_runs(situation))))


def _show_all_stopped(situation: Situation) -> Plan:
    released = (effect for job in _jobs_that_stay(situation) for effect in show_stopped(situation, job))
    return ending.clean_up(situation).also(*released)


def _jobs_that_stay(situation: Situation) -> list[Json]:
    return [job for job in situation.snapshot.jobs.values() if not is_terminating(job)]


def _having_run_of_gone(situation: Situation) -> str:
    """A worker that may still run the job of a Workload that is gone; empty: none may. Nothing says which had it."""
    having = (worker.name for worker in situation.workers if may_run_of_gone(situation, worker))
    return next(having, "") if _jobs_that_stay(situation) else ""


def _wait_for_run_of_gone(situation: Situation, having: str) -> Plan:
    stay, quiet_for = _jobs_that_stay(situation), situation.snapshot.quiet_for
    why = f'Waiting for worker cluster "{having}": it may still run a job whose Workload is gone'
    waits = [AnnounceWorkload("Warning", why, about=job) for job in stay if quiet_for >= TOLD_AFTER]
    return ending.clean_up(situation).within(GONE_AGAIN).also(*waits)


def _job_is_anothers(situation: Situation) -> bool:
    return situation.snapshot.adapter is None or any(map(workloads.is_live, situation.snapshot.siblings))


clean_up_gone: Final = first_of(
    Way("its job is another's", _job_is_anothers, ending.clean_up),
    Way("has ended", *given(ending.end_of_gone, lambda _, shown: Plan(shown))),
    Way("goes", lambda seen: seen.snapshot.workload is not None, _release_stopped),
    Way("may still run", *given(_having_run_of_gone, _wait_for_run_of_gone)),
    Way("released", otherwise, _show_all_stopped),
)
"""The Workload is gone or being deleted: remove the copies; show on its job that it has ended, or that nothing runs.

Until the job shows that, Kueue keeps its finalizer on this Workload, and does not go on with the job's next one.
"""
