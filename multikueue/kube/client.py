"""The client of one API server: our own aiohttp sessions, one for calls and one for watches.

Measured at a tenth of the cost of the generated client. Every call has a deadline; nothing but `multikueue.errors`
comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

import aiohttp
import anyio
import attrs
import orjson
import yarl

from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.errors import Expired, ServerFault, TooManyRequests, Unauthorized
from multikueue.kube import requests
from multikueue.kube.answers import error_from_status, error_of, translated
from multikueue.kube.config import ClusterConfig
from multikueue.kube.credentials import TokenSource, token_source
from multikueue.kube.requests import Request
from multikueue.kube.transport import CLOSE_DEADLINE, MAX_LINE, open_session, ssl_context
from multikueue.protocols import ObjectList, Propagation, Subresource, WatchEvent

_MAX_THROTTLED_TRIES: Final = 5
"""How often a call comes back after 429 or 503 with Retry-After, as long as its deadline allows."""


class RequestHook(Protocol):
    """Sees every request, for metrics."""

    def observe(self, cluster: str, verb: str, resource: str, status: int, seconds: float) -> None:
        """One request ended; status 0 means that there was no answer."""
        ...


@attrs.frozen
class ClientOptions:
    """How a client behaves."""

    deadline: float = 30.0
    """Seconds a call may take in all, retries included: the API server's own limit is 60."""
    connect_deadline: float = 10.0
    """Seconds to connect, TLS included."""
    connections: int = 64
    """Calls at a time: HTTP/1.1 needs a connection for each."""
    user_agent: str = "multikueue"


