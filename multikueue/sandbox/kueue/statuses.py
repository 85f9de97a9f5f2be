"""What Kueue's core does to the status of a Workload, as functions from a Workload to the changed one.

Reasons and messages are Kueue's (traces/ of a real one). Nothing is written in place: each function returns an object
with a status of its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from multikueue.core.model.conditions import condition, conditions, parse_timestamp, timestamp
from multikueue.core.model.eviction import DEACTIVATED, PREEMPTED, evicted, with_condition, with_status
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import checks, has_quota, is_admitted
from multikueue.sandbox.kueue.scheduling.topologies import is_awaited

PODS_READY_TIMEOUT: Final = "PodsReadyTimeout"


def all_checks_ready(workload: Json) -> bool:
    """Whether no admission check holds it back."""
    return all(entry.get("state") == "Ready" for entry in checks(workload))


def without_condition(workload: Json, kind: str) -> Json:
    """The Workload without conditions of this type."""
    return with_status(workload, {"conditions": [entry for entry in conditions(workload) if entry["type"] != kind]})


def without_past_time(workload: Json) -> Json:
    """The Workload that has run for no time before."""
    return with_status(workload, {"accumulatedPastExecutionTimeSeconds": None})


def reserved(workload: Json, cluster_queue: str, assignments: list[Json], now: datetime) -> Json:
    """Quota is reserved; an eviction before is over. Without admission checks it is admitted at once."""
    result = with_status(workload, {"admission": {"clusterQueue": cluster_queue, "podSetAssignments": assignments}})
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
    return synced_admitted(with_status(result, {"admission": None}), now)


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
    return with_status(result, {"accumulatedPastExecutionTimeSeconds": before + ran})


def with_backoff(workload: Json, now: datetime) -> Json:
    """The Workload with one more failure to get its pods ready, and when it is queued again: a minute, doubled."""
    count = int(dig(workload, "status", "requeueState", "count") or 0) + 1
    wait = timedelta(seconds=min(60 * 2 ** (count - 1), 3600))
    return with_status(workload, {"requeueState": {"count": count, "requeueAt": timestamp(now + wait)}})


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
    return with_status(workload, {"requeueState": {**known, "requeueAt": timestamp(due)}})


def without_requeue_time(workload: Json) -> Json:
    """The Workload whose time to wait is over."""
    known = dig(workload, "status", "requeueState")
    left = {field: value for field, value in (known or {}).items() if field != "requeueAt"}
    return workload if known is None else with_status(workload, {"requeueState": left})


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
    result = without_condition(with_status(workload, {"requeueState": None}), "DeactivationTarget")
    return evicted(result, DEACTIVATED, message, now, cause=cause)


def with_checks(workload: Json, names: list[str], now: datetime) -> Json:
    """The Workload with an entry for each of its ClusterQueue's checks, new ones Pending; the object if it has them."""
    known = {entry["name"]: entry for entry in checks(workload)}
    if set(known) == set(names):
        return workload
    pending = {"state": "Pending", "message": "", "lastTransitionTime": timestamp(now)}
    entries = [known.get(name) or {"name": name, **pending} for name in sorted(names)]
    return with_status(workload, {"admissionChecks": entries or None})
