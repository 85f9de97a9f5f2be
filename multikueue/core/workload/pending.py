"""A Workload with quota and no worker: offer it, watch who admits it, record that worker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Nomination
from multikueue.core.dispatchers.reasons import Reason, Why
from multikueue.core.model import workloads
from multikueue.core.model.conditions import conditions
from multikueue.core.model.copies import drift_patch
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload import leftovers
from multikueue.core.workload.check_message import NOBODY_TAKES_IT, OTHER_CHECKS, Message
from multikueue.core.workload.check_updates import admit, end_waits, give_up, nominate, record, rejections, say
from multikueue.core.workload.effects import AnnounceWorkload, CreateWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.facts import possible_runs
from multikueue.core.workload.facts.places import is_misplaced
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Removing, Served, WritingStatus
from multikueue.core.workload.groups import create_missing, missing_on, nomination_for
from multikueue.core.workload.history import note_last_worker
from multikueue.core.workload.preemption_gates import awaits_turn, gated, is_open, open_next, takes_turns
from multikueue.core.workload.reasons import is_head_remembered, offered, reasons
from multikueue.core.workload.removal import remove, without


def dispatch(situation: Situation) -> Plan:
    """Record the first worker that admitted it, or offer it to more."""
    if over := tuple(end_waits(situation)):
        return Plan(over)  # one write of the Workload at a time
    noted = tuple(note_last_worker(situation))
    awaited = _awaited(situation)
    nomination = nomination_for(situation, _candidates(situation, awaited))
    chosen = winner(situation)
    left = leftovers.left_over(situation, chosen) if chosen is not None else ()
    runs = tuple(possible_runs.blocking(situation, chosen)) if chosen is not None else ()
    if chosen is not None and not runs and not left and _is_allowed(situation, chosen, nomination):
        if noted:  # this write gives the Workload another resourceVersion: the record is made from that
            return Plan(noted)
        return Plan(tuple(_hand_over(situation, chosen)))
    if not workloads.other_checks_ready(situation.workload, situation.check):
        # Somebody else's check first: copies would only hold the workers' quota.
        is_new = situation.head != OTHER_CHECKS and not noted  # one write of the Workload at a time
        return Plan(noted or (say(situation, Message(OTHER_CHECKS)),) * is_new)
    if not situation.facts.is_active:
        return Plan()  # Kueue is about to evict it
    if nomination.give_up is not None and chosen is None:
        return Plan((give_up(situation, nomination.give_up),))
    unseen_runs = (f'Waiting for worker cluster "{run.worker}": {run.why}' for run in runs if run.why)
    told = (*(AnnounceWorkload("Warning", text) for text in unseen_runs), *leftovers.tell_held_up(situation, left))
    if left and leftovers.is_stubborn(situation, left):
        return Plan((leftovers.send_back(situation, left), *told))
    # Those that are withheld stay nominated.
    asked = tuple(name for name in nomination.names if not situation.withheld.get(ClusterName(name)))
    opened = open_next(situation, asked)
    unheard = min(awaited.values(), default=None)
    held_up = max((run.until for run in runs), default=possible_runs.LEFTOVER_GRACE if left else None)
    hidden = any(not worker.in_sight for worker in situation.workers)
    unseen = min((run.until for run in situation.possible_runs), default=None) if hidden else None
    waits = (nomination.look_again, opened.look_again, *map(_seconds, (held_up, unheard, unseen)))
    again = [seconds for seconds in waits if seconds is not None]
    offers = noted or tuple(_nominate(situation, nomination))
    effects = (*told, *opened.effects, *offers, *_offer(situation, asked))
    problems = (nomination.problem,) if nomination.problem else ()
    return Plan(effects, look_again=min(again, default=None), claim=nomination.claim, problems=problems)


def _is_allowed(situation: Situation, chosen: Worker, nomination: Nomination) -> bool:
    """Whether another controller, if one nominates, has nominated it. A worker that has the job keeps it."""
    return not nomination.binding or chosen.name in nomination.names or situation.has_job(chosen)


def winner(situation: Situation) -> Worker | None:
    """The worker that gets the Workload: the first of the config that has admitted it, of those it is offered to.

    Only a copy with the mark of this attempt on that worker counts: what anybody else has made there wins nothing.
    A worker that has this attempt's job comes first, also if it is not nominated any more: somebody has erased the
    record. One with a job that an earlier attempt has left behind comes last: the new job cannot be created before that
    is deleted. Times of admission do not count, since workers' clocks differ. Of a group, only its worker can win.
    """
    places = situation.group_workers or [worker.name for worker in situation.workers]
    placed = (worker for worker in situation.workers if worker.name in places)
    able = [worker for worker in placed if worker.can_run and not situation.withheld[worker.name]]
    admitted = [worker for worker in able if _has_admitted(situation, worker)]
    having = [worker for worker in admitted if situation.has_job(worker)]
    offered = [worker for worker in admitted if worker.name in situation.facts.nominated]
    free = [worker for worker in offered if not situation.stale_jobs_on(worker)]
    return next(iter(having or free or offered), None)


def _has_admitted(situation: Situation, worker: Worker) -> bool:
    """Whether it has admitted this attempt, and keeps it: the copy is neither evicted nor about to be removed."""
    if worker.workload is None:
        return _has_ended_on(situation, worker)
    copy, facts = situation.current(worker), worker.copy
    if copy is None or not facts.is_admitted:
        return False
    if facts.is_finished:  # OutOfSync with the job there: the user is told once it is recorded
        out_of_sync = facts.finish_reason == workloads.OUT_OF_SYNC
        return facts.has_ended or (out_of_sync and situation.job_on(worker) is not None)
    goes = isinstance(worker.in_flight, Removing) or facts.goes or facts.is_spent
    return not goes and not situation.must_be_replaced(copy)


def _has_ended_on(situation: Situation, worker: Worker) -> bool:
    """Whether the job has run to its end there for this attempt, though its Workload copy is gone (retention)."""
    jobs = situation.jobs_on(worker)
    if not jobs or not all(situation.is_proven(worker, job) for job in jobs):
        return False
    return situation.adapter.outcome_of(jobs) is not None


def _candidates(situation: Situation, awaited: Collection[ClusterName]) -> Candidates:
    names, known = situation.facts.nominated, situation.snapshot.facts
    workers = tuple(
        Candidate(
            worker.name,
            labels=worker.labels,
            annotations=worker.annotations,
            available=worker.can_run and not situation.withheld[worker.name],
            nominated=worker.name in names,
            awaited=worker.name in awaited,
            has_copy=_keeps_copy(situation, worker),
            conditions=tuple(conditions(situation.current(worker) or {})),
            gate_open=is_open(situation, worker),
            obstacle=_obstacle(situation, worker),
            facts=known.workers.get(worker.name),
        )
        for worker in situation.workers
        if worker.configured
    )
    return Candidates(workers, names, situation.head, known.workload)


def _keeps_copy(situation: Situation, worker: Worker) -> bool:
    if situation.current(worker) is None:  # where none is, the status of one is written by its creation only
        return worker.is_empty and isinstance(worker.in_flight, WritingStatus)
    return not isinstance(worker.in_flight, Removing) and not worker.copy.is_terminating


def _obstacle(situation: Situation, worker: Worker) -> Reason | None:
    """Why a worker cannot get the Workload, as far as is known here."""
    if worker.reachable and not isinstance(worker.kind, Served):
        return Reason(Why.KIND_NOT_SERVED)
    if situation.withheld[worker.name]:
        return Reason(Why.CORDONED)
    if worker.refusal is not None:
        return Reason(Why.REFUSED, worker.refusal.why)
    return None


def _awaited(situation: Situation) -> dict[ClusterName, timedelta]:
    """For how long which workers of the config may be available soon: see `Candidate.awaited`."""
    names = situation.facts.nominated
    starting = possible_runs.FIRST_ANSWER - min(situation.snapshot.running_for, possible_runs.FIRST_ANSWER)
    hopes = {
        worker.name: starting if not worker.answered else possible_runs.left_of_short_loss(situation, worker)
        for worker in situation.workers
        if worker.configured and (not worker.answered or worker.name in names) and not situation.withheld[worker.name]
    }
    return {name: left for name, left in hopes.items() if left > timedelta(0)}


def _clean_current(situation: Situation, worker: Worker) -> Iterable[Effect]:
    """Remove what `clean_stale` leaves, so that no object is deleted by both."""
    return remove(situation, without(worker, lambda copy: not situation.is_believed(worker, copy)))


def _hand_over(situation: Situation, chosen: Worker) -> Iterator[Effect]:
    """Record the worker; its job is created there afterwards, and only there. The losers' copies go at once."""
    recorded = tuple(_record(situation, chosen))
    yield from recorded
    for worker in situation.workers if recorded else ():
        if worker.name != chosen.name:
            yield from _clean_current(situation, worker)


