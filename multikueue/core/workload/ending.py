"""The end of a job: its status is synced to the manager, then its Workload is finished, then the copies are removed.

The manager's Kueue finishes a Workload by itself once it sees that the job has ended. We do it only where that does
not happen: writing at the same moment would make one of the two writes fail. Copies are removed by UID, and only those
that carry our label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from multikueue.core.model.adapter import JobAdapter, Outcome
from multikueue.core.model.conditions import changed_at, condition
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of, resource_version, uid
from multikueue.core.model.placements import former_places
from multikueue.core.model.workloads import OUT_OF_SYNC, OWNER_NOT_FOUND, SLICE_REPLACED, finish_reason
from multikueue.core.workload.check_updates import finish
from multikueue.core.workload.effects import MANAGER, DeleteJob, Effect, PatchJobStatus, Plan
from multikueue.core.workload.facts.graces import END_SHOWN, KUEUE_GRACE, SUCCESSION, SYNC_GRACE
from multikueue.core.workload.facts.runs import may_run_anywhere, until_end_counts
from multikueue.core.workload.facts.shown import names_of
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Syncing
from multikueue.core.workload.removal import keeps_job_alive, remove_all
from multikueue.core.workload.ways import named

MOST_FAILED: Final = 100
"""Copies of failed jobs that are kept in one namespace of a worker: whoever submits jobs chooses how many fail."""


def sync_end(situation: Situation, jobs: Sequence[Json], finished: Effect) -> Plan:
    """It has ended on its worker: show that on the manager's job, then finish its Workload.

    Args:
        situation: the Workload.
        jobs: the job copies. One that is gone is not made again: it has run.
        finished: what says on the Workload how it ended; see `finish_as`.
    """
    ends = bool(jobs) and situation.traits.ends
    patches = tuple(sync_status(situation, jobs))
    left = END_SHOWN - situation.snapshot.quiet_for
    if ends and left > timedelta(0) and not all(map(situation.adapter.may_have_ended, jobs)):
        # The job's own watch is behind the Workload's, or dead.
        return Plan(patches, row="its job does not show it").within(left)
    if ends and (patches or situation.snapshot.quiet_for < KUEUE_GRACE):
        return Plan(patches, row="Kueue finishes it").within(KUEUE_GRACE)
    return Plan((*patches, finished), row="finish")


def own_end(situation: Situation, jobs: Sequence[Json]) -> Outcome | None:
    """How job copies ended by themselves, whatever their Workload copy says.

    One that is being deleted may have failed of that, and pods exit as they like when they are told to.
    """
    outcome = situation.adapter.outcome_of(jobs) if have_ended(situation, jobs) else None
    succeeded = outcome is not None and outcome.reason == "Succeeded" and not situation.traits.keeps_check_pending
    return outcome if succeeded or not any(map(is_terminating, jobs)) else None


def sync_outcome(situation: Situation, jobs: Sequence[Json], outcome: Outcome) -> Plan:
    """The jobs show how they ended: finish the manager's Workload as they say."""
    if situation.job is None:
        return Plan(row="cannot be shown")
    return named("by itself", sync_end(situation, jobs, finish(situation, outcome.reason, outcome.message)))


def end_of_earlier_attempt(situation: Situation) -> Plan | None:
    """Show on the manager that an earlier attempt has run to its end; None: that is not seen.

    It can be evicted, and get quota again, before the manager's job has shown that it runs: by then only the worker
    knows how the job ends. What has run is not run again.
    """
    for worker in situation.workers if situation.snapshot.adapter is not None else ():
        if (worker.all_jobs or worker.copy.has_ended) and (end := _end_of_earlier_on(situation, worker)) is not None:
            return only_there(situation, worker, end)
    return None


def only_there(situation: Situation, worker: Worker, end: Plan) -> Plan:
    """What shows how it ended on a worker; then nothing of it is to be anywhere else."""
    return end.also(*(remove_all(situation, worker.name) if end.effects else ()))


