"""The bodies of our server-side applies on a Workload's status.

Kueue's core writes the same fields under the same manager name, `kueue-admission`. An apply removes what its manager
owned and the body lacks, so ours must hold the whole set Kueue owns: as it was read, with our change in it.
The resourceVersion in the body makes sure that it was read late enough.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from multikueue.core.model.conditions import conditions, timestamp
from multikueue.core.model.labels import MAX_CONDITION_MESSAGE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, identity, shortened
from multikueue.core.model.workloads import CheckState, check, checks

OWNED_CONDITIONS: Final = frozenset(
    {
        "QuotaReserved",
        "BlockedOnPreemptionGates",
        "Evicted",
        "Admitted",
        "Preempted",
        "Requeued",
        "DeactivationTarget",
        "Finished",
        "PodsReady",
    }
)
_OWNED_FIELDS: Final = (
    "admission",
    "admissionChecks",
    "accumulatedPastExecutionTimeSeconds",
    "clusterName",
    "nominatedClusterNames",
    "unhealthyNodes",
    "preemptionGates",
)


def admission_status(workload: Json, changes: Json) -> Json:
    """The object to apply as `kueue-admission`: the owned set of `workload`, with `changes` in it.

    Args:
        workload: the object as read.
        changes: new values of status fields; None takes a field away.
    """
    status = dig(workload, "status") or {}
    owned: Json = {field: status[field] for field in _OWNED_FIELDS if status.get(field)}
    owned["conditions"] = owned_conditions(workload)
    if dig(status, "schedulingStats", "evictions"):
        owned["schedulingStats"] = {"evictions": status["schedulingStats"]["evictions"]}
    requeue = status.get("requeueState") or {}
    if requeue.get("count") is not None or requeue.get("requeueAt") is not None:
        owned["requeueState"] = requeue
    if status.get("admission"):
        owned["resourceRequests"] = []
    elif status.get("resourceRequests"):
        owned["resourceRequests"] = status["resourceRequests"]
    owned.update(changes)
    return _identified(workload, {field: value for field, value in owned.items() if value is not None})


def check_status(workload: Json, entry: Json, *beside: Json) -> Json:
    """The object to apply under our own manager name: one check's entry, and conditions of ours if there are any."""
    return _identified(workload, {"admissionChecks": [entry], **({"conditions": [*beside]} if beside else {})})


def owned_conditions(workload: Json) -> list[Json]:
    """Those of the Workload's conditions that Kueue owns."""
    return [entry for entry in conditions(workload) if entry.get("type") in OWNED_CONDITIONS]


def check_entry(
    workload: Json, name: str, state: CheckState, message: str, since: datetime, after: timedelta | None = None
) -> Json:
    """The check's entry in its new state. The transition time moves only when the state does.

    Args:
        workload: the Workload.
        name: the check's.
        state: the new one.
        message: what it says.
        since: from when the state counts: the manager's wall clock, or when Kueue gave the quota.
        after: for Retry: how long after that Kueue evicts it.
    """
    old = check(workload, name) or {"name": name}
    kept = old.get("lastTransitionTime") if old.get("state") == state else None
    return {
        **{field: value for field, value in old.items() if field not in ("podSetUpdates", "requeueAfterSeconds")},
        "state": str(state),
        "message": shortened(message, MAX_CONDITION_MESSAGE),
        "lastTransitionTime": kept or timestamp(since),
        **({} if after is None else {"requeueAfterSeconds": round(after.total_seconds())}),
    }


def with_check(workload: Json, entry: Json) -> list[Json]:
    """All checks of the Workload, with `entry` in its place."""
    return [entry if old.get("name") == entry["name"] else old for old in checks(workload)]


def _identified(workload: Json, status: Json) -> Json:
    return {"apiVersion": workload["apiVersion"], "kind": workload["kind"], **identity(workload), "status": status}
