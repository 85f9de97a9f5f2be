"""A client that notes when its server is heard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import attrs

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import ApiError, Unreadable
from multikueue.protocols import ApiClient, ObjectList, Propagation, Subresource, WatchEvent

UNAVAILABLE: Final = frozenset({502, 503, 504})
"""A proxy says this of a server that does not answer it, and an API server of storage that does not."""

T = TypeVar("T")


@attrs.frozen(eq=False)
class HeardClient:
    """Passes everything on to another client. Implements `ApiClient`.

    Heard are answers, refusals and those that are too much to read included, and events of watches. Not heard are
    bookmarks, and that a watch was accepted: an API server does both from memory, while its storage may hang.
    """

    client: ApiClient
    heard: Callable[[], None]

    def __repr__(self) -> str:
        return f"<HeardClient of {self.client!r}>"

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader.get`."""
        return await self._hear(self.client.get(resource, key))

    async def list(
        self, resource: Resource, *, namespace: str = "", label_selector: str = "", limit: int = 0
    ) -> ObjectList:
        """See `Reader.list`."""
        return await self._hear(
            self.client.list(resource, namespace=namespace, label_selector=label_selector, limit=limit)
        )

    async def schema(self, gvk: GVK) -> Json | None:
        """See `Describer.schema`."""
        return await self._hear(self.client.schema(gvk))

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

        def hear(event: WatchEvent) -> None:
            if event.type != "BOOKMARK":
                self.heard()
            on_event(event)

        try:
            await self.client.watch(
                resource,
                hear,
                resource_version=resource_version,
                namespace=namespace,
                label_selector=label_selector,
                idle=idle,
                on_open=on_open,
            )
        except ApiError as error:
            self._refused(error)
            raise

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer.create`."""
        return await self._hear(self.client.create(resource, obj))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer.replace`."""
        return await self._hear(self.client.replace(resource, obj, subresource=subresource))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.merge_patch`."""
        return await self._hear(self.client.merge_patch(resource, key, patch, subresource=subresource))

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.apply`."""
        return await self._hear(
            self.client.apply(resource, obj, field_manager=field_manager, force=force, subresource=subresource)
        )

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """See `Writer.delete`."""
        await self._hear(
            self.client.delete(resource, key, uid=uid, resource_version=resource_version, propagation=propagation)
        )

    async def _hear(self, call: Awaitable[T]) -> T:
        try:
            answer = await call
        except ApiError as error:
            self._refused(error)
            raise
        self.heard()
        return answer

    def _refused(self, error: ApiError) -> None:
        if isinstance(error, Unreadable) or (error.status and error.status not in UNAVAILABLE):
            self.heard()
