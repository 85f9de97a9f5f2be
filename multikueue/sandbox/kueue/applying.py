"""Kueue's server-side applies on a Workload's status, and an eviction from outside.

Kueue applies everything it owns each time; what the body lacks and its manager owned before is thereby removed.
The resourceVersion makes a body from an old object fail.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import conditions
from multikueue.core.model.eviction import PREEMPTED, evicted
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import Conflict
from multikueue.protocols import ApiClient
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.kueue.statuses import PODS_READY_TIMEOUT, with_backoff

ADMISSION: Final = "kueue-admission"
"""Field manager of the admission-owned part of the status."""
PODS_READY: Final = "kueue-job-controller-PodsReady"
"""Field manager of the PodsReady condition alone."""

_CONDITIONS: Final = (
    "QuotaReserved",
    "BlockedOnPreemptionGates",
    "Evicted",
    "Admitted",
    "Preempted",
    "Requeued",
    "DeactivationTarget",
    "Finished",
    "PodsReady",
)
_FIELDS: Final = (
    "admission",
    "requeueState",
    "accumulatedPastExecutionTimeSeconds",
    "schedulingStats",
    "admissionChecks",
    "clusterName",
    "nominatedClusterNames",
    "unhealthyNodes",
    "preemptionGates",
)


def admission_body(workload: Json) -> Json:
    """All that Kueue's core owns in the status of `workload`."""
    status = workload.get("status") or {}
    by_type = {entry["type"]: entry for entry in conditions(workload)}
    body: Json = {"conditions": [by_type[kind] for kind in _CONDITIONS if kind in by_type]}
    body.update({field: status[field] for field in _FIELDS if status.get(field) not in (None, [], {})})
    return _identified(workload, body)


def condition_body(workload: Json, kind: str) -> Json:
    """One condition of `workload` and nothing else."""
    chosen = [entry for entry in conditions(workload) if entry["type"] == kind]
    return _identified(workload, {"conditions": chosen})


def _identified(workload: Json, status: Json) -> Json:
    identity = ("name", "namespace", "uid", "resourceVersion")
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "metadata": {field: dig(workload, "metadata", field) for field in identity},
        "status": status,
    }


async def evict(
    client: ApiClient,
    key: ObjectKey,
    *,
    reason: str = PREEMPTED,
    message: str = "Evicted by a tester",
    clock: Callable[[], datetime] = utc_now,
) -> Json:
    """Evict a Workload; whoever runs its job stops it, and Kueue then gives the quota back.

    Args:
        client: of the cluster the Workload is on.
        key: of the Workload.
        reason: `Preempted`, `PodsReadyTimeout` (it is queued again after a minute), or another of Kueue's reasons.
        message: of the Evicted condition.
        clock: the wall clock that goes into the condition.

    Returns:
        The Workload as written.

    Raises:
        NotFound: there is no such Workload.
    """
    while True:
        workload = await client.get(WORKLOAD, key)
        waits = with_backoff(workload, clock()) if reason == PODS_READY_TIMEOUT else workload
        body = admission_body(evicted(waits, reason, message, clock()))
        try:
            return await client.apply(WORKLOAD, body, field_manager=ADMISSION, subresource="status")
        except Conflict:
            continue  # somebody else wrote in between: read again
