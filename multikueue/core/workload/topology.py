"""Delayed topology: the manager's Kueue waits until the worker has placed the pods (topology-aware scheduling)."""

from __future__ import annotations

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig


def placed(workload: Json, remote: Json) -> Json | None:
    """The manager's `status.admission`, with the topology of what the worker has placed no longer awaited.

    The placement itself stays the worker's: its nodes mean nothing to the manager. Kueue admits the Workload once no
    pod set is awaited.

    Args:
        workload: the manager's Workload.
        remote: the admitted copy.

    Returns:
        None if nothing awaited has been placed.
    """
    there = {one.get("name") for one in _assignments(remote) if one.get("topologyAssignment")}
    awaited = [
        one.get("delayedTopologyRequest") == "Pending" and one.get("name") in there for one in _assignments(workload)
    ]
    if not any(awaited):
        return None
    flipped = [
        {**one, "delayedTopologyRequest": "Ready"} if ready else one
        for one, ready in zip(_assignments(workload), awaited, strict=True)
    ]
    return {**workload["status"]["admission"], "podSetAssignments": flipped}


def _assignments(workload: Json) -> list[Json]:
    return dig(workload, "status", "admission", "podSetAssignments") or []
