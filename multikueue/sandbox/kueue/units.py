"""What a Workload of gated pods stands for: a pod, a group of pods, or a part of a set."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

import attrs

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.labels import ORIGIN_LABEL, ORIGIN_UID_ANNOTATION, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.sandbox.kinds.pods import POD_RESOURCE, group_of
from multikueue.sandbox.kinds.sets import LWS_GROUP, LWS_NAME, PARENT_ANNOTATION, Member, SetKind


def queue_name(job: Json) -> str:
    """The LocalQueue the job asks for; empty if Kueue has nothing to do with it."""
    return labels_of(job).get(QUEUE_LABEL) or ""


@attrs.frozen
class Unit:
    """One Workload, there or not, and what it is for."""

    key: ObjectKey
    there: tuple[Json, ...] = ()
    """All its pods, those on their way out, too."""
    kind: SetKind | None = None
    set: Json | None = None
    component: str = ""
    """The part of the set."""

    @property
    def pods(self) -> tuple[Json, ...]:
        """Those that are not on their way out, by name."""
        present = (pod for pod in self.there if not is_terminating(pod))
        return tuple(sorted(present, key=lambda pod: str(pod["metadata"]["name"])))

    @property
    def members(self) -> list[Member]:
        """The pods that the part of the set should have."""
        if self.kind is None or self.set is None:
            return []
        return [member for member in self.kind.members(self.set) if member.component == self.component]

    @property
    def owners(self) -> list[tuple[Resource, Json]]:
        """What the Workload belongs to."""
        if self.kind is not None and self.set is not None:
            return [(self.kind.resource, self.set)]
        return [(POD_RESOURCE, pod) for pod in self.pods]

    @property
    def group(self) -> str:
        """The pods' group; empty for a pod on its own, and for sets."""
        return group_of(self.there[0]) if self.there and self.set is None else ""

    @property
    def is_copy(self) -> bool:
        """Whether MultiKueue made it: then the Workload is made by it, too."""
        return any(ORIGIN_LABEL in labels_of(obj) for _, obj in self.owners)


def pod_places(pod: Json) -> Iterator[Hashable]:
    """What a pod can be looked up by: its UID, and its Workload or its set."""
    yield uid(pod)
    yield pod_place(pod)


def pod_place(pod: Json) -> Hashable:
    """The key of the Workload of a pod; for a pod of a set that is admitted in parts, the set and the part.

    A LeaderWorkerSet has its pods made by StatefulSets, one for all leaders and one a group: a label names the set.
    """
    namespace, parent = pod["metadata"]["namespace"], annotations_of(pod).get(PARENT_ANNOTATION)
    owner = next(
        (reference for reference in dig(pod, "metadata", "ownerReferences") or [] if reference.get("controller")), None
    )
    if parent not in (None, "", "deployment") and owner is not None:
        name = labels_of(pod).get(LWS_NAME) or owner["name"]
        return (parent, ObjectKey(namespace, name), labels_of(pod).get(LWS_GROUP, ""))
    name = prebuilt_workload(pod) or group_of(pod)
    return ObjectKey(namespace, name or workload_name(POD_RESOURCE.gvk, pod["metadata"]["name"], uid(pod)))


def set_places(kind: SetKind, job: Json) -> Iterator[Hashable]:
    """What a set can be looked up by: its UID and its Workloads."""
    yield uid(job)
    yield from set_workloads(kind, job)


def set_workloads(kind: SetKind, job: Json) -> Mapping[ObjectKey, str]:
    """The Workloads of a set, each with its part. On a worker their names come from the set they are a copy of."""
    if kind.apart:
        return {}
    origin = annotations_of(job).get(ORIGIN_UID_ANNOTATION) or uid(job)
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    parts = dict.fromkeys(member.component for member in kind.members(job)) if kind.whole else {"": None}
    return {
        ObjectKey(namespace, workload_name(kind.resource.gvk, f"{name}-{part}" if part else name, origin)): part
        for part in parts
    }
