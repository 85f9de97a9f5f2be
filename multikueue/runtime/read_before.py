"""A list that was read before its informer begins: large ones take seconds, and need not be read twice."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.kube.reflector import ListerWatcher
from multikueue.protocols import ObjectList, WatchEvent


@attrs.define(eq=False)
class ReadBefore:
    """All objects of a kind, as they were a moment ago. Whoever takes them may change them, so only one does."""

    _listed: ObjectList | None = None

    def __repr__(self) -> str:
        return f"<ReadBefore: {len(self._listed.items) if self._listed is not None else 'no'} objects>"

    def take(self) -> ObjectList | None:
        """The list, once; then None."""
        listed, self._listed = self._listed, None
        return listed


@attrs.frozen(eq=False)
class ListedClient:
    """Answers the first list of one kind with what was read before, and passes on all else: for one informer."""

    client: ListerWatcher
    before: ReadBefore

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader.get`."""
        return await self.client.get(resource, key)

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0
    ) -> ObjectList:
        """See `Reader.list`."""
        if not namespace and not label_selector and not limit and (known := self.before.take()) is not None:
            return known
        return await self.client.list(resource, namespace=namespace, label_selector=label_selector, limit=limit)

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], None] | None = None,
    ) -> None:
        """See `Watcher.watch`."""
        await self.client.watch(
            resource,
            on_event,
            resource_version=resource_version,
            namespace=namespace,
            label_selector=label_selector,
            idle=idle,
            on_open=on_open,
        )
