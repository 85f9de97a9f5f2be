"""`trainer.kubeflow.org` TrainJob.

Its pods come from a runtime on each cluster, which the sandbox does without: the trainer's image and resources make
the one pod set, `node`. What Kueue wants in the pods goes into a runtime patch of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds.injecting import Injection, inject, is_noted
from multikueue.sandbox.kinds.jobset import COUNTERS, pod_labels
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import PodSets, pod_set
from multikueue.sandbox.kinds.stages import Counters, Stage, Stages

_NODE: Final = "node"
_MANAGER: Final = "kueue.x-k8s.io/manager"
"""Whose runtime patch is Kueue's."""
_TEMPLATE: Final = ("template", "spec", "template")


class TrainJobPods(PodSets):
    """The nodes of the trainer."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        trainer: Json = dig(job, "spec", "trainer") or {}
        container: dict[str, Any] = {"name": _NODE, "image": trainer.get("image") or "trainer"}
        for field, taken in (("command", "command"), ("args", "args"), ("resources", "resourcesPerNode")):
            if trainer.get(taken):
                container[field] = trainer[taken]
        template: Json = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        return [pod_set(_NODE, _nodes(job), template, "batch.kubernetes.io/job-completion-index")]

    def running(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        pod_sets = self.read(job)
        for patch in _patched(job):
            inject(pod_sets[0]["template"], Injection.in_fields(patch.get("metadata") or {}, patch.get("spec") or {}))
        return pod_sets

    def counts(self, job: Json) -> Mapping[str, int]:
        """See `PodSets`. All nodes are pods of one Job."""
        del job
        return {_NODE: 1}

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`."""
        template: Json = {}
        inject(template, injections.get(_NODE, Injection()))
        replicated = {"name": _NODE, "template": {"spec": {"template": template}}}
        patch = {"manager": _MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [replicated]}}}}
        job["spec"]["runtimePatches"] = [*_others(job), patch]

    def restore(self, job: Json, originals: Mapping[str, Json]) -> None:
        """See `PodSets`."""
        del originals
        others = _others(job)
        job["spec"].pop("runtimePatches", None)
        if others:
            job["spec"]["runtimePatches"] = others

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return any(map(is_noted, _patched(job)))

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        first = template["spec"]["containers"][0]
        trainer = job["spec"].setdefault("trainer", {})
        trainer.setdefault("image", first["image"])
        trainer.setdefault("resourcesPerNode", first.get("resources") or {})


def _patched(job: Json) -> Iterator[Json]:
    """What runtime patches say of the pods."""
    for patch in dig(job, "spec", "runtimePatches") or []:
        for replicated in dig(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs") or []:
            yield dig(replicated, *_TEMPLATE) or {}


def _nodes(job: Json) -> int:
    nodes = dig(job, "spec", "trainer", "numNodes")
    return nodes if isinstance(nodes, int) else 1


def _others(job: Json) -> list[Json]:
    return [patch for patch in dig(job, "spec", "runtimePatches") or [] if patch.get("manager") != _MANAGER]


KINDS: Final = (
    SandboxKind(
        resource=Resource(GVK("trainer.kubeflow.org", "v1alpha1", "TrainJob"), "trainjobs"),
        integration="trainer.kubeflow.org/trainjob",
        operator="trainer.kubeflow.org/trainjob-controller",
        pods=TrainJobPods(),
        pod_labels=pod_labels,
        restored_once_idle=True,
        course=Stages(
            suspended=Stage(
                conditions={"Suspended": "True"},
                counted=("suspended",),
                reason="Suspended",
                message="TrainJob is suspended",
            ),
            running=Stage(
                conditions={"Suspended": "False"},
                counted=("active", "ready"),
                reason="Resumed",
                message="TrainJob is resumed",
            ),
            succeeded=Stage(
                conditions={"Complete": "True"},
                counted=("succeeded",),
                reason="AllJobsCompleted",
                message="jobset completed successfully",
            ),
            failed=Stage(
                conditions={"Failed": "True"},
                counted=("failed",),
                reason="FailedJobs",
                message="jobset failed due to one or more job failures (first failed job: {name}-node-0)",
            ),
            counters=Counters("jobsStatus", COUNTERS),
        ),
        spec={"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}},
        columns=(("State", ".status.conditions[-1:].type"),),
    ),
)
