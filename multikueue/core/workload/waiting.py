"""What our check says while a Workload waits: no wait is without a word, and each worker's word is told.

The head of the message says what is waited for, unless a dispatcher or somebody else says something there; behind it
stand the workers' reasons. A new head is written at once. A change of the reasons alone may wait: thousands of
Workloads have the same, and they change often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, TypeAlias

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import say
from multikueue.core.workload.cordons import why_withheld
from multikueue.core.workload.effects import MANAGER, Announce, ApplyStatus, Effect, PatchWorkload, Plan
from multikueue.core.workload.possible_runs import left_of_short_loss
from multikueue.core.workload.reasons import loss, reasons
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.words import tells_the_same, with_reasons

NOBODY_TAKES_IT: Final = "No worker cluster takes it"
"""How the check's message begins while all workers refuse."""
OURS: Final = ("Waiting for ", "Offered to ", "It cannot be told who runs the job: ", NOBODY_TAKES_IT)
"""How what is said here begins: it may be out of date."""


@attrs.frozen
class Tail:
    """What stands behind the head of the message."""

    parts: tuple[str, ...] | None = ()
    """None: nothing new is known, and what stands there stays."""
    warning: str = ""
    """What is told in an event as well, once it stands there."""
    again: timedelta | None = None
    """After what time there may be something else to tell; None: only a change brings that."""


Telling: TypeAlias = Callable[[Situation], Tail]


def may_say(head: str) -> bool:
    """Whether the check says nothing, or something of ours."""
    return not head or head.startswith(OURS)


def with_words(
    situation: Situation, waits_for: Callable[[Situation], str] | None, tells: Telling | None, decided: Plan
) -> Plan:
    """A plan that says in the check's message what is waited for, unless it writes the Workload anyway.

    Args:
        situation: the Workload.
        waits_for: makes the head; asked only if it may be said. None: it is not ours to write.
        tells: makes what stands behind it; None: nothing, or what stands there stays.
        decided: the plan so far.
    """
    if not workloads.has_quota(situation.workload) or situation.state not in (CheckState.PENDING, CheckState.READY):
        return decided
    if any(isinstance(one, ApplyStatus | PatchWorkload) and one.cluster == MANAGER for one in decided.effects):
        return decided  # the next plan, after that write, has the words
    tail = tells(situation) if tells is not None else Tail()
    if tail.again is not None:
        decided = attrs.evolve(decided, look_again=_earlier(decided.look_again, tail.again))
    head = _head(situation, waits_for)
    message = with_reasons(head, tail.parts or ())
    if head != situation.head:
        return attrs.evolve(decided, effects=(*decided.effects, say(situation, message)))
    if tells is None or tail.parts is None or tells_the_same(message, situation.message):
        return decided
    warned: Iterable[Effect] = [Announce("Warning", tail.warning)] if tail.warning else []
    return attrs.evolve(decided, telling=(say(situation, message), *warned))


def _head(situation: Situation, waits_for: Callable[[Situation], str] | None) -> str:
    if waits_for is None or situation.state is not CheckState.PENDING or not may_say(situation.head):
        return situation.head
    return waits_for(situation)


def _earlier(seconds: float | None, again: timedelta) -> float:
    return again.total_seconds() if seconds is None else min(seconds, again.total_seconds())


def offered(situation: Situation, names: tuple[str, ...]) -> str:
    """What is waited for while it is offered to these workers, or to none."""
    if not workloads.other_checks_ready(situation.workload, situation.check):
        return "Waiting for the other admission checks"
    configured = [worker for worker in situation.workers if worker.configured]
    held = {worker.name for worker in configured if why_withheld(situation, worker)}
    if asked := [name for name in names if name not in held]:
        return f"Offered to {', '.join(asked)}"
    refused = [worker for worker in configured if worker.refusal is not None]
    if refused and all(worker in refused or worker.name in held for worker in configured):
        return NOBODY_TAKES_IT
    none = "" if configured else ": the MultiKueueConfig lists none that is known"
    return f"Offered to no worker cluster{none}"


def tell_reasons(situation: Situation) -> Tail:
    """What the workers say that it is offered to, and why it is not offered to the others."""
    if not workloads.other_checks_ready(situation.workload, situation.check):
        return Tail()
    passing = (left_of_short_loss(situation, worker) for worker in situation.workers if worker.configured)
    again = min(filter(None, passing), default=None)
    return Tail(tuple(reasons(situation, workloads.nominated(situation.workload))), again=again)


def tell_loss(situation: Situation) -> Tail:
    """That the recorded worker cannot be seen, and when the job moves."""
    worker = situation.assigned_worker
    if worker is None or not worker.answered:
        return Tail(None)
    told, again = loss(situation, worker)
    return Tail((told,) if told else (), warning=told, again=again)
