"""Orchestrated preemption: copies are made with a closed gate, and one worker at a time may preempt.

Without it every worker without room evicts somebody for a Workload that can run on only one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import is_true, parse_timestamp, timestamp
from multikueue.core.model.copies import is_spent
from multikueue.core.model.labels import ADMISSION_MANAGER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating
from multikueue.core.model.status_apply import admission_status
from multikueue.core.model.workloads import is_finished
from multikueue.core.workload.effects import ApplyStatus, Plan
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker, WritingStatus

GATE: Final = "kueue.x-k8s.io/multikueue"
BLOCKED: Final = "BlockedOnPreemptionGates"


def gated(workload: Json) -> Json:
    """The Workload copy with our gate and no other: closed until we open it."""
    return {**workload, "spec": {**workload["spec"], "preemptionGates": [{"name": GATE}]}}


def open_next(situation: Situation, names: Sequence[str]) -> Plan:
    """Open the gate of the first nominated worker that must preempt for the Workload; of the next one after a while.

    First means first of the config. When a gate was opened, by our clock, is noted on the copy. It is written under
    Kueue's field manager, with all fields of that one: Kueue could not remove an entry of another manager.
    """
    asked = [worker for worker in situation.workers if worker.can_run and worker.name in names]
    copies = [(worker, situation.current(worker)) for worker in asked]
    offered = [(worker, copy) for worker, copy in copies if copy is not None and _is_waiting(situation, copy)]
    if not situation.settings.orchestrated_preemption:  # any more: copies made with a gate must not wait for ever
        return Plan(tuple(_open(situation, worker, copy) for worker, copy in offered if _opened_at(copy) is None))
    blocked = [(worker, copy) for worker, copy in offered if _opened_at(copy) is None and is_true(copy, BLOCKED)]
    if not blocked or any(isinstance(worker.in_flight, WritingStatus) for worker in asked):
        return Plan()  # a gate that is being opened does not show yet: its answer brings us back
    timeout = situation.settings.preemption_timeout
    opened = [at for _, copy in offered if (at := _opened_at(copy)) is not None]
    if opened and (left := timeout - (situation.now - max(opened))).total_seconds() > 0:
        return Plan(look_again=left.total_seconds())
    return Plan((_open(situation, *blocked[0]),), look_again=timeout.total_seconds())


def _is_waiting(situation: Situation, copy: Json) -> bool:
    """Whether it has our gate, and is not about to be removed."""
    if not any(gate.get("name") == GATE for gate in dig(copy, "spec", "preemptionGates") or []):
        return False
    stays = not is_spent(copy) and not situation.must_be_replaced(copy)
    return stays and not is_terminating(copy) and not is_finished(copy)


def _opened_at(copy: Json) -> datetime | None:
    entry = next((one for one in _positions(copy) if one.get("name") == GATE), {})
    return parse_timestamp(entry.get("lastTransitionTime")) if entry.get("position") == "Open" else None


def _open(situation: Situation, worker: Worker, copy: Json) -> ApplyStatus:
    entry = {"name": GATE, "position": "Open", "lastTransitionTime": timestamp(situation.now)}
    others = [one for one in _positions(copy) if one.get("name") != GATE]
    body = admission_status(copy, {"preemptionGates": [*others, entry]})
    return ApplyStatus(worker.name, body, ADMISSION_MANAGER)


def _positions(copy: Json) -> list[Json]:
    return dig(copy, "status", "preemptionGates") or []
