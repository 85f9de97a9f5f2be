"""What our check says while a Workload waits and nothing else has been said: no wait is without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from multikueue.core.model import workloads
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import say
from multikueue.core.workload.cordons import why_withheld
from multikueue.core.workload.effects import MANAGER, ApplyStatus, Effect, PatchWorkload
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Connecting, Lost, Served, Syncing, Unusable, Worker

OURS: Final = ("Waiting for ", "Offered to ", "It cannot be told who runs the job: ")
"""How what is said here begins: it may be out of date."""


def may_say(message: str) -> bool:
    """Whether the check says nothing, or something of ours."""
    return not message or message.startswith(OURS)


def tell_wait(
    situation: Situation, waits_for: Callable[[Situation], str], effects: tuple[Effect, ...]
) -> Iterator[Effect]:
    """Say what is waited for, unless the check says something or is written anyway.

    Args:
        situation: the Workload.
        waits_for: makes the text; asked only if it may be said.
        effects: what is decided.
    """
    waits = situation.state is CheckState.PENDING and workloads.has_quota(situation.workload)
    if not waits or not may_say(situation.message):
        return
    written = any(isinstance(one, ApplyStatus | PatchWorkload) and one.cluster == MANAGER for one in effects)
    text = waits_for(situation)
    if text != situation.message and not written:
        yield say(situation, text)


def offered(situation: Situation, names: tuple[str, ...]) -> str:
    """What is waited for while it is offered to these workers, or to none."""
    if not workloads.other_checks_ready(situation.workload, situation.check):
        return "Waiting for the other admission checks"
    held = {one.name: why for one in situation.workers if one.configured and (why := why_withheld(situation, one))}
    if asked := [name for name in names if name not in held]:
        others = "".join(f"; {name}: {why}" for name, why in held.items())
        return f"Offered to {', '.join(asked)}{others}"
    told = (worker for worker in situation.workers if worker.configured)
    reasons = [f"{worker.name}: {held.get(worker.name) or _why_not(worker)}" for worker in told]
    return "Offered to no worker cluster: " + ("; ".join(reasons) or "the MultiKueueConfig lists none that is known")


def _why_not(worker: Worker) -> str:
    """Why a worker cannot be offered the job now, in a few words."""
    match worker.reach, worker.kind:
        case Connecting(), _:
            return "connecting"
        case Lost(), _:
            return "cannot be reached"
        case _, Syncing():
            return "its jobs are being read"
        case _, Unusable(why):
            return why
        case _, Served():
            return worker.refusal.why if worker.refusal is not None else "not nominated"
    return "does not serve the job's kind"
