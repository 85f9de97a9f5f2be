"""Preemption gates of a Workload: while one is closed, the Workload takes nobody's place."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import is_true, timestamp
from multikueue.core.model.eviction import with_condition
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig

BLOCKED: Final = "BlockedOnPreemptionGates"
_MESSAGE: Final = "The workload needs preemption, and its preemption gates are closed"


def is_gated(workload: Json) -> bool:
    """Whether one of its gates is not open."""
    opened = {gate["name"] for gate in _positions(workload) if gate.get("position") == "Open"}
    return any(name not in opened for name in _names(workload))


def with_gates(workload: Json, now: datetime) -> Json:
    """The Workload whose status has a position for each of its gates, new ones closed; the object if it has them."""
    names, known = _names(workload), {gate["name"]: gate for gate in _positions(workload)}
    if set(names) == set(known):
        return workload
    closed = {"position": "Closed", "lastTransitionTime": timestamp(now)}
    result: Json = clone(workload)
    result.setdefault("status", {})["preemptionGates"] = [known.get(name) or {"name": name, **closed} for name in names]
    return result


def blocked(workload: Json, now: datetime) -> Json:
    """A Workload that would have to take somebody's place, and may not; the object if it says so already."""
    if is_true(workload, BLOCKED):
        return workload
    return with_condition(workload, BLOCKED, True, "PreemptionGated", _MESSAGE, now)


def unblocked(workload: Json, now: datetime) -> Json:
    """A Workload that has got its quota."""
    if not is_true(workload, BLOCKED):
        return workload
    return with_condition(workload, BLOCKED, False, "QuotaReserved", "The workload has quota", now)


def _names(workload: Json) -> list[str]:
    return [gate["name"] for gate in dig(workload, "spec", "preemptionGates") or []]


def _positions(workload: Json) -> list[Json]:
    return dig(workload, "status", "preemptionGates") or []
