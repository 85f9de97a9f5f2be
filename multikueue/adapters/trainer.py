"""`trainer.kubeflow.org` TrainJob.

Each cluster's Kueue adds a runtime patch of its own when a TrainJob is created, with the node selectors of that
cluster. A copy of the manager's would collide with the worker's.
"""

from __future__ import annotations

from typing import Final

from multikueue.adapters.kind import JobKind, counters_at_zero, finished_by_conditions
from multikueue.core.model.names import GVK, Json, Resource

KUEUE_PATCHES: Final = "kueue.x-k8s.io/manager"
"""Whose runtime patches stay behind."""


def _without_kueues_patches(spec: Json) -> Json:
    kept = [patch for patch in spec.get("runtimePatches") or [] if patch.get("manager") != KUEUE_PATCHES]
    if kept:
        spec["runtimePatches"] = kept
    else:
        spec.pop("runtimePatches", None)
    return spec


KINDS = (
    JobKind(
        resource=Resource(GVK("trainer.kubeflow.org", "v1alpha1", "TrainJob"), "trainjobs"),
        framework="trainer.kubeflow.org/trainjob",
        own_controller="trainer.kubeflow.org/trainjob-controller",
        sanitised=_without_kueues_patches,
        finished=finished_by_conditions(succeeded="Complete", failed="Failed"),
        stopped=counters_at_zero(("jobsStatus", "*", "active")),
    ),
)
