"""The network between the daemon and one cluster, with everything that goes wrong on it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.lowlevel
import attrs

from multikueue.core.kinds import WORKLOAD
from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.errors import (
    ApiError,
    DeadlineExceeded,
    Expired,
    ServerFault,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from multikueue.protocols import ObjectList, Propagation, Subresource, WatchEvent
from multikueue.sandbox.apiserver import DirectClient

T = TypeVar("T")

DEADLINE = 30.0
"""Seconds a call may take, as the real client's."""


@attrs.define(eq=False)
class Weather:
    """How bad a link is right now."""

    latency: float = 0.002
    """Mean seconds each way."""
    lost_requests: float = 0.0
    """Share of calls that never arrive."""
    lost_replies: float = 0.0
    """Share of writes that take effect and are not answered."""
    refused: float = 0.0
    """Share of calls answered with 409, 429 or 500 without an effect."""
    expired_watches: float = 0.0
    """Share of watches answered with 410."""
    down: bool = False
    """Nothing gets through."""
    silent: bool = False
    """Connections are accepted and nothing is ever answered."""
    mutates_copies: bool = False
    """A webhook of the cluster adds something to every Workload created through this link."""


@attrs.define(eq=False)
class Link:
    """One cluster as the daemon reaches it. Implements `ApiClient`; entering it is connecting."""

    name: str
    client: DirectClient
    dice: random.Random
    weather: Weather = attrs.field(factory=Weather)
    token: str = ""
    """The credential the cluster accepts."""
    up_since: float = 0.0
    """Since when the link carries anything."""
    requests: dict[str, int] = attrs.field(factory=dict)
    _broken: anyio.Event = attrs.field(factory=anyio.Event)
    _silenced: anyio.Event = attrs.field(factory=anyio.Event)

    def with_token(self, token: str) -> Session:
        """The link as used with a credential."""
        return Session(self, token)

    def change(self, **weather: Any) -> None:
        """Change the weather; open watches notice a link that goes down."""
        was_up = self.is_up
        self.weather = attrs.evolve(self.weather, **weather)
        if self.is_up and not was_up:
            self.up_since = anyio.current_time()
        if self.weather.down:
            self.cut()
        if self.weather.silent:
            self._silenced.set()
        elif self._silenced.is_set():
            self._silenced = anyio.Event()

    def cut(self) -> None:
        """Break everything that is under way."""
        self._broken.set()
        self._broken = anyio.Event()

    @property
    def is_up(self) -> bool:
        """Whether anything gets through."""
        return not self.weather.down and not self.weather.silent

    async def carry(self, what: str, act: Callable[[], Awaitable[T]], *, writes: bool) -> T:
        """Bring a call there and its answer back, or not."""
        self.requests[what] = self.requests.get(what, 0) + 1
        failure: ApiError | None = None
        result: list[T] = []
        with anyio.move_on_after(DEADLINE) as deadline:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._break_with, tasks.cancel_scope)
                try:
                    result.append(await self._travel(what, act, writes=writes))
                except ApiError as error:
                    failure = error
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if result:
            return result[0]
        if deadline.cancelled_caught:
            raise DeadlineExceeded(f"{self.name}: {what}: no answer in time")
        raise Unreachable(f"{self.name}: {what}: connection reset")

    async def _break_with(self, scope: anyio.CancelScope) -> None:
        await self._broken.wait()
        scope.cancel()

    async def way_back(self) -> None:
        """What an event needs to arrive; for ever, while the link is silent."""
        await anyio.sleep(self.dice.expovariate(1 / self.weather.latency))
        while self.weather.silent:
            await self._broken.wait()

    async def notice_silence(self, idle: float, scope: anyio.CancelScope) -> None:
        """End a watch that has heard nothing, not even a bookmark, for that long."""
        while True:
            await self._silenced.wait()
            await anyio.sleep(idle)
            if self.weather.silent:
                scope.cancel()

    async def _travel(self, what: str, act: Callable[[], Awaitable[T]], *, writes: bool) -> T:
        await self._way(what)
        if self.dice.random() < self.weather.lost_requests:
            raise Unreachable(f"{self.name}: {what}: request lost")
        if self.dice.random() < self.weather.refused:
            raise self.dice.choice(
                (
                    ServerFault(f"{self.name}: {what}: drawn 500", status=500),
                    TooManyRequests(f"{self.name}: {what}: drawn 429", status=429, retry_after=1.0),
                )
            )
        result = await act()
        await self._way(what)
        if writes and self.dice.random() < self.weather.lost_replies:
            raise Unreachable(f"{self.name}: {what}: reply lost")
        return result

    async def _way(self, what: str) -> None:
        if self.weather.down:
            raise Unreachable(f"{self.name}: {what}: cannot connect")
        await anyio.sleep(self.dice.expovariate(1 / self.weather.latency))
        while self.weather.silent:
            await self._broken.wait()


