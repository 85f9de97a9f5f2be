"""The client of one API server: the verbs, lists page by page, and watches line by line.

Measured at a tenth of the cost of the generated client. Every call has a deadline; nothing but `multikueue.errors`
comes out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeGuard

import attrs

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import Expired, NotFound, Unreachable
from multikueue.kube import requests
from multikueue.kube.config import ClusterConfig
from multikueue.kube.discovery import Served, served
from multikueue.kube.error_mapping import Translated, decoded, error_of_status, where
from multikueue.kube.exchange import ClientOptions, Exchange, RequestHook
from multikueue.kube.requests import Request
from multikueue.kube.transport import MAX_LINE
from multikueue.protocols import ObjectList, Propagation, Subresource, WatchEvent


@attrs.define(eq=False)
class KubeClient:
    """Implements `multikueue.protocols.ApiClient` over HTTP. Use it as an async context manager."""

    config: ClusterConfig
    name: str = attrs.field(kw_only=True)
    """The cluster's name, for errors and metrics."""
    options: ClientOptions = attrs.field(factory=ClientOptions, kw_only=True)
    hook: RequestHook | None = attrs.field(default=None, kw_only=True)
    _exchange: Exchange = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._exchange = Exchange(self.config, self.name, self.options, self.hook)

    async def __aenter__(self) -> Self:
        """Open the sessions; nothing is sent yet.

        Raises:
            KubeconfigError: the certificates cannot be used.
        """
        await self._exchange.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections, even while being cancelled."""
        await self._exchange.__aexit__(kind, error, trace)

    async def discover(self, gvk: GVK) -> Served | None:
        """How the server serves a kind; None if it does not. Every identity may ask.

        Raises:
            ApiError: it cannot be told.
        """
        try:
            listed = await self._exchange.call(requests.discover(gvk.group, gvk.version))
        except NotFound:
            return None
        return served(listed, gvk)

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader.get`."""
        return await self._exchange.call(requests.get(resource, key))

    async def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> ObjectList:
        """See `Reader.list`."""
        try:
            return await self._list(resource, namespace, label_selector, requests.PAGE_SIZE)
        except Expired:  # the pages took so long that the server forgot the snapshot: read all at once
            return await self._list(resource, namespace, label_selector, 0)

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
        request = requests.watch(
            resource, namespace=namespace, label_selector=label_selector, resource_version=resource_version
        )
        await self._follow(request, on_event, idle, on_open)

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer.create`."""
        return await self._exchange.call(requests.create(resource, obj))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer.replace`."""
        return await self._exchange.call(requests.replace(resource, obj, subresource))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.merge_patch`."""
        return await self._exchange.call(requests.merge_patch(resource, key, patch, subresource))

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.apply`."""
        return await self._exchange.call(requests.apply(resource, obj, field_manager, force, subresource))

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
        await self._exchange.call(
            requests.delete(resource, key, uid=uid, resource_version=resource_version, propagation=propagation)
        )

    async def _list(self, resource: Resource, namespace: str, label_selector: str, limit: int) -> ObjectList:
        items: list[Json] = []
        token = ""
        while True:
            request = requests.list_page(
                resource, namespace=namespace, label_selector=label_selector, limit=limit, continue_token=token
            )
            page = await self._exchange.call(request)
            version = dig(page, "metadata", "resourceVersion")
            if not version:
                raise Unreachable(f"{where(self.name, request)}: the answer is not a list")
            listed = page.get("items") or []
            if not isinstance(listed, list) or not all(map(_is_object, listed)):
                raise Unreachable(f"{where(self.name, request)}: an item of the list is not an object")
            texts: dict[str, str] = {}
            items += (_slim(resource, item, texts) for item in listed)
            token = dig(page, "metadata", "continue") or ""
            if not token:
                return ObjectList(items, version)

    async def _follow(
        self,
        request: Request,
        on_event: Callable[[WatchEvent], None],
        idle: float,
        on_open: Callable[[], None] | None,
    ) -> None:
        """Read a watch line by line. A coroutine with a callback: an async generator could not be cancelled cleanly."""
        response = await self._exchange.stream(request, idle)
        translated = Translated(self.name, request)
        try:
            if on_open is not None:
                on_open()
            while True:
                with translated:
                    line = await response.content.readline(max_line_length=MAX_LINE)
                if not line:
                    return
                on_event(self._event(request, line))
        finally:
            response.close()

    def _event(self, request: Request, line: bytes) -> WatchEvent:
        told = decoded(line) or {}
        kind, obj = told.get("type"), told.get("object")
        if isinstance(obj, dict) and kind == "ERROR":
            raise error_of_status(where(self.name, request), obj)
        if not isinstance(kind, str) or not _is_object(obj, "resourceVersion" if kind == "BOOKMARK" else "name"):
            raise Unreachable(f"{where(self.name, request)}: a line of the stream is cut off or not an event")
        return WatchEvent(kind, obj)


def _is_object(obj: Any, field: str = "name") -> TypeGuard[Json]:
    """Whether something has metadata, with that field: what lies between an API server and us may answer, too."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get(field), str)


def _slim(resource: Resource, item: Json, texts: dict[str, str]) -> Json:
    """An item as a client wants it: with what lists of builtin kinds say for all items at once, and without its
    `managedFields`, which are half of a list.

    Args:
        resource: its kind.
        item: changed in place.
        texts: those of the items so far. A quarter of what a list takes is texts that are in every item.
    """
    item["metadata"].pop("managedFields", None)
    with contextlib.suppress(RecursionError):  # nested a thousand deep: what is shared by then is as good
        _share(item, texts)
    item.setdefault("apiVersion", resource.gvk.api_version)
    item.setdefault("kind", resource.gvk.kind)
    return item


def _share(value: Any, texts: dict[str, str]) -> Any:
    """The value, in which each text that was seen before is the one that was seen before."""
    if isinstance(value, str):
        return texts.setdefault(value, value)
    if isinstance(value, dict):
        for key, item in value.items():
            value[key] = _share(item, texts)
    elif isinstance(value, list):
        value[:] = [_share(item, texts) for item in value]
    return value
