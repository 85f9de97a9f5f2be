"""The client of one API server: the verbs, discovery, lists page by page, and watches line by line.

A call takes a tenth of the CPU time that the generated client takes. Every call has a deadline, and raises only the
errors of `multikueue.errors`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Self

import attrs

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import ApiError, Expired, Invalid, NotFound, NotSent
from multikueue.hooks import unfailing
from multikueue.kube.client_options import ClientOptions
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.http import requests
from multikueue.kube.http.activity import Activity
from multikueue.kube.http.error_mapping import ErrorMapping, decoded, where
from multikueue.kube.http.large_json import LargeJson
from multikueue.kube.http.requester import Requester, open_requester
from multikueue.kube.http.response_limits import MAX_SCHEMAS, PAGE_BYTES, Lines, ListTally
from multikueue.kube.informers.known_specs import decoded_answer
from multikueue.kube.informers.list_pages import ListPages, PageSizes
from multikueue.kube.informers.watch_line import parsed
from multikueue.kube.kubeconfigs.client_configuration import cluster_config
from multikueue.kube.kubeconfigs.config import ClusterConfig
from multikueue.kube.log_stream import IDLE, LogLine, at_once, read_log
from multikueue.kube.pod_exec import ExecRequest, Execution, execution
from multikueue.kube.served_kinds import ServedKind, published_schema, served, served_by
from multikueue.kube.tunnel import Tunnel, opened_tunnel
from multikueue.protocols import Known, ObjectList, Propagation, Received, RequestHook, Subresource, WatchEvent


@attrs.define(eq=False)
class KubeClient:
    """Implements `multikueue.protocols.ApiClient` over HTTP. Use it as an async context manager."""

    config: ClusterConfig = attrs.field(converter=cluster_config)
    """Or a `Configuration` or `ApiClient` of kubernetes-asyncio, which is copied."""
    name: str = attrs.field(kw_only=True)
    """The cluster's name, for errors and metrics."""
    options: ClientOptions = attrs.field(factory=ClientOptions, kw_only=True)
    hook: RequestHook | None = attrs.field(default=None, kw_only=True)
    plugins: Authenticators = attrs.field(factory=Authenticators, kw_only=True)
    """The exec plugins. Clients that share this run an equal plugin once for all of them."""
    large_json: LargeJson = attrs.field(factory=LargeJson, kw_only=True)
    """Clients of one event loop that share this decode large answers and events in turns."""
    _activity: Activity = attrs.field(factory=Activity, init=False)
    _known: dict[Resource, Known] = attrs.field(factory=dict, init=False)
    """What the last watch of a kind was given: an answer to a write shows no more of a large spec than an event."""
    _lifetime: contextlib.AsyncExitStack = attrs.field(factory=contextlib.AsyncExitStack, init=False)
    _opened: Requester | None = attrs.field(default=None, init=False)
    """None until the client is used as a context manager; closed afterwards."""

    def __repr__(self) -> str:
        state = "not opened" if self._opened is None else "closed" if self._opened.closed else "open"
        return f"<KubeClient {self.name}: {self.config.server}, {state}>"

    async def __aenter__(self) -> Self:
        """Open the sessions. This sends nothing yet.

        Raises:
            KubeconfigError: the certificates cannot be used.
        """
        shared = unfailing(self.hook), self.plugins, self._activity, self.large_json
        opening = open_requester(self.config, self.name, self.options, *shared)
        self._opened = await self._lifetime.enter_async_context(opening)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections, also while being cancelled."""
        await self._lifetime.aclose()

    @property
    def last_activity(self) -> float:
        """See `ApiClient`."""
        return self._activity.last

    @property
    def opened(self) -> bool:
        """Whether it has been used as a context manager."""
        return self._opened is not None

    @property
    def _exchange(self) -> Requester:
        """
        Raises:
            NotSent: the client has not been opened, or is closed.
        """
        if self._opened is None or self._opened.closed:
            state = "is not open" if self._opened is None else "is closed"
            raise NotSent(f"{self.name}: the client {state}: use it as an async context manager")
        return self._opened

    async def discover(self, gvk: GVK) -> ServedKind | None:
        """How the server serves a kind; None if it does not. Every authenticated identity may ask.

        Raises:
            ApiError: the server did not answer.
        """
        try:
            request = requests.discover(gvk.group, gvk.version)
        except Invalid:  # nobody can serve it: an owner reference may name any group
            return None
        try:
            listed = await self._exchange.call(request)
        except NotFound:
            return None
        return served(listed, gvk)

    async def schema(self, gvk: GVK) -> Json | None:
        """See `Describer.schema`. Every authenticated identity may ask."""
        request = requests.openapi(gvk.group, gvk.version)
        try:
            body = await self._exchange.fetch(request, MAX_SCHEMAS)
        except NotFound:
            return None
        return published_schema(self._exchange.decode(request, body), gvk)

    async def served(self) -> Set[GVK] | None:
        """See `Describer.served`. Every authenticated identity may ask."""
        request = requests.discover_all()
        body = await self._exchange.fetch(request, MAX_SCHEMAS)
        return served_by(self._exchange.decode(request, body))

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader.get`."""
        return await self._exchange.call(requests.get(resource, key))

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        """See `ApiClient.exists`. What a server sends all the same is not kept."""
        try:
            await self._exchange.call(requests.exists(resource, key))
        except NotFound:
            return False
        return True

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        limit: int = 0,
        each: Received | None = None,
    ) -> ObjectList:
        """See `Lister.list`."""
        pages = partial(self._pages, resource, namespace, label_selector, each)
        if limit:
            return await pages(limit).read(one_page=True)
        try:
            return await pages(requests.PAGE_SIZE).read(one_page=False)
        except Expired:  # the pages took longer than the server keeps a snapshot: read all in one page
            return await pages(0).read(one_page=False)

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
        known: Known | None = None,
    ) -> None:
        """See `Watcher.watch`. It uses a callback because an async generator cannot be cancelled cleanly."""
        request = requests.watch(
            resource, namespace=namespace, label_selector=label_selector, resource_version=resource_version
        )
        if known is not None:
            self._known[resource] = known
        response = await self._exchange.stream(request, idle)
        mapped, begin = ErrorMapping(self.name, request), where(self.name, request)
        lines = Lines(response.content, begin)
        try:
            if on_open is not None:
                on_open()
            while True:
                with mapped:
                    line = await lines.next()
                if not line:
                    return
                async with self.large_json.turn(len(line)):
                    event = parsed(begin, line, known)
                    self._activity.sent(event)
                    on_event(event)
                del line, event  # else each watch has its last object in memory, whole, until the next one comes
        except ApiError as error:
            self._activity.failed(error)
            raise
        finally:
            response.close()

    async def pod_log(
        self,
        key: ObjectKey,
        query: requests.LogQuery,
        on_line: Callable[[LogLine], None],
        *,
        on_open: Callable[[], Awaitable[None]],
        pause: Callable[[], Awaitable[None]] = at_once,
        resource: Resource = POD,
        idle: float = IDLE,
    ) -> None:
        """Read a container's log to its end, line by line.

        What the callbacks raise is passed on as it is.

        Args:
            key: the pod.
            query: what to read.
            on_line: called with each line.
            on_open: called once the server has accepted the request, before any line.
            pause: awaited after each line: no more is shown or read before it returns.
            resource: what has the log: a pod, or an object that an aggregated API serves.
            idle: seconds without a byte after which the stream counts as dead. A job may be silent for longer: then the
                caller asks again from the last line.

        Raises:
            Invalid: the container has not started yet, its pod has no node, or there is none of that name.
            Unreadable: the log is compressed.
            ApiError: anything else that ended the stream, silence included.
        """
        request = requests.pod_log(resource, key, query)
        response = await self._exchange.stream(request, idle)
        try:
            if response.status == HTTPStatus.NO_CONTENT:
                raise Invalid(f"{where(self.name, request)}: the pod has no node yet", status=HTTPStatus.NO_CONTENT)
            await on_open()
            await read_log(response, ErrorMapping(self.name, request), on_line, pause)
        finally:
            response.close()

    @asynccontextmanager
    async def stream(self, resource: Resource, path: str, *, idle: float = IDLE) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET a path of an aggregated API, and read the answer as it comes.

        Args:
            resource: what is read there, for errors.
            path: path and query, encoded.
            idle: see `pod_log`; errors, too.
        """
        request = requests.Request("get", resource, "GET", path)
        response = await self._exchange.stream(request, idle)
        try:
            with ErrorMapping(self.name, request):
                yield response.content.iter_any()
        finally:
            response.close()

    def exec(self, asked: ExecRequest) -> AbstractAsyncContextManager[Execution]:
        """Run a command in a container: see `pod_exec.execution`."""
        return execution(self._exchange, asked)

    def tunnel(
        self, request: requests.Request, headers: Iterable[tuple[str, str]]
    ) -> AbstractAsyncContextManager[Tunnel]:
        """Send a request, and then bytes both ways: see `tunnel.opened_tunnel`."""
        return opened_tunnel(self._exchange, request, headers)

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer.create`."""
        return await self._write(requests.create(resource, obj), all_of_it=True)

    async def request_token(self, account: ObjectKey, spec: Json) -> Json:
        """Ask for a token of a service account: the answered TokenRequest.

        Raises:
            ApiError: the server refused, or did not answer.
        """
        return await self._exchange.call(requests.token(account, spec))

    async def part(self, resource: Resource, key: ObjectKey, name: str) -> Json:
        """Read what an aggregated API has below an object, by the name of the subresource."""
        return await self._exchange.call(requests.part(resource, key, name))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer.replace`."""
        return await self._exchange.call(requests.replace(resource, obj, subresource))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.merge_patch`."""
        return await self._write(requests.merge_patch(resource, key, patch, subresource))

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """See `Writer.apply`."""
        return await self._write(requests.apply(resource, obj, field_manager, force, subresource))

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace: int | None = None,
    ) -> Json | None:
        """See `Writer.delete`. A kubelet does so with a grace period of 0 seconds."""
        answer = await self._exchange.call(
            requests.delete(
                resource, key, uid=uid, resource_version=resource_version, propagation=propagation, grace=grace
            )
        )
        # A Status, or the last state of an object that is gone: only one that has still to end has the timestamp.
        return answer if dig(answer, "metadata", "deletionTimestamp") else None

    async def _write(self, request: requests.Request, *, all_of_it: bool = False) -> Json:
        """Send a write; its answer has a known spec as the watch keeps it, unless it is compared with what was sent."""
        known = self._known.get(request.resource)
        read = decoded if known is None else partial(decoded_answer, None if all_of_it else known)
        return await self._exchange.call(request, read)

    def _pages(
        self, resource: Resource, namespace: str, label_selector: str, each: Received | None, limit: int
    ) -> ListPages:
        limits = self.options.limits
        sizes = PageSizes(limit, min(limits.answer_bytes, PAGE_BYTES))
        tally = ListTally(limits, f"{self.name}: list {resource}")
        return ListPages(self._exchange, resource, namespace, label_selector, sizes, tally, each)
