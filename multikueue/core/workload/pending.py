"""A Workload with quota and no worker: offer it, watch who admits it, hand it over."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.dispatchers.dispatcher import MAX_NOMINATIONS, Candidate, Candidates, Nomination
from multikueue.core.model.conditions import conditions
from multikueue.core.model.copies import is_spent
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import (
    CheckState,
    check,
    is_active,
    is_finished,
    is_of_attempt,
    nominated,
    other_checks_ready,
)
from multikueue.core.workload.check_updates import admit, nominate
from multikueue.core.workload.cleaning import clean
from multikueue.core.workload.drift import drift_patch
from multikueue.core.workload.effects import CreateWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.groups import chooser
from multikueue.core.workload.hearing import PATIENCE, unheard, until_clear
from multikueue.core.workload.members import create_missing, missing_on, remove_left
from multikueue.core.workload.preemption_gates import gated, open_next
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker


def dispatch(situation: Situation) -> Plan:
    """Take the first worker that admitted it, or offer it to more."""
    stale = tuple(clean_stale(situation))
    nomination = _nomination(situation)
    unclear = until_clear(situation)
    if situation.winner is not None and unclear is None and _may_have_it(situation, situation.winner, nomination):
        return Plan((*_hand_over(situation, situation.winner, nomination), *stale))
    if not other_checks_ready(situation.workload, situation.check):
        return Plan(stale)  # somebody else's check first: copies would only hold the workers' quota
    if not is_active(situation.workload):
        return Plan(stale)  # Kueue is about to evict it
    opened = open_next(situation, nomination.names)
    waits = (nomination.look_again, opened.look_again, unclear, _until_all_have_answered(situation))
    again = [seconds for seconds in waits if seconds is not None]
    effects = (*opened.effects, *_offer(situation, nomination), *stale)
    problems = (nomination.problem,) if nomination.problem else ()
    return Plan(effects, look_again=min(again, default=None), problems=problems)


def _nomination(situation: Situation) -> Nomination:
    """Whom to offer it to. Those that have yet to say whether they have it stay: only here it stands that they may."""
    chosen = chooser(situation).nominate(situation.workload, _candidates(situation), situation.now)
    kept = [name for name in unheard(situation) if name not in chosen.names]
    if chosen.binding or not kept:
        return chosen
    return attrs.evolve(chosen, names=(*chosen.names[: MAX_NOMINATIONS - len(kept)], *kept))


def _candidates(situation: Situation) -> Candidates:
    names, awaited = nominated(situation.workload), _awaited(situation)
    workers = tuple(
        Candidate(
            worker.name,
            available=worker.can_run,
            nominated=worker.name in names,
            awaited=worker.name in awaited,
            conditions=tuple(conditions(situation.current(worker) or {})),
        )
        for worker in situation.workers
        if worker.configured
    )
    return Candidates(workers, names, _message(situation))


def _until_all_have_answered(situation: Situation) -> float | None:
    """For how many seconds more those that have yet to answer are left their turn; None if nobody is."""
    return (PATIENCE - situation.snapshot.running_for).total_seconds() if _awaited(situation) else None


def _awaited(situation: Situation) -> list[ClusterName]:
    """Who has yet to answer, and is left its turn because we have just started."""
    starting = situation.snapshot.running_for < PATIENCE
    return [worker.name for worker in situation.workers if starting and worker.configured and worker.awaited]


def _message(situation: Situation) -> str:
    return str((check(situation.workload, situation.check) or {}).get("message") or "")


def _may_have_it(situation: Situation, winner: Worker, nomination: Nomination) -> bool:
    """Whether its name stands, if others choose the names. A job that has been made there is not taken away again."""
    return not nomination.binding or winner.name in nomination.names or situation.job_on(winner) is not None


def wait_for_group(situation: Situation) -> Plan:
    """Others of its group come first: offer nothing yet."""
    return Plan(tuple(clean_stale(situation)))


def clean_stale(situation: Situation) -> Iterator[Effect]:
    """Copies of an earlier attempt, which nobody may have seen end."""
    for worker in situation.workers:
        yield from clean(worker, unless=lambda copy: is_of_attempt(copy, situation.attempt))


def _clean_current(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """What `clean_stale` leaves, so that no object is deleted by both."""
    return clean(worker, unless=lambda copy: not is_of_attempt(copy, situation.attempt))


def _hand_over(situation: Situation, winner: Worker, nomination: Nomination) -> Iterator[Effect]:
    """Give the job to the winner; once its copy is seen there, record it. The losers' copies go at once."""
    if winner.name not in nominated(situation.workload):
        # Kueue's webhook accepts as clusterName only a name that was nominated by an earlier write.
        yield nominate(situation, (winner.name,))
    elif _has_jobs(situation, winner):
        state = CheckState.PENDING if situation.adapter.keeps_check_pending else CheckState.READY
        yield from admit(situation, winner.name, state, winner.workload)
    else:
        yield from remove_left(situation, winner)
        yield from create_missing(situation, winner)
    for worker in situation.workers:
        if worker.name != winner.name:
            yield from _clean_current(situation, worker)


def _has_jobs(situation: Situation, winner: Worker) -> bool:
    """Whether the job is there, all of it, or need not be: it has run, or somebody else brings it."""
    jobs = situation.jobs_on(winner)
    if not all(situation.is_current(winner, job) for job in jobs):
        return False
    complete = bool(jobs) and not missing_on(situation, winner)
    return complete or situation.adapter.workload_only or _has_run(winner)


def _has_run(winner: Worker) -> bool:
    """Whether the job has ended there: one that is gone by now (its TTL) is not made again."""
    return winner.workload is not None and is_finished(winner.workload)


def _offer(situation: Situation, nomination: Nomination) -> Iterator[Effect]:
    """Make copies on the nominated workers, mend those that differ, remove those of workers no longer nominated."""
    message = nomination.message if nomination.message != _message(situation) else None
    if nomination.names != nominated(situation.workload) or message is not None:
        yield nominate(situation, nomination.names, message)
    for worker in situation.workers:
        if worker.name not in nomination.names or not worker.configured or worker.blocked:
            yield from _clean_current(situation, worker)
        elif worker.can_run:
            yield from _offer_to(situation, worker)


def _offer_to(situation: Situation, worker: Worker) -> Iterator[Effect]:
    if worker.is_empty:
        made = situation.new_copy
        alone = situation.settings.orchestrated_preemption and situation.group_place is None
        yield CreateWorkload(worker.name, gated(made) if alone else made)
    elif worker.workload is None:
        yield from _clean_current(situation, worker)  # a job that cannot run and is in the way
    elif (copy := situation.current(worker)) is not None and not is_terminating(copy):
        yield from _mend(situation, worker, copy)


def _mend(situation: Situation, worker: Worker, copy: Json) -> Iterator[Effect]:
    """Bring a copy back in line: patch it, or remove it so that a new one can be made."""
    if situation.must_be_replaced(copy) or is_spent(copy):
        yield from _clean_current(situation, worker)
    elif (patch := drift_patch(situation.workload, copy)) is not None:
        yield PatchWorkload(worker.name, ObjectKey.of(copy), patch)
