"""A Workload with quota and no worker: offer it, watch who admits it, record that worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Nomination, NotTaken
from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model import workloads
from multikueue.core.model.check_message import NOBODY_TAKES_IT, OTHER_CHECKS, Message
from multikueue.core.model.conditions import conditions
from multikueue.core.model.names import ClusterName
from multikueue.core.model.worker_states import Removing, Served, WritingStatus
from multikueue.core.workload import check_updates, leftovers
from multikueue.core.workload.effects import AnnounceWorkload, CreateWorkload, Effect, Plan
from multikueue.core.workload.groups import create_missing, missing_on
from multikueue.core.workload.preemption_gates import awaits_turn, gated, is_open, open_next, takes_turns
from multikueue.core.workload.reasons import is_head_remembered, of_refusal, offered, out_of_sight, reasons
from multikueue.core.workload.removal import remove_attempt
from multikueue.core.workload.seen import runs
from multikueue.core.workload.seen.graces import FIRST_ANSWER
from multikueue.core.workload.seen.places import is_misplaced, withheld
from multikueue.core.workload.seen.situation import Situation, certain, once
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.core.workload.ways import Way, first_of, given, otherwise, wait


@once
def _awaited(situation: Situation) -> Mapping[ClusterName, timedelta]:
    """The workers of the config that may be available soon, and for how long that is hoped: `Candidate.awaited`."""
    names = situation.facts.nominated
    starting = FIRST_ANSWER - min(situation.snapshot.running_for, FIRST_ANSWER)
    hopes = {
        worker.name: starting if not worker.answered else runs.left_of_short_loss(situation, worker)
        for worker in situation.configured
        if (not worker.answered or worker.name in names) and worker.name not in withheld(situation)
    }
    return {name: left for name, left in hopes.items() if left > timedelta(0)}


@once
def _nomination(situation: Situation) -> Nomination:
    """The worker that has the rest of its group; if none has it, those that the operator's dispatcher chooses."""
    candidates = _candidates(situation)
    if situation.group_workers:
        return Nomination(tuple(name for name in situation.group_workers[:1] if name in candidates.configured))
    return Guarded(situation.dispatcher).nominate(situation.workload, candidates, situation.now)


@once
def _in_the_way(situation: Situation) -> tuple[leftovers.Leftover, ...]:
    """What other workers show that must be gone before the winner is recorded."""
    chosen = winner(situation)
    return leftovers.in_the_way_of(situation, chosen) if chosen is not None else ()


@once
def _runs_elsewhere(situation: Situation) -> tuple[runs.Run, ...]:
    """What may run unseen on other workers, and must be over before the winner is recorded."""
    chosen = winner(situation)
    return tuple(runs.blocking(situation, chosen)) if chosen is not None else ()


def _warnings(situation: Situation) -> Iterator[Effect]:
    """What keeps the Workload from the worker that has admitted it."""
    for run in _runs_elsewhere(situation):
        if run.why:
            yield AnnounceWorkload("Warning", f'Waiting for worker cluster "{run.worker}": {run.why}')
    yield from leftovers.tell_held_up(situation, _in_the_way(situation))


def _is_clear_to_record(situation: Situation) -> bool:
    """Whether nothing keeps it from the winner. Where another controller nominates, it must have named the winner,
    unless that has the job already.
    """
    chosen = winner(situation)
    if chosen is None or _runs_elsewhere(situation) or _in_the_way(situation):
        return False
    nomination = _nomination(situation)
    return not nomination.binding or chosen.name in nomination.names or situation.has_job(chosen)


def _hand_over(situation: Situation) -> Plan:
    """Record the worker; its job is created there afterwards, and only there. The losers' copies go at once."""
    chosen = certain(winner(situation), "only what somebody has admitted is recorded")
    recorded = tuple(_record(situation, chosen))
    losers = [worker for worker in situation.workers if recorded and worker.name != chosen.name]
    return Plan((*recorded, *(effect for worker in losers for effect in remove_attempt(situation, worker, this=True))))


def _not_taken(situation: Situation) -> NotTaken | None:
    """The dispatcher's word that no worker has taken it in time; None: it waits on, or one has admitted it."""
    return _nomination(situation).not_taken if winner(situation) is None else None


def _is_held_up(situation: Situation) -> bool:
    """Whether its quota has been held for as long as what is in the way is waited for."""
    return leftovers.waited_for(situation, _in_the_way(situation)) == timedelta(0)


def _give_back(situation: Situation) -> Plan:
    return Plan((*leftovers.give_quota_back(situation, _in_the_way(situation)), *_warnings(situation)))


