"""The end of a job: its status is synced to the manager, then its Workload is finished, then the copies are removed.

The manager's Kueue finishes a Workload by itself once it sees that the job has ended. We do it only where that does
not happen: writing at the same moment would make one of the two writes fail. Copies are removed by UID, and only those
that carry our label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.adapter import JobAdapter, Outcome
from multikueue.core.model.conditions import changed_at
from multikueue.core.model.copies import member_there
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of, resource_version, uid
from multikueue.core.model.placements import former_places
from multikueue.core.model.worker_states import Syncing
from multikueue.core.model.workloads import OUT_OF_SYNC, OWNER_NOT_FOUND, SLICE_REPLACED, finish_reason
from multikueue.core.workload.check_updates import finish
from multikueue.core.workload.effects import MANAGER, DeleteJob, Effect, PatchJobStatus, Plan
from multikueue.core.workload.removal import keeps_job_alive, remove_all
from multikueue.core.workload.seen.graces import END_SHOWN, FINISHING, STEADY, SUCCESSION, SYNC_GRACE
from multikueue.core.workload.seen.runs import may_run_anywhere, until_end_counts
from multikueue.core.workload.seen.situation import Situation, once
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import named

MOST_FAILED: Final = 100
"""Copies of failed jobs that are kept in one namespace of a worker: whoever submits jobs chooses how many fail."""


def sync_end(situation: Situation, jobs: Sequence[Json], outcome: Outcome) -> Plan:
    """The job has ended on its worker: show that on the manager's job, then finish its Workload.

    Only where the manager's job can be seen: without its status a Finished Workload tells too little.

    Args:
        situation: the Workload.
        jobs: the job copies. One that is gone is not made again: it has run.
        outcome: how it ended.
    """
    if situation.job is None and not situation.traits.workload_only:
        return Plan(row="cannot be shown")
    ends = bool(jobs) and situation.traits.ends
    patches = tuple(sync_run(situation, jobs))
    left = END_SHOWN - situation.snapshot.quiet_for
    if ends and left > timedelta(0) and not all(map(situation.adapter.may_have_ended, jobs)):
        # The job's own watch is behind the Workload's, or dead.
        return Plan(patches, row="its job does not show it").within(left)
    if ends and (again := finished_in(situation, patches)):
        return Plan(patches, row="Kueue finishes it").within(again)
    return Plan((*patches, finish(situation, outcome)), row="finish")


def finished_in(situation: Situation, shown: Sequence[Effect]) -> timedelta:
    """For how much longer the manager's Kueue is given to finish the Workload of a job whose end it sees, or will see
    once this is `shown`; zero: we finish it.
    """
    return max(timedelta(0), FINISHING - (timedelta(0) if shown else situation.snapshot.quiet_for))


def own_end(situation: Situation, jobs: Sequence[Json]) -> Outcome | None:
    """How job copies ended by themselves, whatever their Workload copy says.

    One that is being deleted may have failed of that, and pods exit as they like when they are told to.
    """
    outcome = situation.adapter.outcome_of(jobs) if have_ended(situation, jobs) else None
    succeeded = outcome is not None and outcome.reason == "Succeeded" and not situation.traits.keeps_check_pending
    return outcome if succeeded or not any(map(is_terminating, jobs)) else None


@attrs.frozen
class End:
    """How a job has ended on a worker: what has run is not run again."""

    worker: Worker
    jobs: Sequence[Json]
    """Its copies there."""
    outcome: Outcome
    """As they show it, or its Workload copy tells."""
    awaited: timedelta = timedelta(0)
    """For how much longer the job copies are waited for that cannot be seen yet: their status counts."""


def show_end(situation: Situation, end: End) -> Plan:
    """Show on the manager how it has ended; then nothing of it is to be on any other worker."""
    if end.awaited:
        return Plan(row="job out of sight").within(end.awaited)
    shown = sync_end(situation, end.jobs, end.outcome)
    return shown.also(*(remove_all(situation, end.worker.name) if shown.effects else ()))


@once
def earlier_end(situation: Situation) -> End | None:
    """How an earlier attempt has ended; None: that is not seen.

    It can be evicted, and get quota again, before the manager's job has shown that it runs: by then only the worker
    knows how the job ends.
    """
    shown = situation.workers if situation.snapshot.adapter is not None else ()
    having = (worker for worker in shown if worker.all_jobs or worker.facts.has_ended)
    return next(filter(None, (_end_of_earlier_on(situation, worker) for worker in having)), None)


def _end_of_earlier_on(situation: Situation, worker: Worker) -> End | None:
    """How a job of an earlier attempt ended on one worker; None: it did not, or may have been stopped.

    One that was asked to stop, or is deleted, may have failed of that. Nor can the Workload copy tell it of pods that
    are gone: its Kueue takes those for failed that somebody has deleted.
    """
    pods, jobs = situation.traits.keeps_check_pending, situation.jobs_on(worker)
    if not all(_is_former_job(situation, worker, job) for job in jobs):
        return None
    outcome, goes = own_end(situation, jobs), any(map(is_terminating, jobs))
    copy, facts = worker.copy, worker.facts
    gave_up = facts.is_finished and (not facts.is_finished_as_ended or facts.finish_reason == SLICE_REPLACED)
    stops = goes or facts.is_told_to_stop or facts.is_leaving or not facts.is_active
    if gave_up or (stops and (outcome is None or outcome.reason != "Succeeded")):
        return None
    former = copy is not None and situation.marks.are_on(copy) and not situation.whose(worker, copy).runs_for_it
    if copy is not None and former and worker.reachable and facts.has_ended:
        # It is known to have been recorded there: without a job, any user of a worker could say so.
        had_it = situation.names_of(worker) & {situation.last_worker, *former_places(situation.workload)}
        listed = had_it or isinstance(worker.kind, Syncing)  # its jobs are read after its Workloads
        if not worker.in_sight and listed and (left := until_end_counts(situation, worker)):
            return End(worker, jobs, facts.outcome, left)
        if jobs or (had_it and not pods):
            return End(worker, jobs, facts.outcome)
    return None if outcome is None else End(worker, jobs, outcome)


def _is_former_job(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether we have made a job there, and it is not the run of this attempt that goes on."""
    is_nobodys = situation.recorded_on is None and (situation.facts.is_evicted or not worker.can_run)
    goes_on = situation.whose(worker, job).runs_for_it and not (is_nobodys and situation.is_this(worker, job))
    return not goes_on and _is_made_there(situation, worker, job)


