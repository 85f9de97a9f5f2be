"""One Lease, the ways to it, and a stage on which only one may lead."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.lease import LeaseSettings
from multikueue.core.model.kinds import LEASE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import AlreadyExists, Conflict, Forbidden, NotFound, Unreachable
from multikueue.protocols import Subresource
from multikueue.runtime.election import Elector
from tests.runtime.unasked import Unasked

KEY = ObjectKey("kueue-system", "multikueue")


@attrs.define(eq=False)
class Store:
    """The Lease as the API server keeps it."""

    lease: Json | None = None
    version: int = 0

    def keep(self, lease: Json) -> Json:
        self.version += 1
        lease = copy.deepcopy(lease)
        lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease = lease
        return copy.deepcopy(lease)


@attrs.define(eq=False)
class LeaseServer(Unasked):
    """One process's way to the store: slow, cut off, or with answers that get lost."""

    store: Store
    latency: float = 0.01
    cut: bool = False
    hangs: bool = False
    loses_answers: bool = False
    slow_answers: float = 0.0
    """Seconds between a write and its answer."""
    written_at: float = 0.0
    """When a write took effect last."""
    forbidden: bool = False
    requests: int = 0

    async def _pass(self) -> None:
        self.requests += 1
        await anyio.sleep(self.latency)
        if self.cut:
            raise Unreachable("connection refused")
        if self.hangs:
            await anyio.sleep_forever()
        if self.forbidden:
            raise Forbidden("leases is forbidden", status=403)

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        assert (resource, key) == (LEASE, KEY)
        await self._pass()
        if self.store.lease is None:
            raise NotFound("no such lease", status=404)
        return copy.deepcopy(self.store.lease)

    async def create(self, resource: Resource, obj: Json) -> Json:
        await self._pass()
        if self.store.lease is not None:
            raise AlreadyExists("the lease exists", status=409)
        return await self._answer(self.store.keep(obj))

    async def replace(self, resource: Resource, obj: Json, *, subresource: Subresource = "") -> Json:
        await self._pass()
        if self.store.lease is None:
            raise NotFound("no such lease", status=404)
        if obj["metadata"]["resourceVersion"] != self.store.lease["metadata"]["resourceVersion"]:
            raise Conflict("the lease changed", status=409)
        return await self._answer(self.store.keep(obj))

    async def _answer(self, lease: Json) -> Json:
        self.written_at = anyio.current_time()
        await anyio.sleep(self.slow_answers)
        if self.loses_answers:
            await anyio.sleep_forever()
        return lease


def wall_clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=anyio.current_time())


@attrs.frozen
class Candidate:
    """A replica that tries to lead, its way to the Lease, and what stops it."""

    elector: Elector
    way: LeaseServer
    stop: Callable[[], None]


@attrs.define(eq=False)
class Stage:
    """Who leads, from when until when; it refuses to have two."""

    store: Store = attrs.field(factory=Store)
    terms: list[tuple[str, float, float]] = attrs.field(factory=list)
    on_stage: str = ""
    changed: anyio.Event = attrs.field(factory=anyio.Event)

    def elector(self, identity: str, *, forbidden: bool = False) -> tuple[Elector, LeaseServer]:
        way = LeaseServer(self.store, forbidden=forbidden)
        return Elector(way, KEY, identity, LeaseSettings(), wall_clock), way

    @asynccontextmanager
    async def candidate(
        self, identity: str, *, ends_after: float = 0.0, forbidden: bool = False
    ) -> AsyncIterator[Candidate]:
        """A candidate that tries to lead meanwhile."""
        elector, way = self.elector(identity, forbidden=forbidden)

        async def run(*, task_status: anyio.abc.TaskStatus[Callable[[], None]]) -> None:
            with anyio.CancelScope() as scope:
                task_status.started(scope.cancel)
                await elector.run(lambda: self.lead(identity, ends_after))

        async with anyio.create_task_group() as tasks:
            yield Candidate(elector, way, await tasks.start(run))
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def leader(self, identity: str, *, ends_after: float = 0.0) -> AsyncIterator[Candidate]:
        """A candidate that leads."""
        async with self.candidate(identity, ends_after=ends_after) as candidate:
            await self.until(identity)
            yield candidate

    async def lead(self, identity: str, ends_after: float = 0.0) -> None:
        """Lead until cancelled; then take `ends_after` seconds to end."""
        assert not self.on_stage, f"{identity} leads while {self.on_stage} does"
        began, self.on_stage = anyio.current_time(), identity
        self._tell()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(ends_after)
            self.on_stage = ""
            self.terms.append((identity, began, anyio.current_time()))
            self._tell()

    async def until(self, identity: str) -> float:
        """Wait until this one leads; answer how long that took."""
        began = anyio.current_time()
        with anyio.fail_after(120):
            while self.on_stage != identity:
                await self.changed.wait()
        return anyio.current_time() - began

    def _tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()