@attrs.define(eq=False)
class KubeClient:
    """Implements `multikueue.protocols.ApiClient` over HTTP. Use it as an async context manager."""

    config: ClusterConfig
    name: str = attrs.field(kw_only=True)
    """The cluster's name, for errors and metrics."""
    options: ClientOptions = attrs.field(factory=ClientOptions, kw_only=True)
    hook: RequestHook | None = attrs.field(default=None, kw_only=True)
    _tokens: TokenSource = attrs.field(init=False)
    _calls: aiohttp.ClientSession = attrs.field(init=False)
    _watches: aiohttp.ClientSession = attrs.field(init=False)

    async def __aenter__(self) -> Self:
        """Open the sessions; nothing is sent yet.

        Raises:
            KubeconfigError: the certificates cannot be used.
        """
        tls = ssl_context(self.config)
        self._tokens = token_source(self.config)
        self._calls = open_session(self.config, tls, self.options.connections, self.options.user_agent)
        self._watches = open_session(self.config, tls, 0, self.options.user_agent)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections, even while being cancelled."""
        with anyio.move_on_after(CLOSE_DEADLINE, shield=True):
            await self._calls.close()
            await self._watches.close()

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader.get`."""
        return await self._call(requests.get(resource, key))

    async def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> ObjectList:
        """See `Reader.list`."""
        try:
            return await self._list_pages(resource, namespace, label_selector)
        except Expired:  # the pages took so long that the server forgot the snapshot: read all at once
            request = requests.list_page(resource, namespace=namespace, label_selector=label_selector, limit=0)
            return _object_list(await self._call(request))

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
    ) -> None:
        """See `Watcher.watch`."""
        request = requests.watch(
            resource, namespace=namespace, label_selector=label_selector, resource_version=resource_version
        )
        await self._stream(request, on_event, idle)

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer.create`."""
        return await self._call(requests.create(resource, obj))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer.replace`."""
        return await self._call(requests.replace(resource, obj, subresource))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.merge_patch`."""
        return await self._call(requests.merge_patch(resource, key, patch, subresource))

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.apply`."""
        return await self._call(requests.apply(resource, obj, field_manager, force, subresource))

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
        await self._call(
            requests.delete(resource, key, uid=uid, resource_version=resource_version, propagation=propagation)
        )

    async def _list_pages(self, resource: Resource, namespace: str, label_selector: str) -> ObjectList:
        items: list[Json] = []
        token = ""
        while True:
            request = requests.list_page(
                resource, namespace=namespace, label_selector=label_selector, continue_token=token
            )
            page = await self._call(request)
            items += page.get("items") or []
            token = page["metadata"].get("continue") or ""
            if not token:
                return ObjectList(items, page["metadata"]["resourceVersion"])

    async def _call(self, request: Request) -> Json:
        """Send a request within its deadline; come back later if the server asks for it."""
        with translated(self.name, request), anyio.fail_after(self.options.deadline) as scope:
            for tries in range(1, _MAX_THROTTLED_TRIES + 1):
                try:
                    return await self._authorized(request)
                except (TooManyRequests, ServerFault) as error:
                    wait = error.retry_after
                    if wait is None or tries == _MAX_THROTTLED_TRIES or anyio.current_time() + wait > scope.deadline:
                        raise
                await anyio.sleep(wait)
        raise AssertionError("the loop returns or raises")

    async def _authorized(self, request: Request) -> Json:
        token = await self._tokens.token()
        try:
            return await self._send(request, token)
        except Unauthorized:
            fresh = await self._tokens.token(refused=token)
            if fresh == token:
                raise
            return await self._send(request, fresh)

    async def _send(self, request: Request, token: str) -> Json:
        started, status = anyio.current_time(), 0
        try:
            async with self._calls.request(
                request.method,
                self._url(request),
                data=request.body,
                headers=_headers(request, token),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.options.connect_deadline),
            ) as response:
                body = await response.read()
                status = response.status
        finally:
            self._observe(request, status, anyio.current_time() - started)
        if status >= 300:
            raise error_of(self.name, request, status, body, response.headers)
        decoded: Json = orjson.loads(body)
        return decoded

    async def _stream(self, request: Request, on_event: Callable[[WatchEvent], None], idle: float) -> None:
        token = await self._tokens.token()
        try:
            await self._follow(request, on_event, idle, token)
        except Unauthorized:
            fresh = await self._tokens.token(refused=token)
            if fresh == token:
                raise
            await self._follow(request, on_event, idle, fresh)

    async def _follow(self, request: Request, on_event: Callable[[WatchEvent], None], idle: float, token: str) -> None:
        """Read a watch line by line. A coroutine with a callback: an async generator could not be cancelled cleanly."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.options.connect_deadline, sock_read=idle)
        with translated(self.name, request):
            with anyio.fail_after(
                self.options.deadline
            ) as opening:  # for the headers: a server may accept and say nothing
                async with self._watches.request(
                    request.method, self._url(request), headers=_headers(request, token), timeout=timeout
                ) as response:
                    self._observe(request, response.status, 0.0)
                    if response.status != 200:
                        body = await response.read()
                        raise error_of(self.name, request, response.status, body, response.headers)
                    opening.deadline = float("inf")
                    while line := await response.content.readline(max_line_length=MAX_LINE):
                        self._hear(line, on_event)

    def _hear(self, line: bytes, on_event: Callable[[WatchEvent], None]) -> None:
        told = orjson.loads(line)
        event = WatchEvent(told["type"], told["object"])
        if event.type == "ERROR":
            status = event.object
            code, reason = int(status.get("code") or 0), str(status.get("reason") or "")
            raise error_from_status(f"{self.name}: watch: {status.get('message')}", code, reason)
        on_event(event)

    def _url(self, request: Request) -> yarl.URL:
        return yarl.URL(self.config.server + request.path, encoded=True)

    def _observe(self, request: Request, status: int, seconds: float) -> None:
        if self.hook is not None:
            self.hook.observe(self.name, request.verb, request.resource.qualified, status, seconds)


def _headers(request: Request, token: str) -> dict[str, str]:
    headers = {"Content-Type": request.content_type} if request.body is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _object_list(page: Json) -> ObjectList:
    return ObjectList(page.get("items") or [], page["metadata"]["resourceVersion"])
