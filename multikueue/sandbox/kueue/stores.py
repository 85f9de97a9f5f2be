"""Everything the small Kueue knows about its cluster, and the questions it asks about it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import cast

import attrs

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from multikueue.core.model.labels import JOB_UID_LABEL
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, is_terminating, labels_of, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.core.model.workloads import cluster_queue, is_elastic, is_finished
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.pods import POD_RESOURCE, group_of
from multikueue.sandbox.kinds.sets import SetKind
from multikueue.sandbox.kueue.building import priority_class
from multikueue.sandbox.kueue.scheduling.cohorts import Cohorts, cohort_name
from multikueue.sandbox.kueue.scheduling.ledger import Ledger
from multikueue.sandbox.kueue.scheduling.newest import Newest
from multikueue.sandbox.kueue.scheduling.queues import Configuration
from multikueue.sandbox.kueue.slices import current_slice, replaced_key
from multikueue.sandbox.kueue.units import Unit, pod_place, pod_places, set_places, set_workloads

_CONFIGURED = (
    LOCAL_QUEUE,
    CLUSTER_QUEUE,
    COHORT,
    RESOURCE_FLAVOR,
    ADMISSION_CHECK,
    NAMESPACE,
    WORKLOAD_PRIORITY_CLASS,
)


def _job_places(job: Json) -> Iterator[Hashable]:
    yield uid(job)
    if prebuilt_workload(job):
        yield ObjectKey(job["metadata"]["namespace"], prebuilt_workload(job))


def _workload_places(workload: Json) -> Iterator[Hashable]:
    if not is_finished(workload):
        yield from (owner["uid"] for owner in dig(workload, "metadata", "ownerReferences") or [])
        yield ObjectKey(workload["metadata"]["namespace"], dig(workload, "spec", "queueName") or "")


def _queue_places(queue: Json) -> Iterator[Hashable]:
    yield dig(queue, "spec", "clusterQueue")


def _cluster_queue_places(queue: Json) -> Iterator[Hashable]:
    for group in dig(queue, "spec", "resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            yield RESOURCE_FLAVOR, flavor["name"]
    for check in dig(queue, "spec", "admissionChecksStrategy", "admissionChecks") or []:
        yield ADMISSION_CHECK, check["name"]


def _places_of(kind: SandboxKind) -> Callable[[Json], Iterable[Hashable]]:
    if isinstance(kind, SetKind):
        return partial(set_places, kind)
    return pod_places if kind.gated else _job_places


_PLACES = {LOCAL_QUEUE: _queue_places, CLUSTER_QUEUE: _cluster_queue_places}


@attrs.define(eq=False)
class Stores:
    """The newest versions of all objects, by resource."""

    kinds: Sequence[SandboxKind]
    ledger: Ledger = attrs.field(factory=lambda: Ledger(Newest(_workload_places)))
    objects: dict[Resource, Newest] = attrs.field(init=False)
    """All kinds but Workload, which are in the ledger."""

    def __attrs_post_init__(self) -> None:
        self.objects = {
            resource: Newest(_PLACES[resource]) if resource in _PLACES else Newest() for resource in _CONFIGURED
        }
        self.objects.update({kind.resource: Newest(_places_of(kind)) for kind in self.kinds})

    @property
    def resources(self) -> list[Resource]:
        """All that is to be watched."""
        return [WORKLOAD, *self.objects]

    @property
    def configuration(self) -> Configuration:
        """What administrators made."""
        return Configuration(self.objects)

    def flavors_of(self, workload: Json) -> dict[str, Json]:
        """The flavors that a Workload's pods are to run on, by name."""
        entries = dig(workload, "status", "admission", "podSetAssignments") or []
        names = {flavor for entry in entries for flavor in (entry.get("flavors") or {}).values()}
        return self.configuration.flavors_of(names)

    def workload(self, key: ObjectKey) -> Json | None:
        """A Workload."""
        return self.ledger.workloads.get(key)

    def cluster_queue(self, name: str) -> Json | None:
        """A ClusterQueue."""
        return self.objects[CLUSTER_QUEUE].get(ObjectKey("", name))

    def cohorts(self) -> Cohorts:
        """All cohorts, as they are now."""
        return Cohorts.of(self.objects[CLUSTER_QUEUE], self.objects[COHORT])

    def lenders(self, name: str) -> list[str]:
        """The ClusterQueues that a change of this one's usage concerns: those of its cohort, itself included."""
        queue = self.cluster_queue(name)
        return self.cohorts().together_with(name) if queue is not None and cohort_name(queue) else [name]

    def queues_of(self, name: str) -> list[Json]:
        """The LocalQueues of a ClusterQueue."""
        return self.objects[LOCAL_QUEUE].by(name)

    def workloads_in(self, name: str, local_queues: Iterable[ObjectKey]) -> Iterable[ObjectKey]:
        """The Workloads that hold quota of a ClusterQueue, and those that name one of these LocalQueues."""
        holders = [holder.key for holder in self.ledger.holders(name)]
        waiting = [ObjectKey.of(obj) for queue in local_queues for obj in self.ledger.workloads.by(queue)]
        return dict.fromkeys([*holders, *waiting])

    def cluster_queue_name(self, workload: Json) -> str:
        """The ClusterQueue that holds a Workload's quota or would; empty if there is none."""
        if cluster_queue(workload):
            return cluster_queue(workload)
        queue = self.configuration.local_queue_of(workload) or {}
        return str(dig(queue, "spec", "clusterQueue") or "")

    def job_of(self, workload: Json) -> tuple[SandboxKind, ObjectKey] | None:
        """Kind and key of the job a Workload says it belongs to, whether or not it is there."""
        by_gvk = {kind.resource.gvk: kind for kind in self.kinds if not kind.gated}
        for reference in dig(workload, "metadata", "ownerReferences") or []:
            kind = by_gvk.get(GVK.of(reference["apiVersion"], reference["kind"]))
            if kind is not None and reference.get("controller"):
                return kind, ObjectKey(workload["metadata"]["namespace"], reference["name"])
        return None

    def jobs_waiting_for(self, key: ObjectKey) -> Iterable[tuple[SandboxKind, ObjectKey]]:
        """The jobs that were built for this Workload."""
        for kind in self.kinds:
            for job in self.objects[kind.resource].by(key) if not kind.gated else ():
                yield kind, ObjectKey.of(job)

    def unit(self, key: ObjectKey) -> Unit:
        """The gated pods behind a Workload."""
        pods = self.objects[POD_RESOURCE]
        for kind in self.sets:
            for owner in self.objects[kind.resource].by(key):
                part = set_workloads(kind, owner)[key]
                place = (kind.parent, ObjectKey.of(owner), part)
                return Unit(key, tuple(pods.by(place)), kind, owner, part)
        return Unit(key, tuple(pods.by(key)))

    def is_surplus(self, key: ObjectKey, workload: Json) -> bool:
        """Whether it was made for a part that its set does not have any more."""
        owners = {reference["uid"] for reference in dig(workload, "metadata", "ownerReferences") or []}
        sets = [(kind, obj) for kind in self.sets for owner in owners for obj in self.objects[kind.resource].by(owner)]
        return any(key not in set_workloads(kind, obj) for kind, obj in sets)

    def units_of(self, resource: Resource, obj: Json) -> Iterable[ObjectKey]:
        """The Workloads that a gated pod or a set of them belongs to."""
        sets = {kind.parent: kind for kind in self.sets}
        if resource != POD_RESOURCE:
            kind = next(kind for kind in self.sets if kind.resource == resource)
            return set_workloads(kind, obj)
        place = pod_place(obj)
        if isinstance(place, ObjectKey):
            return (place,)
        parent, owner, part = cast(tuple[str, ObjectKey, str], place)
        owning = self.objects[sets[parent].resource].get(owner) if parent in sets else None
        if owning is None:
            return ()
        return [key for key, of in set_workloads(sets[parent], owning).items() if of == part]

    @property
    def sets(self) -> list[SetKind]:
        """The kinds of sets whose pods are gated."""
        return [kind for kind in self.kinds if isinstance(kind, SetKind)]

    def is_orphaned(self, workload: Json) -> bool:
        """Whether it belonged to a job that is gone or on its way out; never for kinds that are not known here.

        A group and a set last as long as any part of them.
        """
        label = labels_of(workload).get(JOB_UID_LABEL)
        references = dig(workload, "metadata", "ownerReferences") or []
        known = {kind.resource.gvk for kind in self.kinds}
        if any(GVK.of(reference["apiVersion"], reference["kind"]) not in known for reference in references):
            return False
        owners = {reference["uid"] for reference in references} | ({label} if label else set())
        return bool(owners) and all(
            is_terminating(obj) and not isinstance(kind, SetKind) and not group_of(obj)
            for kind in self.kinds
            for owner in owners
            for obj in self.objects[kind.resource].by(owner)
        )

    def workload_of(self, kind: SandboxKind, job: Json) -> Json | None:
        """The Workload of a job: the one it was built for, or the one made for it."""
        namespace = job["metadata"]["namespace"]
        if prebuilt_workload(job):
            return self.workload(ObjectKey(namespace, prebuilt_workload(job)))
        if is_elastic(job):
            return current_slice(self.ledger.workloads.by(uid(job)))
        name = workload_name(kind.resource.gvk, job["metadata"]["name"], uid(job))
        workload = self.workload(ObjectKey(namespace, name))
        owned = any(reference["uid"] == uid(job) for reference in dig(workload, "metadata", "ownerReferences") or [])
        return workload if owned else None

    def replaced_of(self, workload: Json | None) -> Json | None:
        """The slice that a Workload replaces, if that has not finished."""
        key = None if workload is None else replaced_key(workload)
        replaced = None if key is None else self.workload(key)
        return None if replaced is None or is_finished(replaced) else replaced

    def priority_of(self, job: Json) -> int | None:
        """The value of the job's priority class: 0 if it names none, None if there is no such class."""
        name = priority_class(job)
        if not name:
            return 0
        chosen = self.objects[WORKLOAD_PRIORITY_CLASS].get(ObjectKey("", name))
        return None if chosen is None else int(chosen["value"])