@attrs.define(eq=False)
class Session:
    """A link used with one credential."""

    link: Link
    token: str

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        """See `Reader`."""
        return await self._call(f"get {resource}", lambda: self.link.client.get(resource, key))

    async def list(self, resource: Resource, *, namespace: str = "", label_selector: str = "") -> ObjectList:
        """See `Reader`."""
        return await self._call(
            f"list {resource}",
            lambda: self.link.client.list(resource, namespace=namespace, label_selector=label_selector),
        )

    async def create(self, resource: Resource, obj: Json) -> Json:
        """See `Writer`."""
        body = _mutated(obj) if self.link.weather.mutates_copies and resource == WORKLOAD else obj
        return await self._call(f"create {resource}", lambda: self.link.client.create(resource, body), writes=True)

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        """See `Writer`."""
        return await self._call(
            f"update {resource}",
            lambda: self.link.client.replace(resource, obj, subresource=subresource),
            writes=True,
        )

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """See `Writer`."""
        return await self._call(
            f"patch {resource}",
            lambda: self.link.client.merge_patch(resource, key, patch, subresource=subresource),
            writes=True,
        )

    async def apply(
        self, resource: Resource, obj: Json, *, field_manager: str, force: bool = True, subresource: Subresource = ""
    ) -> Json:
        """See `Writer`."""
        return await self._call(
            f"apply {resource}",
            lambda: self.link.client.apply(
                resource, obj, field_manager=field_manager, force=force, subresource=subresource
            ),
            writes=True,
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
        """See `Writer`."""
        await self._call(
            f"delete {resource}",
            lambda: self.link.client.delete(
                resource, key, uid=uid, resource_version=resource_version, propagation=propagation
            ),
            writes=True,
        )

    async def watch(
        self,
        resource: Resource,
        on_event: Callable[[WatchEvent], None],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        idle: float = 90.0,
        on_open: Callable[[], object] | None = None,
    ) -> None:
        """See `Watcher`. Events arrive late, in order; a silent link is noticed by its silence."""
        link = self.link
        await self._call(f"watch {resource}", anyio.lowlevel.checkpoint)
        if link.dice.random() < link.weather.expired_watches:
            raise Expired(f"{link.name}: drawn 410", status=410)
        if on_open is not None:
            on_open()
        failure: ApiError | None = None
        send, receive = anyio.create_memory_object_stream[WatchEvent](100_000)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link._break_with, tasks.cancel_scope)
            tasks.start_soon(self._deliver, receive, on_event)
            tasks.start_soon(link.notice_silence, idle, tasks.cancel_scope)
            try:
                await link.client.watch(
                    resource,
                    send.send_nowait,
                    resource_version=resource_version,
                    namespace=namespace,
                    label_selector=label_selector,
                    idle=idle * 100,  # bookmarks come from the server; silence is the link's doing
                )
            except ApiError as error:
                failure = error
            send.close()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        raise Unreachable(f"{link.name}: watch {resource}: stream ended")

    async def _deliver(self, events: Any, on_event: Callable[[WatchEvent], None]) -> None:
        async for event in events:
            await self.link.way_back()
            on_event(event)

    async def _call(self, what: str, act: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        async def authorized() -> T:
            if self.token != self.link.token:
                raise Unauthorized(f"{self.link.name}: {what}: Unauthorized", status=401)
            return await act()

        return await self.link.carry(what, authorized, writes=writes)


def _mutated(workload: Json) -> Json:
    """What a cluster's webhook may do to a Workload: annotate it, and fill in what was left out."""
    metadata = workload["metadata"]
    noted = {**metadata.get("annotations", {}), "example.com/seen-by": "webhook"}
    spec = {"active": True, "maximumExecutionTimeSeconds": 86_400, **workload["spec"]}
    return {**workload, "metadata": {**metadata, "annotations": noted}, "spec": spec}
