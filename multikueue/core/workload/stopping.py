"""What somebody stops on the manager without an eviction: by what he writes on a job, or by deleting the Workload.

Whoever may write the status of a job can settle its end, as Argo CD's menu does. A Kueue whose job does not match its
Workload any more suspends the job, deletes the Workload, and waits with the next one until the job shows no run.
"""

from __future__ import annotations

import itertools
from functools import partial

import attrs

from multikueue.core.model.workloads import is_live
from multikueue.core.workload import ending
from multikueue.core.workload.check_updates import finish
from multikueue.core.workload.effects import Plan
from multikueue.core.workload.evicting import clean_up_deleted, may_run, release
from multikueue.core.workload.facts.possible_runs import assumed_for
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Creating
from multikueue.core.workload.removal import remove_all


def is_settled(situation: Situation) -> bool:
    """Whether its job shows how it can only end, and no copy does: somebody asks for it, or it has ended."""
    job, adapter = situation.job, situation.snapshot.adapter
    if job is None or adapter is None or adapter.settled_end(job) is None or situation.facts.has_members:
        return False
    return not any(map(adapter.settled_end, itertools.chain.from_iterable(map(situation.jobs_on, situation.workers))))


def end_settled(situation: Situation) -> Plan:
    """Stop what runs of it; then its job ends as it can only end, and was perhaps never started."""
    job, quiet = situation.job or {}, situation.snapshot.quiet_for
    patch = situation.adapter.settled_patch(job, situation.now) if quiet < ending.SYNC_GRACE else None
    shown, end = tuple(ending.patch_status(situation, job, patch)), situation.adapter.settled_end(job)
    if shown or end is None or quiet < ending.KUEUE_GRACE:
        return _stop_first(situation, Plan(shown, look_again=ending.KUEUE_GRACE.total_seconds()))
    return _stop_first(situation, Plan((finish(situation, end.reason, end.message),)))


def is_stopped_here(situation: Situation) -> bool:
    """Whether the manager's Kueue has suspended a job that runs, and has not evicted its Workload."""
    job, adapter = situation.job, situation.snapshot.adapter
    if job is None or adapter is None or situation.assigned_to is None:
        return False
    return adapter.is_stopped_here(job)


def stop_here(situation: Situation) -> Plan:
    """Stop what runs of it, and show that; nothing else is written on a job that its Kueue is stopping."""
    return _stop_first(situation, Plan(tuple(release(situation, situation.job or {}))))


def _stop_first(situation: Situation, then: Plan) -> Plan:
    """Remove the copies; what follows is done once no job of it may run on a worker."""
    stopped = tuple(remove_all(situation))
    if may_run(situation):
        left = min((run.until.total_seconds() for run in situation.possible_runs), default=None)
        return Plan(stopped, look_again=left)
    return attrs.evolve(then, effects=(*stopped, *then.effects))


def clean_up_gone(situation: Situation) -> Plan:
    """It was deleted: remove the copies, and show of its job, if that is still there, that it runs no more.

    The next Workload waits for that. No Workload tells which worker had the job: none may show a copy of it.
    """
    snapshot = situation.snapshot
    if snapshot.workload is not None:
        return clean_up_deleted(situation)
    cleaned = ending.clean_up(situation)
    stopped = [one for one in snapshot.jobs.values() if situation.adapter.shows_former_run(one)]
    if not stopped or any(map(is_live, snapshot.siblings)):
        return cleaned
    if any(map(partial(_may_have_job, situation), situation.workers)):
        return attrs.evolve(cleaned, look_again=ending.KUEUE_GRACE.total_seconds())
    shown = (effect for job in stopped for effect in release(situation, job))
    return attrs.evolve(cleaned, effects=(*cleaned.effects, *shown))


def _may_have_job(situation: Situation, worker: Worker) -> bool:
    """Whether a worker has a job of a Workload that is gone, as far as can be seen or is assumed."""
    if worker.jobs or worker.shared or isinstance(worker.in_flight, Creating):
        return True
    had_it = situation.snapshot.last_worker in (None, worker.name)
    return had_it and not worker.in_sight and bool(assumed_for(situation, worker))
