"""Kinds that Kueue does not know itself: Tekton's PipelineRun and TaskRun, Argo's Workflow.

Such a job does not describe its pods; an annotation says what they request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import annotations_of, dig
from multikueue.sandbox.kinds.injecting import WORKLOAD_ANNOTATION, Injection, is_noted
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import PodSets, pod_set
from multikueue.sandbox.kinds.stages import Stage, Stages

REQUEST_ANNOTATION: Final = "sandbox.multikueue.dev/request-"
"""On a job, with the name of a resource: how much of it the job needs, as `sandbox.multikueue.dev/request-cpu: "1"`."""

_POD_SET: Final = "main"


class OpaquePods(PodSets):
    """One pod set of one pod."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        requests = {
            key.removeprefix(REQUEST_ANNOTATION): value
            for key, value in sorted(annotations_of(job).items())
            if key.startswith(REQUEST_ANNOTATION)
        }
        container = {"name": "main", "image": "workflow", "resources": {"requests": requests}}
        return [pod_set(_POD_SET, 1, {"spec": {"restartPolicy": "Never", "containers": [container]}})]

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        noted = injections.get(_POD_SET, Injection()).annotations
        job["metadata"]["annotations"] = {**annotations_of(job), **noted}

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """See `PodSets`."""
        del originals
        (job["metadata"].get("annotations") or {}).pop(WORKLOAD_ANNOTATION, None)

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return is_noted(job)

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        asked = dig(template["spec"]["containers"][0], "resources", "requests") or {}
        noted = {f"{REQUEST_ANNOTATION}{resource}": amount for resource, amount in asked.items()}
        job["metadata"]["annotations"] = {**noted, **annotations_of(job)}


HELD: Final = ("metadata", "annotations", "sandbox.multikueue.dev/held")
"""A TaskRun has no field that keeps it from starting; in the sandbox an annotation does."""


def _tekton(kind: str) -> Stages:
    """In the words of a run of two tasks."""
    return Stages(
        suspended=Stage(
            conditions={"Succeeded": "Unknown"},
            dropped=("startTime",),
            reason=f"{kind}Pending",
            message=f'{kind} "{{name}}" is pending',
            by_reason=True,
        ),
        running=Stage(
            conditions={"Succeeded": "Unknown"},
            times=("startTime",),
            reason="Running",
            message="Tasks Completed: 0 (Failed: 0, Cancelled 0), Incomplete: 2, Skipped: 0",
            by_reason=True,
        ),
        succeeded=Stage(
            conditions={"Succeeded": "True"},
            times=("completionTime",),
            reason="Succeeded",
            message="Tasks Completed: 2 (Failed: 0, Cancelled 0), Skipped: 0",
        ),
        failed=Stage(
            conditions={"Succeeded": "False"},
            times=("completionTime",),
            reason="Failed",
            message="Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 1",
        ),
    )


_PLAIN: Final = {"PodRunning": ("", ""), "Completed": ("", "")}
"""Argo's conditions have neither reasons nor messages."""
_ARGO: Final = Stages(
    # Argo calls a Workflow that waits Running, too; and what runs when it is suspended goes on to its end.
    suspended=Stage(
        fields={"phase": "Running"}, conditions={"PodRunning": "False"}, words=_PLAIN, times=("startedAt",)
    ),
    running=Stage(fields={"phase": "Running"}, conditions={"PodRunning": "True"}, words=_PLAIN, times=("startedAt",)),
    succeeded=Stage(
        fields={"phase": "Succeeded"},
        conditions={"PodRunning": "False", "Completed": "True"},
        words=_PLAIN,
        times=("finishedAt",),
    ),
    failed=Stage(
        fields={"phase": "Failed"},
        conditions={"PodRunning": "False", "Completed": "True"},
        words=_PLAIN,
        times=("finishedAt",),
    ),
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
        suspend=HELD,
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
