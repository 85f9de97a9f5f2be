"""Starting and stopping a job: suspend, inject into the templates, restore them.

Stopping takes up to three writes where the API refuses to change a template while the status shows a start; an
annotation marks a job between them, and only without it the job counts as suspended.
"""

from __future__ import annotations

from multikueue.core.model.labels import STOPPING_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig, with_value, without
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kinds.injecting import Injection
from multikueue.sandbox.kueue.effects import Replace
from multikueue.sandbox.kueue.units import queue_name


def start(kind: SandboxKind, job: Json, injections: dict[str, Injection]) -> Replace:
    """Unsuspend the job, with what its admission asks for in its templates.

    Raises:
        TemplateConflictError: a template has another value already.
    """
    result = kind.with_suspend(job, False)
    kind.pods.inject(result, injections)
    kind.pods.resize(
        result, {name: injection.count for name, injection in injections.items() if injection.count is not None}
    )
    return Replace(kind.resource, result)


def stop(kind: SandboxKind, job: Json, workload: Json | None) -> Replace:
    """Suspend the job; for kinds that need more than one write, this is the first."""
    result = kind.with_suspend(job, True)
    if not (kind.resets_start_time or kind.restored_once_idle):
        return Replace(kind.resource, _restored(kind, result, workload))
    return Replace(kind.resource, with_value(result, ("metadata", "annotations", STOPPING_ANNOTATION), "true"))


def continue_stop(kind: SandboxKind, job: Json, workload: Json | None) -> Replace | None:
    """The next write of a stop that has begun; None while it has to wait for the job's pods."""
    if not kind.is_held(job):
        return stop(kind, job, workload)
    if kind.restored_once_idle and kind.course.is_active(job):
        return None
    if kind.resets_start_time and dig(job, "status", "startTime"):
        return Replace(kind.resource, without(job, [("status", "startTime")]), "status")
    result = _restored(kind, clone(job), workload)
    del result["metadata"]["annotations"][STOPPING_ANNOTATION]
    return Replace(kind.resource, result)


def suspended_when_queued(job: Json, kind: SandboxKind = BATCH_JOB) -> Json:
    """What Kueue's webhook does to a new job that names a queue: it is created suspended.

    For a server that can change objects on creation. Without that the small Kueue suspends the job itself, and the
    job runner does not start a queued job that Kueue has not started.
    """
    return kind.with_suspend(job, True) if queue_name(job) else job


def _restored(kind: SandboxKind, job: Json, workload: Json | None) -> Json:
    pod_sets = dig(workload, "spec", "podSets") or []
    kind.pods.restore(job, {pod_set.get("name") or "main": pod_set.get("template") or {} for pod_set in pod_sets})
    kind.pods.resize(job, {pod_set.get("name") or "main": pod_set.get("count", 1) for pod_set in pod_sets})
    return job
