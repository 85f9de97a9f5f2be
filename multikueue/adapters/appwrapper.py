"""`workload.codeflare.dev` AppWrapper. The objects it wraps are made by the worker's AppWrapper controller only.

What Kueue wants in the pods when it starts one is written beside these objects, and taken out again when it stops it.
"""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.adapters.managed_by_support import APPWRAPPER
from multikueue.adapters.rules import CopyRules, Delegation, StatusRules, condition_at_false
from multikueue.adapters.words import Words
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


def _without_pod_set_infos(spec: Json) -> Json:
    for component in spec.get("components") or []:
        component.pop("podSetInfos", None)
    return spec


KINDS = (
    JobKind(
        resource=Resource(GVK("workload.codeflare.dev", "v1beta2", "AppWrapper"), "appwrappers"),
        framework="workload.codeflare.dev/appwrapper",
        delegation=Delegation(own_controller="workload.codeflare.dev/appwrapper-controller", heeding=APPWRAPPER),
        copies=CopyRules(sanitised=_without_pod_set_infos),
        status=StatusRules(
            finished=_outcome, stopped=condition_at_false("QuotaReserved"), words=Words(fields={"phase": "Suspended"})
        ),
    ),
)
