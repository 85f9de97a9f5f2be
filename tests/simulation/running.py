"""What runs on a worker: Jobs, JobSets and pods, with the Workload that each of them runs for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, labels_of
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kinds.jobset import KINDS as JOB_SETS
from multikueue.sandbox.kinds.pods import POD, POD_RESOURCE, group_of
from multikueue.sandbox.kinds.sets import LEADER_WORKER_SET, LWS_GROUP, STATEFUL_SET, SetKind
from multikueue.sandbox.kueue.units import set_workloads
from tests.simulation.objects import find, is_ours, objects
from tests.simulation.world import SimCluster

KINDS: Final[dict[str, SandboxKind]] = {kind.resource.plural: kind for kind in (BATCH_JOB, *JOB_SETS, POD)}
"""By plural: the kinds whose objects run. A set does not, its pods do."""
SETS: Final[tuple[SetKind, ...]] = (STATEFUL_SET, LEADER_WORKER_SET)
"""Those of which the whole set is copied."""
_SETS: Final = {kind.resource.gvk: kind for kind in SETS}


@attrs.frozen(order=True)
class Item:
    """One thing that runs, the same on every cluster."""

    plural: str
    key: ObjectKey

    def __str__(self) -> str:
        return str(self.key) if self.plural == JOB.plural else f"{self.plural} {self.key}"


def is_running(item: Item, obj: Json) -> bool:
    """Whether pods of it run, and shall run on."""
    kind = KINDS[item.plural]
    held = kind.is_held(obj) or is_terminating(obj)
    return not held and kind.course.is_active(obj) and kind.ending(obj) is None


def has_ended(plural: str, obj: Json) -> bool:
    """Whether it is over."""
    return KINDS[plural].ending(obj) is not None


def serves(item: Item, obj: Json) -> bool:
    """Whether it is a pod of a set: those of two attempts may overlap for a moment."""
    return item.plural == POD_RESOURCE.plural and dig(obj, "spec", "restartPolicy") == "Always"


def set_of(worker: SimCluster, pod: Json) -> tuple[SetKind, Json] | None:
    """The set of ours that a worker's pod belongs to."""
    for owner in dig(pod, "metadata", "ownerReferences") or []:
        kind = _SETS.get(GVK.of(owner["apiVersion"], owner["kind"]))
        if kind is None:
            continue
        owning_set = find(worker, kind.resource, ObjectKey(pod["metadata"]["namespace"], owner["name"]))
        if owning_set is not None and is_ours(owning_set) and owning_set["metadata"]["uid"] == owner["uid"]:
            return kind, owning_set
    return None


def workload_of(worker: SimCluster, item: Item, obj: Json) -> ObjectKey | None:
    """The Workload that something of ours runs for; None if it is not ours, or its set is gone."""
    if is_ours(obj):
        name = prebuilt_workload(obj) or (group_of(obj) if item.plural == POD_RESOURCE.plural else "")
        return ObjectKey(item.key.namespace, name) if name else None
    if item.plural != POD_RESOURCE.plural or ORIGIN_LABEL in labels_of(obj):
        return None
    owning_set = set_of(worker, obj)
    if owning_set is None:
        return None
    part = labels_of(obj).get(LWS_GROUP, "")
    return next((key for key, of in set_workloads(*owning_set).items() if of == part), None)


def workloads_of(copy: Json, resource: Resource) -> Iterable[ObjectKey]:
    """The Workloads that an object of ours belongs to; a Workload copy to itself."""
    kind = next((kind for kind in SETS if kind.resource == resource), None)
    if kind is not None:
        return set_workloads(kind, copy)
    name = copy["metadata"]["name"] if resource == WORKLOAD else prebuilt_workload(copy)
    return [ObjectKey(copy["metadata"]["namespace"], name)]


def job_copies(worker: SimCluster, workload: ObjectKey) -> Iterator[Json]:
    """The objects of kinds that run for one Workload on a worker."""
    for plural, kind in KINDS.items():
        for obj in objects(worker, kind.resource) if worker.serves(kind.resource) else ():
            if workload_of(worker, Item(plural, ObjectKey.of(obj)), obj) == workload:
                yield obj


def running_on(worker: SimCluster) -> Iterator[tuple[Item, ObjectKey]]:
    """All that runs of ours on a worker, with its Workload, in an order that repeats."""
    for plural, kind in KINDS.items():
        if not worker.serves(kind.resource):
            continue
        for obj in sorted(objects(worker, kind.resource), key=ObjectKey.of):
            item = Item(plural, ObjectKey.of(obj))
            workload = workload_of(worker, item, obj) if is_running(item, obj) else None
            if workload is not None:
                yield item, workload
