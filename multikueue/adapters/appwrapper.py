"""`workload.codeflare.dev` AppWrapper. The objects it wraps are made by the worker's AppWrapper controller only."""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.core.model.adapter import Outcome
from multikueue.core.model.conditions import is_true
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig


def _outcome(job: Json) -> Outcome | None:
    phase = dig(job, "status", "phase")
    if phase == "Succeeded":
        return Outcome("Succeeded", "AppWrapper finished successfully")
    if phase == "Failed" and not is_true(job, "ResourcesDeployed"):
        return Outcome("Failed", "AppWrapper failed")
    return None


def _stopped(status: Json) -> Json:
    for condition in status.get("conditions") or []:
        if condition.get("type") == "QuotaReserved":
            condition["status"] = "False"
    return status


KINDS = (
    JobKind(
        resource=Resource(GVK("workload.codeflare.dev", "v1beta2", "AppWrapper"), "appwrappers"),
        framework="workload.codeflare.dev/appwrapper",
        own_controller="workload.codeflare.dev/appwrapper-controller",
        finished=_outcome,
        stopped=_stopped,
    ),
)
