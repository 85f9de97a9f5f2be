"""What Kueue's core does to the status of a Workload, as functions from a Workload to the changed one.

Reasons and messages are Kueue's (traces/ of a real one). Nothing is written in place: each function returns an object
with a status of its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from multikueue.core.model.conditions import (
    condition,
    conditions,
    new_condition,
    parse_timestamp,
    timestamp,
    updated,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig
from multikueue.core.model.workloads import checks, has_quota, is_admitted
from multikueue.sandbox.kueue.scheduling.topologies import is_awaited

DEACTIVATED: Final = "Deactivated"
PREEMPTED: Final = "Preempted"
ADMISSION_CHECK: Final = "AdmissionCheck"
PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"


def all_checks_ready(workload: Json) -> bool:
    """Whether no admission check holds it back."""
    return all(entry.get("state") == "Ready" for entry in checks(workload))


def with_condition(workload: Json, kind: str, status: bool, reason: str, message: str, now: datetime) -> Json:
    """The Workload with this condition."""
    generation = dig(workload, "metadata", "generation")
    new = new_condition(kind, status, reason, message, now=now, generation=generation)
    return _with(workload, {"conditions": updated(conditions(workload), new)})


def without_condition(workload: Json, kind: str) -> Json:
    """The Workload without conditions of this type."""
    return _with(workload, {"conditions": [entry for entry in conditions(workload) if entry["type"] != kind]})


def without_past_time(workload: Json) -> Json:
    """The Workload that has run for no time before."""
    return _with(workload, {"accumulatedPastExecutionTimeSeconds": None})


def reserved(workload: Json, cluster_queue: str, assignments: list[Json], now: datetime) -> Json:
    """Quota is reserved; an eviction before is over. Without admission checks it is admitted at once."""
    result = _with(workload, {"admission": {"clusterQueue": cluster_queue, "podSetAssignments": assignments}})
    message = f"Quota reserved in ClusterQueue {cluster_queue}"
    result = with_condition(result, "QuotaReserved", True, "QuotaReserved", message, now)
    for kind in ("Evicted", "Preempted"):
        old = condition(result, kind)
        if old is not None and old.get("status") == "True":
            result = with_condition(result, kind, False, "QuotaReserved", f"Previously: {old.get('message', '')}", now)
    return synced_admitted(result, now) if not checks(result) else result


def unreserved(workload: Json, reason: str, message: str, now: datetime) -> Json:
    """No quota, for this reason; if it was admitted, it no longer is, and the time it ran is added up."""
    result = with_condition(workload, "QuotaReserved", False, reason, message, now)
    return synced_admitted(_with(result, {"admission": None}), now)


def synced_admitted(workload: Json, now: datetime) -> Json:
    """The Workload with the Admitted condition that follows from quota and checks; the very object if it has it."""
    quota, admitted = has_quota(workload), is_admitted(workload)
    ready = all_checks_ready(workload) and not is_awaited(workload)
    if quota and ready:
        return (
            workload
            if admitted
            else with_condition(workload, "Admitted", True, "Admitted", "The workload is admitted", now)
        )
    known = condition(workload, "Admitted")
    if known is None and not quota:
        return workload
    if quota:
        reason, message = "UnsatisfiedAdmissionChecks", "The workload has not all checks ready"
    else:
        reason, message = "NoReservation", "The workload has no reservation"
    if known is not None and not admitted and known.get("reason") == reason:
        return workload
    result = with_condition(workload, "Admitted", False, reason, message, now)
    if not admitted or known is None:
        return result
    since = parse_timestamp(known.get("lastTransitionTime")) or now
    before = dig(workload, "status", "accumulatedPastExecutionTimeSeconds") or 0
    ran = max(0, int((now - since).total_seconds()))
    return _with(result, {"accumulatedPastExecutionTimeSeconds": before + ran})


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
    return _with(
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


def with_backoff(workload: Json, now: datetime) -> Json:
    """The Workload with one more failure to get its pods ready, and when it is queued again: a minute, doubled."""
    count = int(dig(workload, "status", "requeueState", "count") or 0) + 1
    wait = timedelta(seconds=min(60 * 2 ** (count - 1), 3600))
    return _with(workload, {"requeueState": {"count": count, "requeueAt": timestamp(now + wait)}})


def released(workload: Json, now: datetime) -> Json:
    """An evicted Workload whose job has stopped gives its quota back and, if preempted, queues again at once."""
    eviction = condition(workload, "Evicted") or {}
    reason, message = eviction.get("reason") or "Pending", eviction.get("message") or ""
    result = requeued(workload, reason == PREEMPTED, reason, message, now)
    return unreserved(result, reason, message, now)


def with_requeue_time(workload: Json, now: datetime) -> Json:
    """The Workload with the time until which its Retry checks want it to wait; the very object if none is later."""
    waits = [
        since + timedelta(seconds=entry["requeueAfterSeconds"])
        for entry in checks(workload)
        if entry.get("state") == "Retry" and entry.get("requeueAfterSeconds")
        if (since := parse_timestamp(entry.get("lastTransitionTime"))) is not None
    ]
    known = dig(workload, "status", "requeueState") or {}
    due = max(waits, default=now)
    if due <= max(now, parse_timestamp(known.get("requeueAt")) or now):
        return workload
    return _with(workload, {"requeueState": {**known, "requeueAt": timestamp(due)}})


def without_requeue_time(workload: Json) -> Json:
    """The Workload whose time to wait is over."""
    known = dig(workload, "status", "requeueState")
    left = {field: value for field, value in (known or {}).items() if field != "requeueAt"}
    return workload if known is None else _with(workload, {"requeueState": left})


def requeued(workload: Json, status: bool, reason: str, message: str, now: datetime) -> Json:
    """The Workload with the Requeued condition: while it is False, it waits outside the queue."""
    return with_condition(workload, "Requeued", status, reason, message, now)


def finished(workload: Json, reason: str, message: str, now: datetime) -> Json:
    """The job has ended; from now on the Workload holds no quota, whatever its admission says."""
    return with_condition(workload, "Finished", True, reason, message, now)


def deactivated(workload: Json, now: datetime) -> Json:
    """An inactive Workload is evicted; a DeactivationTarget gives the cause and has done its work."""
    target = condition(workload, "DeactivationTarget")
    cause, message = "", "The workload is deactivated"
    if target is not None:
        cause, message = target.get("reason") or "", f"{message} due to {target.get('message', '')}"
    result = without_condition(_with(workload, {"requeueState": None}), "DeactivationTarget")
    return evicted(result, DEACTIVATED, message, now, cause=cause)


def with_checks(workload: Json, names: list[str], now: datetime) -> Json:
    """The Workload with an entry for each of its ClusterQueue's checks, new ones Pending; the object if it has them."""
    known = {entry["name"]: entry for entry in checks(workload)}
    if set(known) == set(names):
        return workload
    pending = {"state": "Pending", "message": "", "lastTransitionTime": timestamp(now)}
    entries = [known.get(name) or {"name": name, **pending} for name in sorted(names)]
    return _with(workload, {"admissionChecks": entries or None})


def _with(workload: Json, changes: Json) -> Json:
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
        result.append({**entry, "count": entry["count"] + 1} if same else entry)
    return result if known else [*result, {"reason": reason, "underlyingCause": cause, "count": 1}]
