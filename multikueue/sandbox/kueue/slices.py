"""Slices of elastic jobs: a job that grows gets a bigger Workload beside the one it runs on, which takes its place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import condition
from multikueue.core.model.labels import SLICE_REPLACEMENT_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, uid, with_value, without
from multikueue.core.model.workloads import SLICE_REPLACED, cluster_name, is_finished, is_replaced, nominated
from multikueue.sandbox.kueue.statuses import finished

SLICE_OUT_OF_SYNC: Final = "The workload slice is out of sync with its parent job"


def replaced_key(workload: Json) -> ObjectKey | None:
    """The slice whose place a Workload takes."""
    namespace, _, name = annotations_of(workload).get(SLICE_REPLACEMENT_ANNOTATION, "").partition("/")
    return ObjectKey(namespace, name) if name else None


def current_slice(slices: Iterable[Json]) -> Json | None:
    """Of a job's Workloads that have not finished, the one that no other replaces."""
    there = list(slices)
    replaced = {replaced_key(workload) for workload in there}
    last = [workload for workload in there if ObjectKey.of(workload) not in replaced]
    return max(last, key=lambda workload: str(workload["metadata"].get("creationTimestamp") or ""), default=None)


def counts(pod_sets: Iterable[Json]) -> list[int]:
    """The sizes of pod sets."""
    return [int(pod_set.get("count", 1)) for pod_set in pod_sets]


def resized(workload: Json, sizes: list[int]) -> Json:
    """The Workload of a job that has shrunk, or has no quota: the same one, with pod sets of these sizes."""
    pod_sets = workload["spec"]["podSets"]
    changed = [{**pod_set, "count": size} for pod_set, size in zip(pod_sets, sizes, strict=True)]
    return {**workload, "spec": {**workload["spec"], "podSets": changed}}


def announced(workload: Json, replaced: Json) -> Json | None:
    """A slice with the worker of the one it replaces among its nominations; None if it has it, or there is none.

    Kueue's webhook lets a slice have its worker at once; the sandbox's rule wants the nomination first.
    """
    place = cluster_name(replaced)
    if place is None or place in nominated(workload):
        return None
    return with_value(workload, ("status", "nominatedClusterNames"), [place])


def placed(workload: Json, replaced: Json) -> Json:
    """A slice that has got quota, on the worker of the one it replaces."""
    place = cluster_name(replaced)
    if place is None:
        return workload
    return with_value(without(workload, [("status", "nominatedClusterNames")]), ("status", "clusterName"), place)


def takes_place_of(workload: Json, replaced: Json) -> bool:
    """Whether a slice goes where the one before it is.

    Also if that one was finished for it, and only the slice's own write has failed; but not once the slice was evicted
    itself: then it may go anywhere.
    """
    return not is_finished(replaced) or (is_replaced(replaced) and condition(workload, "Evicted") is None)


def replaced_by(replaced: Json, workload: Json, now: datetime) -> Json:
    """A slice whose place another has taken."""
    message = f"Replaced to accommodate a workload (UID: {uid(workload)}) due to workload slice aggregation"
    return finished(replaced, SLICE_REPLACED, message, now)
