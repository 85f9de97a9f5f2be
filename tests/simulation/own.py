"""A worker that is the manager itself: what is in the namespace for copies there is what this worker has.

All others look at workers in the namespace `default`. So this worker is a part of the manager's API: it shows the
namespace for copies under that name, and the queue for copies under the name of other workers' queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import anyio
import attrs

from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.simulation.renaming import THERE, RenamingClient, swapped

if TYPE_CHECKING:
    from multikueue.sandbox.apiserver import Registry

POOL: Final = "local-pool"
"""The ClusterQueue for copies on the manager."""
Listener = Callable[[ResourceType, Json | None, Json | None], None]


class OwnClient(RenamingClient):
    """The way of this worker's users and of its administrator."""

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer`."""
        metadata, spec = obj["metadata"], obj.get("spec")
        if resource == CLUSTER_QUEUE:
            metadata = {**metadata, "name": POOL}
        if resource == NAMESPACE:
            metadata = {**metadata, "name": THERE}
        if resource == LOCAL_QUEUE:
            spec = {"clusterQueue": POOL}
        return await super().create(resource, {**obj, "metadata": metadata, **({"spec": spec} if spec else {})})

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return await super().get(resource, _queue(resource, key))

    async def merge_patch(self, resource: Resource, key: ObjectKey, patch: Json, **options: Any) -> Json:
        """See `Writer`."""
        return await super().merge_patch(resource, _queue(resource, key), patch, **options)


def _queue(resource: Resource, key: ObjectKey) -> ObjectKey:
    return ObjectKey("", POOL) if (resource, key.name) == (CLUSTER_QUEUE, CLUSTER_QUEUE_NAME) else key


def is_there(obj: Json | None) -> bool:
    """Whether an object of the manager is in the namespace for copies."""
    return obj is not None and obj["metadata"].get("namespace") == THERE


class Apart(list[Listener]):
    """The listeners to the manager: what is in the namespace for copies is not the manager's."""

    def append(self, listener: Listener) -> None:
        """Add a listener."""

        def filtered(row: ResourceType, old: Json | None, new: Json | None) -> None:
            if not is_there(new or old):
                listener(row, old, new)

        super().append(filtered)


@attrs.define(eq=False)
class Part:
    """What of the manager's API is this worker's, as far as others look past it: its registry, and that one's store."""

    whole: Registry
    types: MappingProxyType[Any, Any] = MappingProxyType({})
    _swapping: dict[Listener, Listener] = attrs.field(factory=dict, init=False)

    @property
    def cluster(self) -> Part:
        """See `Registry`."""
        return self

    store = listeners = cluster

    def type_of(self, resource: Resource) -> ResourceType:
        """See `Registry`."""
        return self.whole.type_of(resource)

    def compact(self) -> None:
        """See `Registry`."""
        self.whole.compact()

    async def run_collector(self) -> None:
        """The manager's runs."""
        await anyio.sleep_forever()

    def bucket(self, kind: tuple[str, str]) -> Any:
        """The objects of a kind."""
        return SimpleNamespace(objects=dict(self._entries(kind)))

    def get(self, kind: tuple[str, str], key: tuple[str, str]) -> Any:
        """One object."""
        return self.bucket(kind).objects.get(key)

    def _entries(self, kind: tuple[str, str]) -> Iterator[tuple[tuple[str, str], Any]]:
        for entry in list(self.whole.cluster.store.bucket(kind).objects.values()):
            if is_there(entry.obj):
                obj = swapped(entry.obj)
                yield (obj["metadata"]["namespace"], obj["metadata"]["name"]), SimpleNamespace(obj=obj)

    def append(self, listener: Listener) -> None:
        """Have a listener told of what is there."""

        def swapping(row: ResourceType, old: Json | None, new: Json | None) -> None:
            if is_there(new or old):
                listener(row, swapped(old) if old is not None else None, swapped(new) if new is not None else None)

        self._swapping[listener] = swapping
        list.append(self.whole.cluster.listeners, swapping)

    def remove(self, listener: Listener) -> None:
        """Take a listener away."""
        self.whole.cluster.listeners.remove(self._swapping.pop(listener))
