"""The bodies of Kueue's server-side applies on a Workload's status.

Kueue applies everything it owns each time; what the body lacks and its manager owned before is thereby removed.
The resourceVersion makes a body from an old object fail.
"""

from __future__ import annotations

from typing import Final

from multikueue.core.model.conditions import conditions
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

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
