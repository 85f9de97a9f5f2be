"""What tests of the small Kueue do to a world, and how they look at it."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import ADMISSION_CHECK, WORKLOAD
from multikueue.core.model.names import Json
from multikueue.errors import Conflict
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from tests.sandbox.kueue.objects import (
    condition,
    is_true,
    job,
)
from tests.sandbox.kueue.world import World, wall_clock


def lasting(
    name: str = "j1", duration: str = "1h", outcome: str = "complete", annotations: Json | None = None, **more: Any
) -> Json:
    """A Job that runs so long."""
    noted = {DURATION_ANNOTATION: duration, OUTCOME_ANNOTATION: outcome, **(annotations or {})}
    return job(name, annotations=noted, **more)


def admitted(workload: Json) -> bool:
    return is_true(workload, "Admitted")


def waits(workload: Json) -> bool:
    return (condition(workload, "QuotaReserved") or ("", ""))[:2] == ("False", "Pending")


def runs(job: Json) -> bool:
    return bool((job.get("status") or {}).get("active"))


async def activate(cluster: World, name: str = "mk", status: str = "True") -> None:
    """Say that an admission check can be used, as its controller would."""
    check = await cluster.get(ADMISSION_CHECK, name) or {}
    active_condition = {
        "type": "Active",
        "status": status,
        "reason": "Active",
        "message": "The admission check is active",
    }
    conditions = [{**active_condition, "lastTransitionTime": timestamp(wall_clock())}]
    await cluster.client.replace(ADMISSION_CHECK, {**check, "status": {"conditions": conditions}}, subresource="status")


async def answer(cluster: World, state: str, message: str = "") -> None:
    """Answer for the check `mk` of the Workload of j1, as its controller would."""
    entry = {"name": "mk", "state": state, "message": message, "lastTransitionTime": timestamp(wall_clock())}
    await apply(cluster, {"admissionChecks": [entry]}, "checker")


async def apply(cluster: World, status: Json, manager: str) -> None:
    """Apply a part of the status of the Workload of j1; again if Kueue wrote in between."""
    while True:
        workload = await cluster.workload()
        identity = {field: workload["metadata"][field] for field in ("name", "namespace", "uid", "resourceVersion")}
        body = {"apiVersion": workload["apiVersion"], "kind": "Workload", "metadata": identity, "status": status}
        try:
            await cluster.client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
        except Conflict:
            continue
        return
