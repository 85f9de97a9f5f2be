"""An eviction, as Kueue writes it to the status of a Workload (v0.19.2, `pkg/workload/evict`).

Nothing is written in place: each function returns an object with a status of its own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import condition, conditions, new_condition, timestamp, updated
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig
from multikueue.core.model.workloads import checks

DEACTIVATED: Final = "Deactivated"
PREEMPTED: Final = "Preempted"
ADMISSION_CHECK: Final = "AdmissionCheck"


def evicted(
    workload: Json, reason: str, message: str, now: datetime, *, cause: str = "", preempted: str = "InClusterQueue"
) -> Json:
    """Evicted: no cluster is nominated or chosen any more, checks start over, and the eviction is counted.

    Quota stays until the job is seen to be stopped (`released`).
    """
    shown = f"{reason}DueTo{cause}" if reason == DEACTIVATED and cause else reason
    result = with_condition(workload, "Evicted", True, shown, message, now)
    if reason == PREEMPTED:
        result = with_condition(result, "Preempted", True, preempted, message, now)
    blocked = condition(result, "BlockedOnPreemptionGates")
    if blocked is not None and blocked.get("status") == "True":
        result = with_condition(result, "BlockedOnPreemptionGates", False, shown, message, now)
    return with_status(
        result,
        {
            "clusterName": None,
            "nominatedClusterNames": None,
            "unhealthyNodes": None,
            "admissionChecks": [_reset(entry, now) for entry in checks(result)] or None,
            "preemptionGates": [_closed(gate, now) for gate in dig(result, "status", "preemptionGates") or []] or None,
            "schedulingStats": {"evictions": _counted(result, reason, cause)},
        },
    )


def given_back(workload: Json, message: str, at: datetime, queued: datetime) -> Json:
    """Evicted as for a check, and out of its queue until then."""
    state = {**(dig(workload, "status", "requeueState") or {}), "requeueAt": timestamp(queued)}
    return with_status(evicted(workload, ADMISSION_CHECK, message, at), {"requeueState": state})


def with_condition(workload: Json, kind: str, status: bool, reason: str, message: str, now: datetime) -> Json:
    """The Workload with this condition."""
    generation = dig(workload, "metadata", "generation")
    new = new_condition(kind, status, reason, message, now=now, generation=generation)
    return with_status(workload, {"conditions": updated(conditions(workload), new)})


def with_status(workload: Json, changes: Json) -> Json:
    """The Workload with these fields of its status; None takes one away."""
    status = {**(workload.get("status") or {}), **clone(changes)}
    return {**workload, "status": {field: value for field, value in status.items() if value is not None}}


def _reset(entry: Json, now: datetime) -> Json:
    state = entry.get("state")
    if state == "Pending":
        return entry
    result = {
        "name": entry["name"],
        "state": "Pending",
        "message": f"Reset to Pending after eviction. Previously: {state}",
        "lastTransitionTime": timestamp(now),
    }
    if "requeueAfterSeconds" in entry:
        result["requeueAfterSeconds"] = entry["requeueAfterSeconds"]
    if state == "Retry":
        result["retryCount"] = int(entry.get("retryCount") or 0) + 1
    return result


def _closed(gate: Json, now: datetime) -> Json:
    return {**gate, "position": "Closed", "lastTransitionTime": timestamp(now)}


def _counted(workload: Json, reason: str, cause: str) -> list[Json]:
    listed = dig(workload, "status", "schedulingStats", "evictions") or []
    result, known = [], False
    for entry in listed:
        same = entry.get("reason") == reason and entry.get("underlyingCause", "") == cause
        known = known or same
        result.append({**entry, "count": int(entry.get("count") or 0) + 1} if same else entry)
    return result if known else [*result, {"reason": reason, "underlyingCause": cause, "count": 1}]