def _is_made_there(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether we have made a job there for this Workload, or of the manager's job for one before it.

    It may have been made under a name that no worker has any more, if that had the Workload: as the MultiKueueCluster
    was made anew under another name.
    """
    local, own, marks = situation.snapshot.jobs.get(name_of(job)), situation.snapshot.workload or {}, situation.marks
    known = {other.name for other in situation.workers if other.reachable or not other.removed}
    names = situation.names_of(worker) | {*filter(None, (situation.last_worker, *former_places(own)))} - known
    return any(marks.made_copy(job, local, name) or marks.made_job(job, own, name) for name in names)


def end_of_gone(situation: Situation) -> tuple[Effect, ...]:
    """What shows how a job has ended whose Workload is gone, goes, or was finished as its copy told, before the job was
    seen: nothing tells it once its copies are gone.
    """
    is_finished = bool(finish_reason(situation.snapshot.workload or {}))  # its quota is free, and it waits
    for worker in situation.workers if is_finished or situation.snapshot.refused_for < SYNC_GRACE else ():
        made = [job.object for job in worker.jobs if _is_made_there(situation, worker, job.object)]
        if own_end(situation, made) is not None:
            return tuple(sync_status(situation, made))  # of one worker: there is one write of a job at a time
    return ()


def have_ended(situation: Situation, jobs: Sequence[Json]) -> bool:
    """Whether there are such jobs, and all have ended."""
    return bool(jobs) and all(situation.adapter.outcome(job) is not None for job in jobs)


def _remove_finished(situation: Situation) -> Plan:
    """The manager's Workload is Finished: remove the copies once the job's last status is synced to the manager.

    The winner's are kept for `PlanSettings.finished_retention`, so that logs of the job can be read. A status that the
    manager refuses for what stands there is in vain, and nothing waits for it; the event of the refusal tells it.
    """
    worker = situation.recorded_or_none
    if worker is None or not worker.reachable or situation.snapshot.adapter is None:
        late = () if situation.snapshot.adapter is None or situation.recorded_on else end_of_gone(situation)
        return Plan(late or tuple(remove_all(situation)), row="nothing to sync")
    ended = [job for job in situation.jobs_on(worker) if situation.adapter.outcome(job) is not None]
    patches = tuple(sync_run(situation, ended))
    left = retention_left(situation, worker)
    awaited = not worker.in_sight and (situation.job is not None or bool(situation.snapshot.unreadable_job))
    keep = worker.name if patches or left or awaited else None
    # the patches may change nothing, and then no event follows
    row = "copies go" if keep is None else "status first" if patches else "copies are kept"
    return Plan((*patches, *remove_all(situation, keep)), row=row).within(STEADY if patches else None, left or None)


def clean_finished(situation: Situation) -> Plan:
    """Remove the copies, and look again while an end that is settled is to be shown: no event of a finished Workload
    tells that its worker has come back.
    """
    adapter, jobs = situation.snapshot.adapter, situation.snapshot.jobs.values()
    shown = adapter is None or situation.is_shared or shows_its_end(adapter, jobs, situation.now)
    return _remove_finished(situation).within(END_SHOWN if not shown and may_run_anywhere(situation) else None)


def show_settled(situation: Situation) -> Iterator[Effect]:
    """The settled end of a job whose Workload is Finished: the manager refused it when that was written."""
    job = situation.job
    if job is not None and not (situation.is_shared or may_run_anywhere(situation)):
        yield from patch_status(situation, job, situation.adapter.settled_patch(job, situation.now))


def shows_its_end(adapter: JobAdapter, jobs: Iterable[Json], now: datetime) -> bool:
    """Whether jobs of a finished Workload show all that `show_settled` would write: only removing is left then."""
    return all(adapter.settled_patch(job, now) is None for job in jobs)


def expiring_job(situation: Situation) -> tuple[Json, datetime] | None:
    """The manager's job that has ended and is to be deleted some time, and when; None: it is not, or not by us."""
    job = situation.job
    if not situation.facts.is_finished or job is None or situation.not_delegated is not None:
        return None
    due = situation.adapter.expires_at(job, changed_at(situation.workload, "Finished") or situation.now)
    return None if due is None else (job, due)


def delete_expired(situation: Situation, expiring: tuple[Json, datetime]) -> Plan:
    """Delete the manager's job some time after its end.

    By then it shows its end, and nothing of it is on its worker, which is in sight: so what is retained has gone. No
    event of a finished Workload tells that its worker is in sight again.
    """
    (job, due), worker = expiring, situation.recorded_or_none
    gone = (worker is None or worker.in_sight) and all(other.is_empty for other in situation.workers if other.reachable)
    left = due - situation.now
    # However many wait for one worker: the longer it is away, the more rarely each looks, a quarter too late at most.
    again = max(left, timedelta(0) if gone else max(END_SHOWN, -left / 4))
    if again > timedelta(0):
        return named("not yet", clean_finished(situation).within(again))
    key, version = ObjectKey.of(job), resource_version(job)
    note = "Its job is deleted: its time to live is over"
    deleted = DeleteJob(MANAGER, situation.adapter.resource, key, uid(job), "Background", version=version, note=note)
    return Plan((deleted,), row="delete its job")


def retention_left(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer the winner's copies are kept; zero: they go now.

    Only times on objects count, so a restart keeps the promise. The job copy's end tells, not its Workload copy's: of
    two Kueues either may be the first. An end that does not show there yet is waited for, but not for long; one that
    neither shows was settled on the manager: what goes on is stopped. A worker that was taken out of the config keeps
    nothing: it is let go.
    """
    kept, jobs = _retention(situation, worker), situation.jobs_on(worker)
    copies, since = [*jobs, *filter(None, [worker.copy])], changed_at(situation.workload, "Finished")
    ended, over = have_ended(situation, jobs), finish_reason(situation.workload) in (OUT_OF_SYNC, OWNER_NOT_FOUND)
    stays = kept and jobs and worker.configured and not (over or worker.facts.is_evicted)
    if since is None or not stays or not all(situation.whose(worker, copy).runs_for_it for copy in copies):
        return timedelta(0)
    # Whoever may write the status may have written any time, the last one that there is as well.
    lasts = kept if ended else STEADY if worker.facts.goes_on else END_SHOWN
    return max(timedelta(0), lasts - (situation.now - since))


def _retention(situation: Situation, worker: Worker) -> timedelta:
    """How long the copies stay by the settings. Of failed jobs a namespace has `MOST_FAILED` there: further ones go."""
    kept = situation.settings.finished_retention
    if finish_reason(situation.workload) != "Failed" or worker.failed > MOST_FAILED:
        return kept
    return max(kept, situation.settings.failed_retention)


def sync_run(situation: Situation, copies: Iterable[Json]) -> Iterator[Effect]:
    """Sync the status of jobs that run on, or have ended: a pod of a group that was deleted there has ended by that."""
    return sync_status(situation, map(member_there, copies) if situation.facts.has_members else copies)


def sync_status(situation: Situation, copies: Iterable[Json]) -> Iterator[Effect]:
    """Sync the status of jobs to the manager, where the kind's rule wants it and it differs."""
    for remote in copies:
        if (local := situation.job_of(remote)) is not None:
            yield from patch_status(situation, local, situation.adapter.status_patch(local, remote, situation.now))


def patch_status(situation: Situation, local: Json, patch: Json | None) -> Iterator[Effect]:
    """Write the status of the manager's job, where its kind has it; but no patch that has changed nothing before."""
    adapter, key = situation.adapter, ObjectKey.of(local)
    if patch is not None and patch != situation.snapshot.in_vain.get(key.name):
        yield PatchJobStatus(adapter.resource, key, patch, subresource=adapter.traits.status_subresource)


def clean_up(situation: Situation) -> Plan:
    """Remove all copies on all workers. The Workload copy that keeps an elastic job alive is looked at again."""
    kept = any(keeps_job_alive(worker) for worker in situation.workers)
    return Plan(remove_all(situation)).within(SUCCESSION if kept else None)
