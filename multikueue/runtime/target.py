"""A cluster on which effects can be executed: the manager, or a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from multikueue.core.model.names import GVK, Json
from multikueue.protocols import ApiClient
from multikueue.runtime.create_conflicts import CreateConflicts
from multikueue.runtime.mutation_cache import MutationCache


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

    def cache_of(self, gvk: GVK | None) -> MutationCache | None:
        """The jobs of one kind; None if the kind is not registered."""
        return self.jobs.get(gvk) if gvk is not None else None
