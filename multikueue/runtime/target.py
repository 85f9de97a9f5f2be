"""A cluster on which effects can be executed, the manager or a worker; and what has a name that is wanted there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating, labels_of
from multikueue.errors import ApiError
from multikueue.protocols import ApiClient
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.create_conflicts import CreateConflicts


@attrs.define(eq=False, repr=False)
class Target:
    """Its client, and what is known of what is there."""

    client: ApiClient
    workloads: MutationCache
    jobs: Mapping[GVK, MutationCache]
    create_conflicts: CreateConflicts = attrs.field(factory=CreateConflicts, kw_only=True)
    """The creations it refuses."""
    stored: Callable[[Json, Json], object] = attrs.field(default=lambda _sent, _stored: None, kw_only=True)
    """Called with a Workload as it was sent and as it was stored, perhaps without some fields."""

    def want(self, gvk: GVK | None) -> None:
        """Something of a kind is about to be sent, or may be there: it has to be watched."""

    def expect(self, workload: ObjectKey) -> None:
        """A copy of a Workload is about to be made."""

    def settle(self, workload: ObjectKey) -> None:
        """What was to be done for a Workload has ended."""

    def cache_of(self, gvk: GVK | None) -> MutationCache | None:
        """The jobs of one kind; None if the kind is not registered."""
        return self.jobs.get(gvk) if gvk is not None else None


async def object_there(target: Target, resource: Resource, key: ObjectKey) -> Json | None:
    """The object that has the name; None if it may not be read, which a worker need not allow, or is gone by now."""
    try:
        return await target.client.get(resource, key)
    except ApiError:
        return None


def is_the_copy(existing: Json, wanted: Json) -> bool:
    """Whether this is the very copy that was to be created: the answer was lost, and no event came."""
    same = has_origin_of(existing, wanted) and mark_of(existing) == mark_of(wanted)
    return same and not is_terminating(existing)


def has_origin_of(existing: Json, wanted: Json) -> bool:
    """Whether it says that it is a copy of the same manager."""
    origin = labels_of(wanted).get(ORIGIN_LABEL)
    return origin is not None and labels_of(existing).get(ORIGIN_LABEL) == origin
