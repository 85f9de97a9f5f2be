"""A client that shows some objects misshapen, or as ones that cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.shape import outline
from multikueue.protocols import ObjectList, UnreadableObject, WatchEvent
from multikueue.sandbox.apiserver import ApiServer, DirectClient

Spoil: TypeAlias = Callable[[Json], None] | None
"""Changes an object; None: it cannot be decoded."""
DEEP: Final = "it nests too deep"
ALL: Final = ""
"""In place of a name: every object of the kind."""


@attrs.define(eq=False)
class OddObjects:
    """Which objects are odd: by kind and name. Changing one makes the server tell of it."""

    server: ApiServer
    spoilt: dict[tuple[str, str], Spoil] = attrs.field(factory=dict)

    async def spoil(self, resource: Resource, name: str, how: Spoil) -> None:
        """From now on it is odd."""
        self.spoilt[resource.gvk.kind, name] = how
        await self._touch(resource, name)

    async def mend(self, resource: Resource, name: str) -> None:
        """It is as it should be again."""
        del self.spoilt[resource.gvk.kind, name]
        await self._touch(resource, name)

    async def _touch(self, resource: Resource, name: str) -> None:
        patch = {"metadata": {"annotations": {"touched": str(self.server.registry.cluster.store.revision)}}}
        await DirectClient(self.server).merge_patch(resource, ObjectKey("default", name), patch)

    def shown(self, resource: Resource, obj: Json) -> tuple[Json, str]:
        """The object as it is shown, and why it cannot be decoded; empty: it can be."""
        kind = resource.gvk.kind
        how = self.spoilt.get((kind, obj["metadata"].get("name", "")), self.spoilt.get((kind, ALL), _sound))
        if how is None:
            return outline(obj), DEEP
        how(obj)
        return obj, ""


class OddClient(DirectClient):
    """What a client over HTTP makes of such objects."""

    def __init__(self, odd: OddObjects, *, user: str) -> None:
        super().__init__(odd.server, user=user)
        self.odd = odd

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0, each: object = None
    ) -> ObjectList:
        """See `Reader`."""
        listed = await super().list(resource, namespace=namespace, label_selector=label_selector, limit=limit)
        shown = [self.odd.shown(resource, item) for item in listed.items]
        unreadable = tuple(UnreadableObject(obj, why) for obj, why in shown if why)
        return ObjectList([obj for obj, why in shown if not why], listed.resource_version, unreadable)

    async def watch(self, resource: Resource, on_event: Callable[[WatchEvent], None], **options: Any) -> None:
        """See `Watcher`."""

        def shown(event: WatchEvent) -> None:
            obj, why = self.odd.shown(resource, event.object)
            on_event(WatchEvent(event.type, obj, event.size, why))

        await super().watch(resource, shown, **options)


def _sound(_: Json) -> None:
    """It is as it is."""
