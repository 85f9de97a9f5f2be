"""What our check says while a Workload waits: no wait is without a word, and each worker's word is told.

The head of the message says what is waited for, unless the dispatcher says something there; behind it stand the
workers' reasons. A new head is written at once. A change of the reasons alone may wait: thousands of Workloads have
the same, and they change often. Whoever waits must not need a worker's credentials to know why. Only what the caches
show is told, and nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import timedelta
from typing import TypeAlias

import attrs

from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model import check_message, workloads
from multikueue.core.model import worker_states as states
from multikueue.core.model.conditions import message, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.workload_facts import CopyFacts
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import beside_admitted, say
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, ApplyStatus, Effect, PatchWorkload, Plan
from multikueue.core.workload.preemption_gates import awaits_turn
from multikueue.core.workload.seen.graces import SHORT_LOSS
from multikueue.core.workload.seen.places import withheld
from multikueue.core.workload.seen.runs import assumed_for, left_of_short_loss, possible_runs, unstopped
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import Worker
from multikueue.errors import Cause


@attrs.frozen
class Tail:
    """What stands behind the head of the message."""

    parts: tuple[str, ...] | None = ()
    """None: nothing new is known, and what stands there stays."""
    warning: str = ""
    """What is told in an event as well, once it stands there."""
    again: timedelta | None = None
    """In what time there may be something else to tell; None: only a change brings that."""


Heading: TypeAlias = Callable[[Situation], str]
"""Makes the head of the message."""
Telling: TypeAlias = Callable[[Situation], Tail]
"""Makes what stands behind it."""


def with_words(situation: Situation, waits_for: Heading | None, tells: Telling | None, decided: Plan) -> Plan:
    """The plan, with the check's message if that changes; without it where the plan writes the Workload already.

    Args:
        situation: the Workload.
        waits_for: makes the head; None: it stays as it is.
        tells: makes what stands behind the head; None: it stays as it is, or goes with another head.
        decided: the plan so far.
    """
    if not situation.facts.has_quota or situation.state not in (CheckState.PENDING, CheckState.READY):
        return decided
    if any(isinstance(effect, ApplyStatus | PatchWorkload) and effect.cluster == MANAGER for effect in decided.effects):
        return decided  # the next plan, after that write, has the words
    tail = tells(situation) if tells is not None else Tail()
    decided = decided.within(tail.again)
    head = _head(situation, waits_for)
    words = check_message.Message(head, tail.parts or ())
    if head != situation.head:
        return attrs.evolve(decided, effects=(*decided.effects, say(situation, words)))
    if tells is None or tail.parts is None or check_message.means_the_same(words.render(), situation.message):
        return decided
    warned: Iterable[Effect] = [AnnounceWorkload("Warning", tail.warning)] if tail.warning else []
    return attrs.evolve(decided, telling=(say(situation, words), *warned))


def _head(situation: Situation, waits_for: Heading | None) -> str:
    if waits_for is None or situation.state is not CheckState.PENDING or is_head_remembered(situation):
        return situation.head
    return waits_for(situation)


def is_head_remembered(situation: Situation) -> bool:
    """Whether the dispatcher keeps in the head what it must remember; else nothing is lost with it."""
    return Guarded(situation.dispatcher).remembers(situation.head)


def offered(situation: Situation, names: tuple[str, ...]) -> str:
    """What is waited for while it is offered to these workers, or to none."""
    withheld_from, configured = withheld(situation), situation.configured
    asked = [name for name in names if name not in withheld_from]
    refused = {worker.name for worker in configured if worker.refusal is not None}
    if refused and not asked and all(worker.name in {*refused, *withheld_from} for worker in configured):
        return check_message.NOBODY_TAKES_IT
    return check_message.offered_to(asked, configured=bool(configured))


def tell_reasons(situation: Situation) -> Tail:
    """What the workers say that it is offered to, and why it is not offered to the others."""
    if not workloads.other_checks_ready(situation.workload, situation.check):
        return Tail()
    again = min(filter(None, (left_of_short_loss(situation, worker) for worker in situation.configured)), default=None)
    refusals = ((worker.name, worker.refusal) for worker in situation.configured)
    full = (f"{name}: {refusal.why}" for name, refusal in refusals if isinstance(refusal, states.ShareUsedUp))
    return Tail(tuple(reasons(situation, situation.facts.nominated)), "; ".join(full), again)


def tell_recorded(situation: Situation) -> Tail:
    """What its user should know of a Workload that a worker has: that it cannot be seen, and when the job moves."""
    worker = situation.recorded_or_none
    if worker is None or not worker.answered:
        return Tail(None)
    answer, again = loss(situation, worker)
    said = answer.said if answer is not None else ""
    lost, warning = ((check_message.part(worker.name, said),), f"{worker.name} {said}") if said else ((), "")
    return Tail((*beside_admitted(situation, situation.state), *lost), warning, again)


def reasons(situation: Situation, names: Collection[str]) -> Iterator[str]:
    """What each worker of the config says about a Workload that is offered to the workers of these names.

    A worker says nothing while it has just been asked, or once it has admitted the Workload.
    """
    for worker in situation.configured:
        if (answer := _answer(situation, worker, names)) is not None and answer.said:
            yield check_message.part(worker.name, answer.said)


def _answer(situation: Situation, worker: Worker, names: Collection[str]) -> Reason | None:
    if (held := withheld(situation).get(worker.name)) is not None:
        return held
    # While it is offered to others, a short loss is not worth a write: what the worker said last holds.
    passes = bool(names) and bool(left_of_short_loss(situation, worker))
    if (not worker.in_sight and not passes) or isinstance(worker.kind, states.Unusable):
        return out_of_sight(worker, _earlier_attempt(situation, worker))
    if worker.refusal is not None:
        return of_refusal(situation, worker.refusal)
    if worker.name not in names:
        is_weighed = worker.name in situation.snapshot.dispatcher_facts.workers
        return None if is_weighed else Reason(Cause.NOT_NOMINATED)
    if (copy := situation.this_copy(worker)) is not None:
        return _answer_of_kueue(copy, worker.facts)
    if awaits_turn(situation, worker):
        return Reason(Cause.TURN_AWAITED, worker.kueue.name)
    return None if worker.is_empty else Reason(Cause.LEFT_OVER)


def _earlier_attempt(situation: Situation, worker: Worker) -> str:
    """Until when nobody else gets the job, because it may still run there."""
    if unstopped(situation, worker) is not None:
        return ", has not stopped an earlier attempt: no other gets it before that"
    for run in possible_runs(situation) if _time_runs_out(worker) else ():
        if run.worker == worker.name:
            return f", may run an earlier attempt: no other gets it before {timestamp(situation.now + run.until)}"
    return ""


def of_refusal(situation: Situation, refusal: states.Refusal) -> Reason:
    """Why a worker is not asked before a time."""
    why = Cause.SHARE_USED_UP if isinstance(refusal, states.ShareUsedUp) else Cause.REFUSED
    return Reason(why, refusal.why, situation.now + refusal.left)


def out_of_sight(worker: Worker, then: str = "") -> Reason:
    """Why nothing can be seen or created on a worker, and what follows from that."""
    if worker.unreadable:
        return Reason(Cause.OBJECT_UNREADABLE, worker.unreadable + then)
    match worker.sight:
        case states.Connecting():
            return Reason(Cause.CONNECTING, then)
        case states.Lost(since):
            return Reason(Cause.OUT_OF_REACH, f" since {timestamp(since)}{then}" if since is not None else then)
        case states.Opaque():
            return Reason(Cause.ANSWERS_UNREADABLE, then)
        case states.Syncing():
            return Reason(Cause.JOBS_UNREAD, then)
        case states.Unusable(why):
            return Reason(Cause.FIELD_MISSING, why + then)
    return Reason(Cause.NOT_SERVED, then)


def _answer_of_kueue(copy: Json, facts: CopyFacts) -> Reason | None:
    """What the worker's Kueue says about a copy; None once it has admitted it."""
    if facts.is_finished:
        return Reason(Cause.COPY_ENDED, message(copy, "Finished")) if facts.is_spent else None
    if facts.is_evicted:
        return Reason(Cause.EVICTED, message(copy, "Evicted"))
    if facts.is_blocked or not facts.has_quota:
        why = Cause.MAY_NOT_PREEMPT if facts.is_blocked else Cause.NO_QUOTA
        return Reason(why, check_message.condensed(message(copy, "QuotaReserved")))
    return None if facts.is_admitted else Reason(Cause.CHECKS_AWAITED, _word_of_checks(copy))


