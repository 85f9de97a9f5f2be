"""Orchestrated preemption: copies are made with a closed gate, and one worker at a time may preempt.

Without it every worker without room evicts somebody for a Workload that can run on only one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.labels import ADMISSION_MANAGER, PREEMPTION_GATE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.status_apply import admission_status
from multikueue.core.model.worker_states import Lost, OutcomeUnknown, WritingStatus
from multikueue.core.workload.effects import ApplyStatus, CreateWorkload, Effect, Plan
from multikueue.core.workload.seen.situation import Situation, certain
from multikueue.core.workload.seen.snapshot import Worker


def gated(workload: Json) -> Json:
    """The Workload copy with our gate and no other: closed until we open it."""
    return {**workload, "spec": {**workload["spec"], "preemptionGates": [{"name": PREEMPTION_GATE}]}}


def takes_turns(situation: Situation) -> bool:
    """Whether one worker at a time may preempt for the Workload. Of a group only one can be nominated."""
    return situation.settings.orchestrated_preemption and not situation.group_workers


def awaits_turn(situation: Situation, worker: Worker) -> bool:
    """Whether a worker gets its copy only when its turn has come: its API drops the gate, so it preempts at once."""
    return takes_turns(situation) and worker.kueue.drops_gates and worker.is_empty


def is_open(situation: Situation, worker: Worker) -> bool:
    """Whether the worker may preempt for the Workload by a gate of ours that was opened."""
    return situation.this_copy(worker) is not None and worker.facts.has_gate and worker.facts.opened_at is not None


def open_next(situation: Situation, names: Sequence[str]) -> Plan:
    """Open the gate of the first nominated worker that must preempt for the Workload; of the next one after a while.

    First means first of the config. When a gate was opened, by our clock, is noted on the copy. It is written under
    Kueue's field manager, with all fields of that one: Kueue could not remove an entry of another manager.

    Where the outcome of opening a gate is unknown, the same gate is opened again before any other.

    A worker whose API drops gates gets its copy as its turn, once those with gates have said that they have no room.
    """
    asked = [worker for worker in situation.workers if worker.can_run and worker.name in names]
    with_gate = [worker for worker in asked if worker.facts.has_gate and _is_offered(situation, worker)]
    closed = [worker for worker in with_gate if worker.facts.opened_at is None]
    if not situation.settings.orchestrated_preemption:  # any more: copies made with a gate must not wait for ever
        return Plan(_open(situation, worker) for worker in closed)
    if any(isinstance(flight := worker.in_flight, WritingStatus) and flight.may_preempt for worker in asked):
        return Plan()  # a gate is being opened, and does not show yet: the answer has this planned again
    turns: dict[str, Effect] = {worker.name: _open(situation, worker) for worker in closed if worker.facts.is_blocked}
    gateless = [worker for worker in asked if awaits_turn(situation, worker)]
    unheard = _unheard_for(situation, asked) if gateless else None
    if unheard is None:
        turns |= {worker.name: CreateWorkload(worker.name, situation.copy_for(worker)) for worker in gateless}
    if not turns:
        return Plan(look_again=unheard)
    timeout, now = situation.settings.preemption_timeout, situation.now
    heard = [worker for worker in situation.workers if not isinstance(worker.reach, Lost)]  # or being connected to
    offers = (worker.facts for worker in heard if _is_offered(situation, worker))
    began = (facts.opened_at if facts.has_gate else facts.created_at for facts in offers)
    running = [at for at in began if at is not None and abs(now - at) < timeout]  # a worker's clock may be far ahead
    if running:
        return Plan(look_again=(timeout - (now - max(running))).total_seconds())
    first = sorted(asked, key=lambda worker: not isinstance(worker.in_flight, OutcomeUnknown))
    return Plan([next(turns[worker.name] for worker in first if worker.name in turns)], timeout.total_seconds())


def _unheard_for(situation: Situation, asked: Sequence[Worker]) -> float | None:
    """For how many seconds to wait for answers of workers with gates; None: all have answered, or time is over."""
    reserved = situation.facts.reserved_at or situation.now
    left = situation.settings.preemption_timeout - (situation.now - reserved)
    copies = (situation.this_copy(worker) or {} for worker in asked if not worker.kueue.drops_gates)
    silent = any(condition(copy, "QuotaReserved") is None for copy in copies)
    return left.total_seconds() if silent and left.total_seconds() > 0 else None


def _is_offered(situation: Situation, worker: Worker) -> bool:
    """Whether a copy of this attempt is there that is not about to be removed."""
    copy, facts = situation.this_copy(worker), worker.facts
    leaves = facts.is_spent or facts.is_terminating or facts.is_finished
    return copy is not None and not leaves and not situation.must_be_replaced(copy)


def _open(situation: Situation, worker: Worker) -> ApplyStatus:
    copy = certain(worker.copy, "only a copy has a gate")
    entry = {"name": PREEMPTION_GATE, "position": "Open", "lastTransitionTime": timestamp(situation.now)}
    others = [gate for gate in dig(copy, "status", "preemptionGates") or [] if gate.get("name") != PREEMPTION_GATE]
    body = admission_status(copy, {"preemptionGates": [*others, entry]})
    return ApplyStatus(worker.name, body, ADMISSION_MANAGER)