def _offer_it(situation: Situation) -> Plan:
    """Offer it to those that are nominated, and look at it again when time alone may change who gets it."""
    nomination, patience = _nomination(situation), leftovers.waited_for(situation, _in_the_way(situation))
    # Those that are withheld stay nominated.
    asked = tuple(name for name in nomination.names if name not in withheld(situation))
    opened = open_next(situation, asked)
    unheard = min(_awaited(situation).values(), default=None)
    held_up = max((run.until for run in _runs_elsewhere(situation)), default=None)
    hidden = any(not worker.in_sight for worker in situation.workers)
    unseen = min((run.until for run in runs.possible_runs(situation)), default=None) if hidden else None
    nominations = check_updates.note_last_worker(situation) or tuple(_nominate(situation, nomination))
    effects = (*_warnings(situation), *opened.effects, *nominations, *_offer(situation, asked))
    problems = (nomination.problem,) if nomination.problem else ()
    offered = Plan(effects, opened.look_again, claim=nomination.claim, problems=problems)
    return offered.within(nomination.look_again, held_up, patience, unheard, unseen)


_NOTE: Final = Way("note its last run", *given(check_updates.note_last_worker, lambda _, noted: Plan(noted)))
"""That write gives the Workload another resourceVersion: it is the only one of its decision."""

_other_checks_first: Final = first_of(
    _NOTE,
    Way("said", lambda seen: seen.head == OTHER_CHECKS, wait),
    Way("say so", otherwise, lambda seen: Plan((check_updates.say(seen, Message(OTHER_CHECKS)),))),
)
"""Somebody else's check first: copies would only hold the workers' quota."""

dispatch: Final = first_of(
    leftovers.waits_are_over,
    Way("record", _is_clear_to_record, first_of(_NOTE, Way("hand over", otherwise, _hand_over))),
    Way("other checks", lambda seen: not workloads.other_checks_ready(seen.workload, seen.check), _other_checks_first),
    Way("about to be evicted", lambda seen: not seen.facts.is_active, wait),
    Way("not taken", *given(_not_taken, lambda seen, why: Plan(check_updates.not_taken(seen, why)))),
    Way("held up", _is_held_up, _give_back),
    Way("offer", otherwise, _offer_it),
)
"""Record the first worker that admitted it, or offer it to more."""


@once
def winner(situation: Situation) -> Worker | None:
    """The worker that gets the Workload: the first of the config that has admitted it, of those it is offered to.

    Only a copy with the mark of this attempt on that worker counts: what anybody else has made there wins nothing.
    A worker that has this attempt's job comes first, also if it is not nominated any more: somebody has erased the
    record. One with a job that an earlier attempt has left behind comes last: the new job cannot be created before that
    is deleted. Times of admission do not count, since workers' clocks differ. Of a group, only its worker can win.
    """
    places = situation.group_workers or [worker.name for worker in situation.workers]
    placed = (worker for worker in situation.workers if worker.name in places)
    able = [worker for worker in placed if worker.can_run and worker.name not in withheld(situation)]
    admitted = [worker for worker in able if _has_admitted(situation, worker)]
    having = [worker for worker in admitted if situation.has_job(worker)]
    offered = [worker for worker in admitted if worker.name in situation.facts.nominated]
    free = [worker for worker in offered if not situation.stale_jobs_on(worker)]
    return next(iter(having or free or offered), None)


def _has_admitted(situation: Situation, worker: Worker) -> bool:
    """Whether it has admitted this attempt, and keeps it: the copy is neither evicted nor about to be removed."""
    if worker.copy is None:
        return _has_ended_on(situation, worker)
    copy, facts = situation.this_copy(worker), worker.facts
    if copy is None or not facts.is_admitted:
        return False
    if facts.is_finished:  # OutOfSync with the job there: the user is told once it is recorded
        out_of_sync = facts.finish_reason == workloads.OUT_OF_SYNC
        return facts.has_ended or (out_of_sync and bool(situation.jobs_on(worker)))
    goes = isinstance(worker.in_flight, Removing) or facts.is_leaving or facts.is_spent
    return not goes and not situation.must_be_replaced(copy)


def _has_ended_on(situation: Situation, worker: Worker) -> bool:
    """Whether the job has run to its end there for this attempt, though its Workload copy is gone (retention)."""
    jobs = situation.jobs_on(worker)
    if not jobs or not all(situation.is_this(worker, job) for job in jobs):
        return False
    return situation.adapter.outcome_of(jobs) is not None


