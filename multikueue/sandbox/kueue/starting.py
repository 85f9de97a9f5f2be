"""Starting and stopping a job: suspend, inject into the templates, restore them.

Stopping takes up to three writes where the API refuses to change a template while the status shows a start; an
annotation marks a job between them, and only without it the job counts as suspended.
"""

from __future__ import annotations

import copy
from typing import Any

from multikueue.core.labels import STOPPING_ANNOTATION
from multikueue.core.names import Json
from multikueue.core.objects import annotations_of, dig, with_value, without
from multikueue.sandbox.kueue.effects import Replace
from multikueue.sandbox.kueue.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kueue.naming import queue_name
from multikueue.sandbox.kueue.podsets import WORKLOAD_ANNOTATION, Injection, inject, restore


def start(kind: SandboxKind, job: Json, injections: dict[str, Injection]) -> Replace:
    """Unsuspend the job, with what its admission asks for in its templates.

    Raises:
        TemplateConflictError: a template has another value already.
    """
    result = with_value(job, kind.suspend, False)
    for name, template in kind.templates(result).items():
        inject(template, injections.get(name, Injection()))
    return Replace(kind.resource, result)


def stop(kind: SandboxKind, job: Json, workload: Json | None) -> Replace:
    """Suspend the job; for kinds that need more than one write, this is the first."""
    result = with_value(job, kind.suspend, True)
    if not kind.resets_start_time:
        return Replace(kind.resource, _restored(kind, result, workload))
    return Replace(kind.resource, with_value(result, ("metadata", "annotations", STOPPING_ANNOTATION), "true"))


def continue_stop(kind: SandboxKind, job: Json, workload: Json | None) -> Replace:
    """The next write of a stop that has begun."""
    if not dig(job, *kind.suspend):
        return stop(kind, job, workload)
    if dig(job, "status", "startTime"):
        return Replace(kind.resource, without(job, [("status", "startTime")]), "status")
    result = _restored(kind, copy.deepcopy(job), workload)
    del result["metadata"]["annotations"][STOPPING_ANNOTATION]
    return Replace(kind.resource, result)


def is_started(kind: SandboxKind, job: Json) -> bool:
    """Whether Kueue has started it: then its templates carry the annotation Kueue puts there."""
    templates = kind.templates(copy.deepcopy(job)).values()
    return any(annotations_of(template).get(WORKLOAD_ANNOTATION) for template in templates)


def suspended_when_queued(job: Json, kind: SandboxKind = BATCH_JOB) -> Json:
    """What Kueue's webhook does to a new job that names a queue: it is created suspended.

    For a server that can change objects on creation. Without that the small Kueue suspends the job itself, and the
    job runner does not start a queued job that Kueue has not started.
    """
    return with_value(job, kind.suspend, True) if queue_name(job) else job


def _restored(kind: SandboxKind, job: Json, workload: Json | None) -> Json:
    originals: dict[str, Any] = {
        pod_set.get("name"): pod_set.get("template") or {} for pod_set in dig(workload, "spec", "podSets") or []
    }
    for name, template in kind.templates(job).items():
        if name in originals:
            restore(template, originals[name], kind.generated_labels)
    return job