def _record(situation: Situation, chosen: Worker) -> Iterator[Effect]:
    if chosen.name not in situation.facts.nominated:
        # Kueue's webhook accepts as clusterName only a name that was nominated by an earlier write.
        yield nominate(situation, (chosen.name,))
    elif _needs_no_job(situation, chosen):
        state = CheckState.PENDING if situation.keeps_check_pending else CheckState.READY
        yield from admit(situation, chosen.name, state, chosen.workload)
    elif situation.stale_jobs_on(chosen) or tuple(create_missing(situation, chosen)):
        # Else there is nothing to copy: the job is about to go, or the manager's Kueue has started its pods here.
        yield from record(situation, chosen.name)


def _needs_no_job(situation: Situation, chosen: Worker) -> bool:
    """Whether the job is there, all of it, or need not be: it has run, or another controller moves it."""
    jobs = situation.jobs_on(chosen)
    if not all(situation.is_current(chosen, job) for job in jobs):
        return False
    has_run = chosen.workload is None or chosen.copy.is_finished
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
        yield nominate(situation, nomination.names, message)
        yield from rejections(nomination)


def _offer(situation: Situation, names: tuple[str, ...]) -> Iterator[Effect]:
    """Make copies on these workers, patch those that differ, remove those of all others."""
    for worker in situation.workers:
        if not worker.configured or worker.refusal is not None:
            yield from _clean_current(situation, worker)
        elif worker.name not in names:
            # One with this attempt's job was recorded, and somebody has erased that: it is about to be recorded again.
            if not (_has_admitted(situation, worker) and situation.has_job(worker)):
                yield from _clean_current(situation, worker)
        elif worker.can_run:
            yield from _offer_to(situation, worker)


def _offer_to(situation: Situation, worker: Worker) -> Iterator[Effect]:
    if worker.is_empty:
        made = situation.copy_for(worker)
        if not awaits_turn(situation, worker):
            yield CreateWorkload(worker.name, gated(made) if takes_turns(situation) else made)
    elif worker.workload is None:
        yield from _clean_current(situation, worker)  # a job without its Workload cannot run
    elif (copy := situation.current(worker)) is not None and not worker.copy.is_terminating:
        yield from _update(situation, worker, copy)


def _update(situation: Situation, worker: Worker, copy: Json) -> Iterator[Effect]:
    """Patch a copy that differs, or remove it so that a new one can be made."""
    if worker.copy.is_spent or situation.must_be_replaced(copy) or is_misplaced(situation.snapshot, worker, copy):
        yield from _clean_current(situation, worker)
    elif (patch := drift_patch(situation.workload, copy)) is not None:
        yield PatchWorkload(worker.name, ObjectKey.of(copy), patch)


def _seconds(wait: timedelta | None) -> float | None:
    return None if wait is None else wait.total_seconds()
