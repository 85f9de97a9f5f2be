"""What somebody stops on the manager without an eviction: by what he writes on a job, or by deleting the Workload.

Whoever may write the status of a job can settle its end, as Argo CD's menu does. A Kueue whose job does not match its
Workload any more suspends the job, deletes the Workload, and waits with the next one until the job shows no run.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model.workloads import is_live
from multikueue.core.workload import ending
from multikueue.core.workload.check_updates import finish
from multikueue.core.workload.effects import AnnounceWorkload, Plan
from multikueue.core.workload.evicting import clean_up_deleted, may_run, release
from multikueue.core.workload.facts.possible_runs import assumed_for
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Creating
from multikueue.core.workload.leftovers import hold_left
from multikueue.core.workload.removal import remove_all

TOLD_AFTER: Final = timedelta(minutes=1)
"""After so long it is told what a job waits for that its Kueue has stopped."""


def end_settled(situation: Situation) -> Plan | None:
    """Its job shows how it can only end, and no copy does: somebody asks for it, or it has ended.

    Stop what runs of it; then its job ends as it can only end, and was perhaps never started.
    """
    job, adapter, quiet = situation.job, situation.snapshot.adapter, situation.snapshot.quiet_for
    if job is None or adapter is None or (end := adapter.settled_end(job)) is None or situation.facts.has_members:
        return None
    if situation.facts.has_quota and situation.facts.is_evicted and not hold_left(situation):
        return None  # its quota is given back first
    if any(adapter.settled_end(copy) for worker in situation.workers for copy in situation.jobs_on(worker)):
        return None
    patch = adapter.settled_patch(job, situation.now) if quiet < ending.SYNC_GRACE else None
    shown = tuple(ending.patch_status(situation, job, patch))
    if shown or quiet < ending.KUEUE_GRACE:
        return _stop_first(situation, Plan(shown, look_again=ending.KUEUE_GRACE.total_seconds()))
    return _stop_first(situation, Plan((finish(situation, end.reason, end.message),)))


def stop_here(situation: Situation) -> Plan | None:
    """The manager's Kueue has suspended a job that runs, and has not evicted its Workload.

    Stop what runs of it, and show that; nothing else is written on a job that its Kueue is stopping.
    """
    job, adapter = situation.job, situation.snapshot.adapter
    if job is None or adapter is None or situation.assigned_to is None or not adapter.is_stopped_here(job):
        return None
    return _stop_first(situation, Plan(tuple(release(situation, job))))


def _stop_first(situation: Situation, then: Plan) -> Plan:
    """Remove the copies; what follows is done once no job of it may run on a worker."""
    stopped = tuple(remove_all(situation))
    if may_run(situation):
        left = min((run.until.total_seconds() for run in situation.possible_runs), default=None)
        return Plan(stopped, look_again=left)
    return Plan(stopped, then.look_again).also(*then.effects)


def clean_up_gone(situation: Situation) -> Plan:
    """It was deleted: remove the copies, and show of a job that its Kueue has suspended that it runs no more.

    The next Workload waits for that. No Workload tells which worker had the job: none may show a copy of it.
    """
    snapshot = situation.snapshot
    if snapshot.workload is not None:
        return clean_up_deleted(situation)
    cleaned = ending.clean_up(situation)
    stopped = [one for one in snapshot.jobs.values() if situation.adapter.is_stopped_here(one)]
    if not stopped or any(map(is_live, snapshot.siblings)):
        return cleaned
    hidden = [worker.name for worker in situation.workers if _may_have_job(situation, worker)]
    if hidden:
        why = f'Waiting for worker cluster "{hidden[0]}": it may still run a job whose Workload is gone'
        waits = [AnnounceWorkload("Warning", why, about=job) for job in stopped if snapshot.quiet_for >= TOLD_AFTER]
        return attrs.evolve(cleaned, look_again=ending.KUEUE_GRACE.total_seconds()).also(*waits)
    shown = (effect for job in stopped for effect in release(situation, job))
    return cleaned.also(*shown)


def _may_have_job(situation: Situation, worker: Worker) -> bool:
    """Whether a worker has a job of a Workload that is gone, as far as can be seen or is assumed.

    One that answers with what cannot be read is waited for as long as one that is lost.
    """
    if worker.jobs or worker.shared or isinstance(worker.in_flight, Creating):
        return True
    had_it = situation.snapshot.last_worker in (None, worker.name)
    waits = situation.snapshot.quiet_for < situation.settings.worker_lost_timeout
    return had_it and not worker.in_sight and waits and bool(assumed_for(situation, worker))
