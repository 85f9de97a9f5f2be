"""A Workload that a worker has: bring its status home, and notice when the worker has it no more.

`clusterName` is sticky. Only the copy there counts; copies elsewhere are never believed, whatever they say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import attrs

from multikueue.core.model.copies import is_spent
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import (
    OUT_OF_SYNC,
    CheckState,
    finish_reason,
    is_admitted,
    is_evicted,
    is_finished,
)
from multikueue.core.workload.check_updates import admit, finish, retry, retry_evicted, retry_out_of_sync, tell_placed
from multikueue.core.workload.cleaning import clean_all
from multikueue.core.workload.drift import drift_patch
from multikueue.core.workload.effects import Effect, PatchJob, PatchWorkload, Plan
from multikueue.core.workload.finishing import KUEUE_GRACE, bring_end_home, finish_as, sync_status
from multikueue.core.workload.hearing import FIRST_WORD
from multikueue.core.workload.members import create_missing, remove_left
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker


def follow_assigned(situation: Situation) -> Plan:
    """Decide by what the assigned worker shows; remove copies everywhere else."""
    name = situation.assigned_to
    others = tuple(clean_all(situation.workers, keep=name))
    worker = situation.snapshot.worker(name) if name else None
    if name is None:
        base = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
        return Plan((retry(situation, base), *others))
    if worker is None or not worker.reachable:
        return wait_for_lost(situation, worker, others)
    if not worker.serves_kind:
        return wait_for_kind(situation, worker, others)
    copy = worker.workload
    followed = (
        follow_finished(situation, worker, copy)
        if copy is not None and is_finished(copy)
        else _follow(situation, worker)
    )
    return attrs.evolve(followed, effects=(*followed.effects, *others))


def follow_unchecked(situation: Situation) -> Plan:
    """Our check is not on it any more. Let the job run on and bring its end home; nothing can be asked of Kueue."""
    name = situation.assigned_to
    others = tuple(clean_all(situation.workers, keep=name))
    worker = situation.snapshot.worker(name) if name else None
    if worker is None or not worker.in_sight:
        return Plan(others)
    copy, jobs = worker.workload, situation.jobs_on(worker)
    if copy is not None and is_finished(copy) and not is_spent(copy):
        end = bring_end_home(situation, copy, jobs)
        return attrs.evolve(end, effects=(*end.effects, *others))
    return Plan((*(effect for job in jobs for effect in sync_status(situation, job)), *others))


def wait_for_lost(situation: Situation, worker: Worker | None, others: tuple[Effect, ...]) -> Plan:
    """Keep the assignment for a while: the job may well be running, and may not run twice."""
    if worker is not None and worker.awaited:  # that it was lost when we were started says nothing about now
        return Plan(others, look_again=FIRST_WORD.total_seconds())
    lost_since = worker.lost_since if worker is not None else None
    timeout = situation.settings.worker_lost_timeout
    waited = situation.now - lost_since if lost_since is not None else None
    if waited is None:
        return Plan(others, look_again=timeout.total_seconds())
    if waited < timeout:
        return Plan(others, look_again=(timeout - waited).total_seconds())
    return Plan((*_retry_once(situation, "Admitting remote lost"), *others))


def wait_for_kind(situation: Situation, worker: Worker, others: tuple[Effect, ...]) -> Plan:
    """The job cannot be seen: neither its absence nor its end is a fact. Its Workload can, so Kueue's word counts.

    After a while that word has to do for the job's end, too; and a job of which nothing is heard is given up as on a
    worker that is lost.
    """
    copy, timeout = worker.workload, situation.settings.worker_lost_timeout
    if copy is not None and is_evicted(copy) and not is_finished(copy):
        return Plan((*retry_evicted(situation, worker.name), *others))
    waited = worker.unserved_for or timedelta(0)
    if waited < timeout:
        return Plan(others, look_again=(timeout - waited).total_seconds())
    if copy is not None and is_finished(copy) and not is_spent(copy):
        return Plan((finish_as(situation, copy), *others))
    return Plan((*_retry_once(situation, "Admitting remote lost"), *others))


def _follow(situation: Situation, worker: Worker) -> Plan:
    copy = worker.workload
    jobs = situation.jobs_on(worker)
    if copy is None:
        return Plan(tuple(_follow_vanished(situation, jobs)))
    if is_evicted(copy):
        return Plan(tuple(retry_evicted(situation, worker.name)))
    lost = not is_admitted(copy) or is_terminating(copy) or situation.must_be_replaced(copy)
    if not lost and (jobs or situation.adapter.workload_only):
        return Plan(tuple(_synchronise(situation, worker, copy, jobs)))
    if not lost and situation.snapshot.quiet_for < KUEUE_GRACE:
        # A job that has ended may be gone (its TTL) a moment before its Workload says so.
        return Plan(look_again=KUEUE_GRACE.total_seconds())
    return Plan(tuple(_retry_once(situation, "Admitting remote no longer exists")))


def _follow_vanished(situation: Situation, jobs: Sequence[Json]) -> Iterator[Effect]:
    """The Workload copy is gone. If its job ended before that (the worker's retention), it ended for us too."""
    outcome = situation.adapter.outcome_of(jobs) if jobs else None
    if outcome is None:
        yield from _retry_once(situation, "Admitting remote no longer exists")
        return
    for job in jobs:
        yield from sync_status(situation, job)
    yield finish(situation, outcome.reason, outcome.message)


def follow_finished(situation: Situation, worker: Worker, copy: Json) -> Plan:
    """The copy on the assigned worker is Finished: the job has ended, or the worker has given it up."""
    if not is_spent(copy):
        return bring_end_home(situation, copy, situation.jobs_on(worker))
    if finish_reason(copy) == OUT_OF_SYNC and situation.state is CheckState.READY:
        return Plan(tuple(retry_out_of_sync(situation, worker.name)))
    return Plan(tuple(_retry_once(situation, "Admitting remote no longer exists")))


def _synchronise(situation: Situation, worker: Worker, copy: Json, jobs: Sequence[Json]) -> Iterator[Effect]:
    if situation.state is CheckState.PENDING and not situation.adapter.keeps_check_pending:
        # somebody has taken the check away and put it back
        yield from admit(situation, worker.name, CheckState.READY, copy)
    else:
        yield from tell_placed(situation, copy)
    for job in jobs:
        yield from sync_status(situation, job)
    patch = drift_patch(situation.workload, copy)
    if patch is not None:
        yield PatchWorkload(worker.name, ObjectKey.of(copy), patch)
    for job in jobs:
        yield from _forward(situation, worker, job)
    if situation.has_members:
        yield from remove_left(situation, worker)
        yield from create_missing(situation, worker)


def _forward(situation: Situation, worker: Worker, job: Json) -> Iterator[Effect]:
    local = situation.job_of(job)
    if job is situation.shared_job_on(worker):
        return  # it is changed once, for the part of the group that it belongs to
    patch = situation.adapter.forward_patch(local, job, situation.stamp) if local is not None else None
    if patch is not None:
        yield PatchJob(worker.name, situation.adapter.resource, ObjectKey.of(job), patch)


def _retry_once(situation: Situation, base: str) -> Iterator[Effect]:
    if situation.state is not CheckState.RETRY:
        yield retry(situation, base)
