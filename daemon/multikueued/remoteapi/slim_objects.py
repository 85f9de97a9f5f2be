"""What the API keeps of the manager's objects, and of what changes."""

from __future__ import annotations

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.writers import drop_managed_fields


@attrs.frozen
class Change:
    """A job that is there, has changed, or is gone."""

    version: int
    """The manager's resourceVersion of the event that changed it."""
    type: str
    """`ADDED`, `MODIFIED` or `DELETED`."""
    job: Json


def slim(workload: Json) -> Json:
    """A Workload without its pods' templates: reports need none of them, and they are most of its size."""
    slim = drop_managed_fields(workload)
    pod_sets = dig(slim, "spec", "podSets")
    if not isinstance(pod_sets, list):
        return slim
    kept = [{field: one[field] for field in ("name", "count") if field in one} for one in pod_sets]
    return {**slim, "spec": {**slim["spec"], "podSets": kept}}


def without_status(obj: Json) -> Json | None:
    """An object of which only the spec counts."""
    return {field: value for field, value in obj.items() if field != "status"}


def checks_of(queue: Json | None) -> tuple[object, ...]:
    """What jobs are made of in a ClusterQueue."""
    spec = dig(queue, "spec") or {}
    return (queue is None, spec.get("admissionChecks"), spec.get("admissionChecksStrategy"), spec.get("stopPolicy"))


def number(version: str) -> int:
    """A resourceVersion as it is ordered; API servers write numbers (KEP-5504)."""
    return int(version) if version.isdecimal() else 0


def at(job: Json, version: int) -> Json:
    """A job with another version."""
    return {**job, "metadata": {**job["metadata"], "resourceVersion": str(version)}}