def _end_of_earlier_on(situation: Situation, worker: Worker) -> Plan | None:
    """What shows how a job of an earlier attempt ended on one worker; None: it did not, or may have been stopped.

    One that was asked to stop, or is deleted, may have failed of that. Nor can the Workload copy tell it of pods that
    are gone: its Kueue takes those for failed that somebody has deleted.
    """
    pods, jobs = situation.traits.keeps_check_pending, situation.jobs_on(worker)
    if situation.traits.workload_only:
        jobs = []
    if not all(_is_former_job(situation, worker, job) for job in jobs):
        return None
    outcome, goes = own_end(situation, jobs), any(map(is_terminating, jobs))
    copy, facts = worker.workload, worker.copy
    gave_up = facts.is_finished and (not facts.is_over or facts.finish_reason == SLICE_REPLACED)
    stops = goes or facts.is_told_to_stop or facts.goes or not facts.is_active
    if gave_up or (stops and (outcome is None or outcome.reason != "Succeeded")):
        return None
    former = copy is not None and situation.marks.are_on(copy) and not situation.whose(worker, copy).runs_for_it
    if copy is not None and former and worker.reachable and facts.has_ended:
        # It is known to have been recorded there: without a job, any user of a worker could say so.
        had_it = names_of(situation, worker) & {situation.last_worker, *former_places(situation.workload)}
        listed = had_it or isinstance(worker.kind, Syncing)  # its jobs are read after its Workloads
        if not worker.in_sight and listed and (left := until_end_counts(situation, worker)):
            return Plan(row="job out of sight").within(left)
        if jobs or (had_it and not pods):
            return end_as(situation, copy, jobs)
    return None if outcome is None else sync_outcome(situation, jobs, outcome)


