"""Effects in words, for the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from multikueue.core.model.names import ObjectKey
from multikueue.core.workload import effects


def describe(effect: effects.Effect) -> str:
    """An effect in words, for the log: what is done to which object, and where."""
    where = f"on {effect.cluster}" if effect.cluster else "on the manager"
    match effect:
        case effects.ApplyStatus(object=body):
            return f"apply the status of Workload {ObjectKey.of(body)} {where}"
        case effects.PatchJobStatus(resource, key) | effects.PatchJob(_, resource, key):
            part = "the status of " if isinstance(effect, effects.PatchJobStatus) else ""
            return f"patch {part}{resource} {key} {where}"
        case effects.AnnounceWorkload(kind, note):
            return f"event {kind}: {note}"
        case effects.CountAdmitted(worker=worker):
            return f"count it as admitted on {worker}"
        case effects.CountRejections(reasons):
            return f"count {len(reasons)} workers as not offered"
        case effects.CreateWorkload(object=body):
            return f"create Workload {ObjectKey.of(body)} {where}"
        case effects.PatchWorkload(key=key) | effects.DeleteWorkload(key=key):
            verb = "patch" if isinstance(effect, effects.PatchWorkload) else "delete"
            return f"{verb} Workload {key} {where}"
        case effects.CreateJob(resource=resource, object=body):
            return f"create {resource} {ObjectKey.of(body)} {where}"
        case effects.DeleteJob(resource=resource, key=key):
            return f"delete {resource} {key} {where}"
        case effects.LookForPods() | effects.DependencyEffect():
            about = (effect.selector,) if isinstance(effect, effects.LookForPods) else map(str, effect.dependencies)
            return f"{_VERBS[type(effect)]} {', '.join(about)} {where}"
    raise AssertionError(f"nobody has words for {effect}")


_VERBS: Final[Mapping[type, str]] = {
    effects.LookForPods: "look for pods with",
    effects.CheckDependencies: "look for",
    effects.CreateDependencies: "make or share",
    effects.OwnDependencies: "have the job own",
}
