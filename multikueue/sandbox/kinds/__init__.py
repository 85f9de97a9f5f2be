"""The job kinds of the sandbox: one row per kind, for the small Kueue, the job runner and the demo.

A row says where a job is suspended, where its pods are, and how its status moves from started to ended. All of it is
plain functions and values: nothing here does I/O. `SandboxKind(resource=...)` is enough for a kind of one's own that
is nothing special.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from multikueue.sandbox.kinds import appwrapper, jobset, kubeflow, pods, ray, sets, trainer, workflows
from multikueue.sandbox.kinds.course import Course, Ending
from multikueue.sandbox.kinds.definitions import define, definition
from multikueue.sandbox.kinds.job import BATCH_JOB
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, PodSets, Roles
from multikueue.sandbox.kinds.stages import BY_CONDITIONS, Counters, Stage, Stages

KINDS: Final = (BATCH_JOB,)
"""The kinds a sandbox has if it is not told otherwise: those that every cluster serves."""

AVAILABLE: Final = (
    *KINDS,
    *jobset.KINDS,
    *kubeflow.KINDS,
    *trainer.KINDS,
    *ray.KINDS,
    *appwrapper.KINDS,
    *pods.KINDS,
    *sets.KINDS,
    *workflows.KINDS,
)
"""All rows."""


def completed(kinds: Iterable[SandboxKind]) -> tuple[SandboxKind, ...]:
    """These kinds, one row for each resource, with that of pods if some are made of pods."""
    rows = {kind.resource: kind for kind in kinds}
    if any(kind.gated for kind in rows.values()):
        rows[pods.POD_RESOURCE] = pods.POD
    return tuple(rows.values())


__all__ = [
    "AVAILABLE",
    "BATCH_JOB",
    "BY_CONDITIONS",
    "EACH",
    "KINDS",
    "Counters",
    "Course",
    "Ending",
    "InTemplates",
    "PodSets",
    "Roles",
    "SandboxKind",
    "Stage",
    "Stages",
    "completed",
    "define",
    "definition",
]
