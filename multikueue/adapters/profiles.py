"""Ready-made declarations, for kinds that people dispatch and that need to say more than their name.

They are what a user would write under `externalFrameworks`; what the user writes comes first.
"""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.managed_by_support import TEKTON
from multikueue.adapters.rules import TTL
from multikueue.adapters.words import Words
from multikueue.core.model.names import GVK, Json

GENERIC: Final = Declaration(name="", managed_by_path=".spec.managedBy")
"""What Kueue's own adapter for external frameworks does, whatever the kind."""


def _cancelled_by(field: str, *values: str) -> tuple[Json, ...]:
    """A patch that brings these values of a field of the spec to the copy, and no others: what cancels a copy on its
    worker stays there."""
    value = f"object.spec.{field}"
    step = {"op": "add", "path": f"/spec/{field}", "valueExpression": value, "when": f"{value} in {list(values)}"}
    return (step,)


# Tekton leaves alone what names another controller than `tekton.dev/pipeline` (tektoncd/pipeline#8891). A PipelineRun
# can be held before it starts; a TaskRun cannot, so it has no path for that. Both are cancelled by the field that holds
# a PipelineRun; `StoppedRunFinally` there is how tekton-kueue stops one on its own cluster, and stays there.
_TEKTON_RUNS: Final = (
    "object.status.conditions.exists(c, c.type == 'Succeeded' && c.status == 'Unknown' && "
    "!(c.reason in ['PipelineRunPending', 'TaskRunPending']))"
)
_TASK_RUN: Final = Declaration(
    name="TaskRun.v1.tekton.dev",
    managed_by_path=".spec.managedBy",
    status_subresource=True,
    finished="object.status.conditions.exists(c, c.type == 'Succeeded' && c.status in ['True', 'False'])",
    failed="object.status.conditions.exists(c, c.type == 'Succeeded' && c.status == 'False')",
    message="object.status.conditions.filter(c, c.type == 'Succeeded')[0].message",
    active=_TEKTON_RUNS,
    sync_patches=_cancelled_by("status", "TaskRunCancelled"),
)
_PIPELINE_RUN: Final = attrs.evolve(
    _TASK_RUN,
    name="PipelineRun.v1.tekton.dev",
    suspend_path=".spec.status",
    suspend_value="PipelineRunPending",
    sync_patches=_cancelled_by("status", "Cancelled", "CancelledRunFinally"),
)

# Argo has no field for it: its controllers take only Workflows whose label names their instance, and one without an
# instance only those without the label. Its CRD has no status subresource. It calls a suspended Workflow Running,
# too: what has begun has nodes, and between two steps no pod.
_ARGO_RUNS: Final = (
    "object.status.conditions.exists(c, c.type == 'PodRunning' && c.status == 'True') || "
    "(has(object.status.nodes) && size(object.status.nodes) > 0)"
)
_WORKFLOW: Final = Declaration(
    name="Workflow.v1alpha1.argoproj.io",
    managed_by_label="workflows.argoproj.io/controller-instanceid=multikueue",
    suspend_path=".spec.suspend",
    status_subresource=False,
    finished="object.status.phase in ['Succeeded', 'Failed', 'Error']",
    failed="object.status.phase in ['Failed', 'Error']",
    message="object.status.message",
    active=_ARGO_RUNS,
    sync_patches=_cancelled_by("shutdown", "Stop", "Terminate"),
)

PROFILES: Final = {
    ("tekton.dev", "PipelineRun"): _PIPELINE_RUN,
    ("tekton.dev", "TaskRun"): _TASK_RUN,
    ("argoproj.io", "Workflow"): _WORKFLOW,
}
"""By group and kind: what they say holds for every version."""

LEFT_OUT: Final = {("argoproj.io", "Workflow"): (("spec", "ttlStrategy"),)}
"""By group and kind, what copies do not have, see `rules.TTL`."""
USUALLY_LEFT_OUT: Final = (("spec", TTL),)
"""The same of all other kinds: many have this field, in Kubernetes' word for it."""

HEEDING: Final = {("tekton.dev", "PipelineRun"): TEKTON, ("tekton.dev", "TaskRun"): TEKTON}
"""By group and kind, the versions that heed `.spec.managedBy`."""

WORDS: Final = {
    ("tekton.dev", "PipelineRun"): Words(
        waiting=(("Succeeded", "Unknown", "PipelineRunPending", 'PipelineRun "{name}" is pending'),)
    ),
}
"""By group and kind, what its controller says of one that waits. A TaskRun cannot wait, and of a Workflow that does
Argo says that it runs."""


def names() -> list[str]:
    """What `profile` may say."""
    return ["generic", *(profile.name for profile in PROFILES.values())]


def profile_for(declaration: Declaration, gvk: GVK) -> Declaration:
    """The declaration that fills in what is not said.

    Raises:
        ValueError: there is no profile of that name.
    """
    if declaration.profile is None:
        return PROFILES.get((gvk.group, gvk.kind), GENERIC)
    known = {"generic": GENERIC, **{profile.name: profile for profile in PROFILES.values()}}
    if declaration.profile not in known:
        raise ValueError(f"there is no profile {declaration.profile!r}: use {', '.join(names())}")
    return known[declaration.profile]