def _is_former_job(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether we have made a job there, and not for the recorded attempt."""
    stray = situation.assigned_to is None and not worker.can_run and situation.is_this(worker, job)
    return _is_made_there(situation, worker, job) and (stray or not situation.whose(worker, job).runs_for_it)


def _is_made_there(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether we have made a job there for this Workload, or of the manager's job for one before it.

    It may have been made under a name that no worker has any more, if that had the Workload: as the MultiKueueCluster
    was made anew under another name.
    """
    local, own, marks = situation.snapshot.jobs.get(name_of(job)), situation.snapshot.workload or {}, situation.marks
    known = {other.name for other in situation.workers if other.reachable or not other.removed}
    names = names_of(situation, worker) | {*filter(None, (situation.last_worker, *former_places(own)))} - known
    return any(marks.made_copy(job, local, name) or marks.made_job(job, own, name) for name in names)


def end_of_gone(situation: Situation) -> Plan | None:
    """Show how a job has ended whose Workload is gone, goes, or was finished as its copy told, before the job was seen:
    nothing tells it once its copies are gone.
    """
    is_finished = bool(finish_reason(situation.snapshot.workload or {}))  # its quota is free, and it waits
    for worker in situation.workers if is_finished or situation.snapshot.refused_for < SYNC_GRACE else ():
        made = [job.object for job in worker.jobs if _is_made_there(situation, worker, job.object)]
        if own_end(situation, made) is not None:
            # of one worker: there is one write of a job at a time
            return Plan(shown) if (shown := tuple(sync_status(situation, made))) else None
    return None


def have_ended(situation: Situation, jobs: Sequence[Json]) -> bool:
    """Whether none of these jobs goes on. There must be one."""
    return bool(jobs) and all(situation.adapter.outcome(job) is not None for job in jobs)


def end_as(situation: Situation, copy: Json, jobs: Sequence[Json]) -> Plan:
    """Sync the end that a Finished copy tells. Without the job's status a Finished Workload would tell too little."""
    if situation.job is None and not situation.traits.workload_only:
        return Plan(row="cannot be shown")
    return named("by its copy", sync_end(situation, jobs, finish_as(situation, copy)))


def finish_as(situation: Situation, copy: Json) -> Effect:
    """Finish the manager's Workload in the words of a Finished copy."""
    ended = condition(copy, "Finished") or {}
    return finish(situation, str(ended.get("reason", "")), str(ended.get("message", "")))


def _remove_finished(situation: Situation) -> Plan:
    """The manager's Workload is Finished: remove the copies once the job's last status is synced to the manager.

    The winner's are kept for `PlanSettings.finished_retention`, so that logs of the job can be read. A status that the
    manager refuses for what stands there is in vain, and nothing waits for it; the event of the refusal tells it.
    """
    worker = situation.assigned_worker
    if worker is None or not worker.reachable or situation.snapshot.adapter is None:
        late = None if situation.snapshot.adapter is None or situation.assigned_to else end_of_gone(situation)
        return late or Plan(tuple(remove_all(situation)), row="nothing to sync")
    ended = [job for job in situation.jobs_on(worker) if situation.adapter.outcome(job) is not None]
    patches = tuple(sync_status(situation, ended))
    left = retention_left(situation, worker)
    awaited = not worker.in_sight and (situation.job is not None or bool(situation.snapshot.unreadable_job))
    keep = worker.name if patches or left or awaited else None
    # the patches may change nothing, and then no event follows
    row = "copies go" if keep is None else "status first" if patches else "copies are kept"
    return Plan((*patches, *remove_all(situation, keep)), row=row).within(
        KUEUE_GRACE if patches else None, left or None
    )


def clean_finished(situation: Situation) -> Plan:
    """Remove the copies, and look again while an end that is settled is to be shown: no event of a finished Workload
    tells that its worker has come back.
    """
    adapter, jobs = situation.snapshot.adapter, situation.snapshot.jobs.values()
    shown = adapter is None or situation.is_shared or shows_its_end(adapter, jobs, situation.now)
    return _remove_finished(situation).within(END_SHOWN if not shown and may_run_anywhere(situation) else None)


def show_settled(situation: Situation) -> Iterator[Effect]:
    """The settled end of a job whose Workload is Finished: the manager refused it when that was written."""
    job, adapter = situation.job, situation.snapshot.adapter
    if job is not None and adapter is not None and not (situation.is_shared or may_run_anywhere(situation)):
        yield from patch_status(situation, job, adapter.settled_patch(job, situation.now))


def shows_its_end(adapter: JobAdapter, jobs: Iterable[Json], now: datetime) -> bool:
    """Whether jobs of a finished Workload show all that `show_settled` would write: only removing is left then."""
    return all(adapter.settled_patch(job, now) is None for job in jobs)


def delete_expired(situation: Situation) -> Plan | None:
    """Delete the manager's job some time after its end, where it says so and nobody else does; None: it does not go.

    By then it shows its end, and nothing of it is on its worker, which is in sight: so what is retained has gone. No
    event of a finished Workload tells that its worker is in sight again.
    """
    job, adapter, worker = situation.job, situation.snapshot.adapter, situation.assigned_worker
    if job is None or adapter is None or situation.not_delegated is not None:
        return None
    due = adapter.expires_at(job, changed_at(situation.workload, "Finished") or situation.now)
    if due is None:
        return None
    gone = (worker is None or worker.in_sight) and all(other.is_empty for other in situation.workers if other.reachable)
    left = due - situation.now
    # However many wait for one worker: the longer it is away, the more rarely each looks, a quarter too late at most.
    again = max(left, timedelta(0) if gone else max(END_SHOWN, -left / 4))
    if again > timedelta(0):
        return named("not yet", clean_finished(situation).within(again))
    key, version = ObjectKey.of(job), resource_version(job)
    note = "Its job is deleted: its time to live is over"
    deleted = DeleteJob(MANAGER, adapter.resource, key, uid(job), "Background", version=version, note=note)
    return Plan((deleted,), row="delete its job")


def retention_left(situation: Situation, worker: Worker) -> timedelta:
    """For how much longer the winner's copies are kept; zero: they go now.

    Only times on objects count, so a restart keeps the promise. The job copy's end tells, not its Workload copy's: of
    two Kueues either may be the first. An end that does not show there yet is waited for, but not for long: a job that
    somebody stopped on the manager may run on. A worker that was taken out of the config keeps nothing: it is let go.
    """
    kept, jobs = _retention(situation, worker), situation.jobs_on(worker)
    over = finish_reason(situation.workload) in (OUT_OF_SYNC, OWNER_NOT_FOUND) or worker.copy.is_evicted
    if over or not kept or not worker.configured:
        return timedelta(0)
    copies = jobs if worker.workload is None else [*jobs, worker.workload]
    since = changed_at(situation.workload, "Finished")
    if since is None or not jobs or not all(situation.whose(worker, copy).runs_for_it for copy in copies):
        return timedelta(0)
    # Whoever may write the status may have written any time, the last one that there is as well.
    lasts = kept if have_ended(situation, jobs) else END_SHOWN
    return max(timedelta(0), lasts - (situation.now - since))


def _retention(situation: Situation, worker: Worker) -> timedelta:
    """How long the copies stay by the settings. Of failed jobs a namespace has `MOST_FAILED` there: further ones go."""
    kept = situation.settings.finished_retention
    if finish_reason(situation.workload) != "Failed" or worker.failed > MOST_FAILED:
        return kept
    return max(kept, situation.settings.failed_retention)


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
    """Remove everything everywhere. An elastic job's Workload copy that must stay is looked at again."""
    kept = any(keeps_job_alive(worker) for worker in situation.workers)
    return Plan(tuple(remove_all(situation))).within(SUCCESSION if kept else None)