def _candidates(situation: Situation) -> Candidates:
    names, known = situation.facts.nominated, situation.snapshot.dispatcher_facts
    workers = tuple(
        Candidate(
            worker.name,
            labels=worker.labels,
            annotations=worker.annotations,
            available=worker.can_run and worker.name not in withheld(situation),
            nominated=worker.name in names,
            awaited=worker.name in _awaited(situation),
            has_copy=_keeps_copy(situation, worker),
            conditions=tuple(conditions(situation.this_copy(worker) or {})),
            gate_open=is_open(situation, worker),
            obstacle=_obstacle(situation, worker),
            facts=known.workers.get(worker.name),
        )
        for worker in situation.configured
    )
    return Candidates(workers, names, situation.head, known.workload)


def _keeps_copy(situation: Situation, worker: Worker) -> bool:
    if situation.this_copy(worker) is None:  # where none is, the status of one is written by its creation only
        return worker.is_empty and isinstance(worker.in_flight, WritingStatus)
    return not isinstance(worker.in_flight, Removing) and not worker.facts.is_terminating


def _obstacle(situation: Situation, worker: Worker) -> Reason | None:
    """Why a worker cannot get the Workload, as far as its state tells. The check's message has the details."""
    if (held := withheld(situation).get(worker.name)) is not None:
        return Reason(held.why)
    if worker.reachable and not isinstance(worker.kind, Served):
        return Reason(out_of_sight(worker).why)
    return of_refusal(situation, worker.refusal) if worker.refusal is not None else None


def _record(situation: Situation, chosen: Worker) -> Iterator[Effect]:
    if _needs_no_job(situation, chosen):
        state = workloads.CheckState.PENDING if situation.check_stays_pending else workloads.CheckState.READY
        yield from check_updates.admit(situation, chosen.name, state, chosen.copy)
    elif situation.stale_jobs_on(chosen) or tuple(create_missing(situation, chosen)):
        # Else there is nothing to copy: the job is about to go, or the manager's Kueue has started its pods here.
        yield from check_updates.record(situation, chosen.name)


def _needs_no_job(situation: Situation, chosen: Worker) -> bool:
    """Whether the job is there, all of it, or need not be: it has run, or another controller moves it."""
    jobs = situation.jobs_on(chosen)
    if not all(situation.whose(chosen, job).runs_for_it for job in jobs):
        return False
    has_run = chosen.copy is None or chosen.facts.is_finished
    return has_run or situation.traits.workload_only or (bool(jobs) and not missing_on(situation, chosen))


def _nominate(situation: Situation, nomination: Nomination) -> Iterator[Effect]:
    """Write new nominations, or another head of the message; with what the workers say, as it is one write."""
    waits, before = offered(situation, nomination.names), situation.facts.nominated
    nobody = waits == NOBODY_TAKES_IT and not nomination.binding and bool(nomination.names)
    head = situation.head if nomination.message is None else nomination.message
    if nobody or (nomination.message is None and (not before or not is_head_remembered(situation))):
        head = waits
    if nomination.names != before or head != situation.head:
        message = Message(head, tuple(reasons(situation, nomination.names)))
        yield check_updates.nominate(situation, nomination.names, message)
        yield from check_updates.rejections(nomination)


def _offer(situation: Situation, names: tuple[str, ...]) -> Iterator[Effect]:
    """Make copies on these workers, patch those that differ, remove those of all others."""
    for worker in situation.workers:
        # One with this attempt's job was recorded, and somebody has erased that: it is about to be recorded again.
        was_recorded = _has_admitted(situation, worker) and situation.has_job(worker)
        if not (worker.configured and worker.refusal is None and (worker.name in names or was_recorded)):
            yield from remove_attempt(situation, worker, this=True)
        elif worker.name in names and worker.can_run:
            yield from _offer_to(situation, worker)


def _offer_to(situation: Situation, worker: Worker) -> Iterator[Effect]:
    if worker.is_empty:
        made = situation.copy_for(worker)
        if not awaits_turn(situation, worker):
            yield CreateWorkload(worker.name, gated(made) if takes_turns(situation) else made)
    elif worker.copy is None:
        yield from remove_attempt(situation, worker, this=True)  # a job without its Workload cannot run
    elif (copy := situation.this_copy(worker)) is not None and not worker.facts.is_terminating:
        if worker.facts.is_spent or situation.must_be_replaced(copy) or is_misplaced(situation, worker, copy):
            yield from remove_attempt(situation, worker, this=True)  # so that a new one can be made
        else:
            yield from check_updates.patch_copy(situation, worker)
