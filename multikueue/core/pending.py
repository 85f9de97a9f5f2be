"""A Workload with quota and no worker: offer it, watch who admits it, hand it over."""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.cleaning import clean
from multikueue.core.copies import Drift, drift, is_spent, priority_patch, workload_copy
from multikueue.core.dispatch import Candidates, Nomination
from multikueue.core.effects import CreateJob, CreateWorkload, Effect, PatchWorkload, Plan
from multikueue.core.names import Json, ObjectKey
from multikueue.core.objects import is_terminating
from multikueue.core.situation import Situation
from multikueue.core.snapshot import Worker
from multikueue.core.verdicts import admit, nominate
from multikueue.core.workloads import (
    CheckState,
    is_finished,
    is_of_attempt,
    nominated,
    other_checks_ready,
)


def dispatch(situation: Situation) -> Plan:
    """Take the first worker that admitted it, or offer it to more."""
    stale = tuple(_clean_stale(situation))
    if situation.winner is not None:
        return Plan((*_hand_over(situation, situation.winner), *stale))
    if not other_checks_ready(situation.workload, situation.check):
        return Plan(stale)  # somebody else's check first: copies would only hold the workers' quota
    nomination = situation.dispatcher.nominate(situation.workload, _candidates(situation), situation.now)
    return Plan((*_offer(situation, nomination), *stale), look_again=nomination.look_again)


def _candidates(situation: Situation) -> Candidates:
    configured = [worker for worker in situation.workers if worker.configured]
    return Candidates(
        configured=[worker.name for worker in configured],
        available=[worker.name for worker in configured if worker.can_run],
        nominated=nominated(situation.workload),
    )


def _clean_stale(situation: Situation) -> Iterator[Effect]:
    """Copies of an earlier attempt, which nobody may have seen end."""
    for worker in situation.workers:
        yield from clean(worker, unless=lambda copy: is_of_attempt(copy, situation.attempt))


def _clean_current(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """What `_clean_stale` leaves, so that no object is deleted by both."""
    return clean(worker, unless=lambda copy: not is_of_attempt(copy, situation.attempt))


def _hand_over(situation: Situation, winner: Worker) -> Iterator[Effect]:
    """Give the job to the winner; once its copy is seen there, record it. The losers' copies go at once."""
    job = situation.job_on(winner)
    if winner.name not in nominated(situation.workload):
        # Kueue's webhook accepts as clusterName only a name that was nominated by an earlier write.
        yield nominate(situation, (winner.name,))
    elif is_of_attempt(job, situation.attempt) if job is not None else _has_run(winner):
        state = CheckState.PENDING if situation.adapter.keeps_check_pending else CheckState.READY
        yield from admit(situation, winner.name, state)
    elif job is None and situation.job is not None:
        yield CreateJob(winner.name, situation.adapter.resource, situation.adapter.copy(situation.job, situation.stamp))
    for worker in situation.workers:
        if worker.name != winner.name:
            yield from _clean_current(situation, worker)


def _has_run(winner: Worker) -> bool:
    """Whether the job has ended there: one that is gone by now (its TTL) is not made again."""
    return winner.workload is not None and is_finished(winner.workload)


def _offer(situation: Situation, nomination: Nomination) -> Iterator[Effect]:
    """Make copies on the nominated workers, mend those that differ, remove those of workers no longer nominated."""
    if nomination.names != nominated(situation.workload):
        yield nominate(situation, nomination.names)
    for worker in situation.workers:
        if worker.name not in nomination.names or worker.blocked:
            yield from _clean_current(situation, worker)
        elif worker.can_run:
            yield from _offer_to(situation, worker)


def _offer_to(situation: Situation, worker: Worker) -> Iterator[Effect]:
    if worker.is_empty:
        yield CreateWorkload(worker.name, workload_copy(situation.workload, situation.stamp))
    elif worker.workload is None:
        yield from _clean_current(situation, worker)  # a job that cannot run and is in the way
    elif (copy := situation.current(worker)) is not None and not is_terminating(copy):
        yield from _mend(situation, worker, copy)


def _mend(situation: Situation, worker: Worker, copy: Json) -> Iterator[Effect]:
    """Bring a copy back in line: patch its priority, or remove it so that a new one can be made."""
    found = drift(situation.workload, copy)
    if found is Drift.SPEC or is_spent(copy):
        yield from _clean_current(situation, worker)
    elif found is Drift.PRIORITY:
        patch = priority_patch(situation.workload, copy)
        assert patch is not None, "drift said the priority differs"
        yield PatchWorkload(worker.name, ObjectKey.of(copy), patch)