def _word_of_checks(copy: Json) -> str:
    """Of a copy with quota: which of the worker's own admission checks it waits for."""
    waiting = [check for check in workloads.checks(copy) if check.get("state") != workloads.CheckState.READY]
    words = (f'"{check.get("name")}" is {check.get("state")} {check.get("message") or ""}' for check in waiting)
    return "; ".join(f"admission check {word.strip()}" for word in words) or message(copy, "Admitted")


def loss(situation: Situation, worker: Worker) -> tuple[Reason | None, timedelta | None]:
    """What to tell about the recorded worker: that it holds the job, or is out of sight, and when the job moves.

    Returns:
        Why it is, None while there is nothing to tell; and after what time there may be.
    """
    if worker.in_sight:
        on_hold = _why_on_hold(situation, worker) if worker.facts.is_on_hold else None
        return (Reason(Cause.UNLISTED) if worker.removed else on_hold), None
    left, timeout = assumed_for(situation, worker), situation.settings.worker_lost_timeout
    if not left:
        return None, None
    patience = SHORT_LOSS if timeout > 2 * SHORT_LOSS else timedelta(0)
    if (early := patience - (timeout - left)) > timedelta(0) and _time_runs_out(worker):
        return None, early
    removed = "; its MultiKueueCluster is gone" if worker.removed else ""
    stays = "" if isinstance(worker.reach, states.Lost) else "; stays there"
    until = f"; moves at {timestamp(situation.now + left)}" if _time_runs_out(worker) else stays
    return out_of_sight(worker, until + removed), None


def _why_on_hold(situation: Situation, worker: Worker) -> Reason:
    """Why its Kueue holds it without an eviction, and what the job's controller says: mostly that is the cause."""
    said = (str(dig(job, "status", "message") or "") for job in situation.jobs_on(worker))
    words = ("holds it", message(worker.copy or {}, "QuotaReserved"), *said)
    return Reason(Cause.ON_HOLD, ": ".join(filter(None, words)))


def _time_runs_out(worker: Worker) -> bool:
    """Whether time runs out for what is there."""
    is_lost = isinstance(worker.sight, states.Lost) and worker.sight.since is not None
    return is_lost or isinstance(worker.sight, states.Unserved)
