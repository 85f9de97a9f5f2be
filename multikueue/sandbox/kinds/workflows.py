"""Kinds that Kueue does not know itself: Tekton's PipelineRun and TaskRun, Argo's Workflow."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Resource
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.opaque import OpaquePods
from multikueue.sandbox.kinds.stages import Stage, Stages

_HELD: Final = ("metadata", "annotations", "sandbox.multikueue.dev/held")
"""A TaskRun has no field that keeps it from starting; in the sandbox an annotation does."""


def _tekton(kind: str) -> Stages:
    return Stages(
        suspended=Stage(
            conditions={"Succeeded": "Unknown"},
            dropped=("startTime",),
            reason=f"{kind}Pending",
            message=f"{kind} is pending",
            by_reason=True,
        ),
        running=Stage(
            conditions={"Succeeded": "Unknown"},
            times=("startTime",),
            reason="Running",
            message="Tasks are running",
            by_reason=True,
        ),
        succeeded=Stage(
            conditions={"Succeeded": "True"},
            times=("completionTime",),
            reason="Succeeded",
            message="Tasks Completed: 1 (Failed: 0, Cancelled 0), Skipped: 0",
        ),
        failed=Stage(
            conditions={"Succeeded": "False"},
            times=("completionTime",),
            reason="Failed",
            message="Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 0",
        ),
    )


_ARGO: Final = Stages(
    suspended=Stage(fields={"phase": "Pending"}, dropped=("startedAt",)),
    running=Stage(fields={"phase": "Running"}, times=("startedAt",)),
    succeeded=Stage(fields={"phase": "Succeeded", "progress": "1/1"}, times=("finishedAt",)),
    failed=Stage(fields={"phase": "Failed", "message": "child 'main' failed"}, times=("finishedAt",)),
)
_TEKTON_COLUMNS: Final = (
    ("Succeeded", '.status.conditions[?(@.type=="Succeeded")].status'),
    ("Reason", '.status.conditions[?(@.type=="Succeeded")].reason'),
)

KINDS: Final = (
    SandboxKind(
        resource=Resource(GVK("tekton.dev", "v1", "PipelineRun"), "pipelineruns"),
        suspend=("spec", "status"),
        suspended_as="PipelineRunPending",
        running_as=None,
        operator="tekton.dev/pipeline",
        pods=OpaquePods(),
        course=_tekton("PipelineRun"),
        spec={"pipelineRef": {"name": "build"}},
        columns=_TEKTON_COLUMNS,
        short_names=("pr", "prs"),
    ),
    SandboxKind(
        resource=Resource(GVK("tekton.dev", "v1", "TaskRun"), "taskruns"),
        suspend=_HELD,
        suspended_as="true",
        running_as=None,
        operator="tekton.dev/pipeline",
        pods=OpaquePods(),
        course=_tekton("TaskRun"),
        spec={"taskRef": {"name": "test"}},
        columns=_TEKTON_COLUMNS,
        short_names=("tr", "trs"),
    ),
    SandboxKind(
        resource=Resource(GVK("argoproj.io", "v1alpha1", "Workflow"), "workflows"),
        running_as=None,
        managed_by=None,
        managed_by_label="workflows.argoproj.io/controller-instanceid",
        pods=OpaquePods(),
        course=_ARGO,
        status_subresource=False,
        spec={
            "entrypoint": "main",
            "templates": [{"name": "main", "container": {"name": "main", "image": "registry.k8s.io/pause:3.10"}}],
        },
        columns=(("Status", ".status.phase"),),
        short_names=("wf",),
    ),
)
