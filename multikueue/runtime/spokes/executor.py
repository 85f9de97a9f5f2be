"""Sends what a decision about a spoke asks for, and tells of it in events."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version, uid
from multikueue.core.spokes.effects import Create, Effect, Mend, Remove
from multikueue.core.spokes.names import CLUSTER_PERMISSION
from multikueue.errors import NotFound
from multikueue.logs import get_logger
from multikueue.protocols import Writer
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.mutation_cache import MutationCache

log = get_logger(__name__)

_TOLD: Mapping[type[Effect], tuple[str, str, str]] = {
    Create: ("created", "MultiKueueClusterCreated", "Create"),
    Mend: ("updated", "MultiKueueClusterUpdated", "Update"),
    Remove: ("deleted", "MultiKueueClusterDeleted", "Delete"),
}
"""What is told of each, and reason and action of the events: the reasons of OCM's addon."""


@attrs.define(eq=False)
class SpokeExecutor:
    """Sends one request per effect."""

    client: Writer
    permissions: Writer
    """Who writes ClusterPermissions: an identity that may do nothing else."""
    caches: Mapping[Resource, MutationCache]
    events: EventRecorder

    async def execute(self, spoke: str, effect: Effect) -> None:
        """Send it.

        Raises:
            ApiError: it was not done. `Conflict`: the object is not as it was seen.
        """
        client = self.permissions if effect.resource == CLUSTER_PERMISSION else self.client
        try:
            told = await self._send(client, effect)
        except NotFound:
            if isinstance(effect, Create):
                raise  # there is no such namespace, or the kind is not served any more
            return  # it is gone already: its event has it looked at again
        key, (verb, reason, action) = ObjectKey.of(told), _TOLD[type(effect)]
        if isinstance(effect, Mend) and effect.adopts:
            verb = "taken over"
        log.info(f"object of a spoke {verb}", spoke=spoke, kind=effect.resource.gvk.kind, object=str(key))
        if effect.resource == MULTIKUEUE_CLUSTER:
            self.events.emit(
                told, "Normal", reason, action, f"MultiKueueCluster {key} of ManagedCluster {spoke} {verb}"
            )

    async def _send(self, client: Writer, effect: Effect) -> Json:
        """Send the request; the object as it is now, or was."""
        cache = self.caches[effect.resource]
        match effect:
            case Create(resource, obj):
                cache.wrote(made := await client.create(resource, obj))
                return made
            case Mend(resource, seen):
                cache.wrote(mended := await client.merge_patch(resource, ObjectKey.of(seen), effect.request))
                return mended
            case Remove(resource, seen):
                key, version = ObjectKey.of(seen), resource_version(seen)
                await client.delete(resource, key, uid=uid(seen), resource_version=version)
                cache.removed(key, uid(seen))
                return seen
