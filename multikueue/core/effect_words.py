"""Effects in words, for the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.names import ObjectKey
from multikueue.core.workload.effects import (
    AnnounceWorkload,
    ApplyStatus,
    CheckDependencies,
    CountAdmitted,
    CountRejections,
    CreateDependencies,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    LookForPods,
    OwnDependencies,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
)


def describe(effect: Effect) -> str:
    """An effect in words, for the log: what is done to which object, and where."""
    where = f"on {effect.cluster}" if effect.cluster else "on the manager"
    match effect:
        case ApplyStatus(object=body):
            return f"apply the status of Workload {ObjectKey.of(body)} {where}"
        case PatchJobStatus(resource, key) | PatchJob(_, resource, key):
            part = "the status of " if isinstance(effect, PatchJobStatus) else ""
            return f"patch {part}{resource} {key} {where}"
        case AnnounceWorkload(kind, note):
            return f"event {kind}: {note}"
        case CountAdmitted(worker=worker):
            return f"count it as admitted on {worker}"
        case CountRejections(reasons):
            return f"count {len(reasons)} workers as not offered"
        case CreateWorkload(object=body):
            return f"create Workload {ObjectKey.of(body)} {where}"
        case PatchWorkload(key=key) | DeleteWorkload(key=key):
            verb = "patch" if isinstance(effect, PatchWorkload) else "delete"
            return f"{verb} Workload {key} {where}"
        case CreateJob(resource=resource, object=body):
            return f"create {resource} {ObjectKey.of(body)} {where}"
        case DeleteJob(resource=resource, key=key):
            return f"delete {resource} {key} {where}"
        case LookForPods() | CheckDependencies() | CreateDependencies() | OwnDependencies():
            about = (effect.selector,) if isinstance(effect, LookForPods) else map(str, effect.dependencies)
            return f"{_VERBS[type(effect)]} {', '.join(about)} {where}"


_VERBS: Final[Mapping[type, str]] = {
    LookForPods: "look for pods with",
    CheckDependencies: "look for",
    CreateDependencies: "make or share",
    OwnDependencies: "have the job own",
}
