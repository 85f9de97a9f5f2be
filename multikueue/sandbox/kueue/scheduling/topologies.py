"""Pods that ask for a topology: a worker places them with their quota, the manager waits until a worker has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from multikueue.core.model.labels import CONTROLLER_NAME
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

_LEVEL: Final = "kubernetes.io/hostname"
_NODE: Final = "node"


def is_delayed_by(checks: Iterable[Json | None]) -> bool:
    """Whether one of a queue's AdmissionChecks is MultiKueue's: then its workers place the pods."""
    return any(dig(check, "spec", "controllerName") == CONTROLLER_NAME for check in checks)


def located(workload: Json, assignments: Iterable[Json], *, delayed: bool) -> list[Json]:
    """The pod set assignments, with a place for the pods that ask for one, or the note that it is awaited."""
    asking = {pod_set.get("name") or "main" for pod_set in dig(workload, "spec", "podSets") or [] if _asks(pod_set)}
    return [
        {**assignment, **(_awaited() if delayed else _place(assignment))}
        if assignment["name"] in asking
        else assignment
        for assignment in assignments
    ]


def is_awaited(workload: Json) -> bool:
    """Whether pods have quota and their place is not known yet: Kueue does not admit such a Workload."""
    assigned = dig(workload, "status", "admission", "podSetAssignments") or []
    return any(assignment.get("delayedTopologyRequest") == "Pending" for assignment in assigned)


def _asks(pod_set: Json) -> bool:
    asked = pod_set.get("topologyRequest") or {}
    return any(asked.get(how) for how in ("required", "preferred", "unconstrained"))


def _awaited() -> Json:
    return {"delayedTopologyRequest": "Pending"}


def _place(assignment: Json) -> Json:
    """All pods on one node, in Kueue's words."""
    place = {"domainCount": 1, "podCounts": {"universal": assignment.get("count", 1)}}
    return {"topologyAssignment": {"levels": [_LEVEL], "slices": [{**place, "valuesPerLevel": [{"universal": _NODE}]}]}}
