"""The network between the daemon and one cluster, with everything that goes wrong on it."""

from __future__ import annotations

import collections
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, TypeVar

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import NAMESPACE, RESOURCE_FLAVOR
from multikueue.core.model.names import Json, Resource
from multikueue.errors import (
    ApiError,
    Conflict,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from multikueue.sandbox.apiserver import DirectClient
from tests.simulation.hostility import Hostility

T = TypeVar("T")

DEADLINE: Final = 30.0
"""Seconds a call may take, as the real client's."""
GHOSTS: Final = 0.3
"""Share of writes that still arrive when their sender has stopped waiting, or has died, while they were on the way."""
UNDRAWN: Final = f"list {RESOURCE_FLAVOR}"
"""Gets through while anything does: what was drawn for seeds before it was asked stays as it is."""


@attrs.frozen
class Weather:
    """How bad a link is right now."""

    latency: float = 0.002
    """Mean seconds each way."""
    lag: float = 0.0
    """Seconds by which watch events come later than that: caches are stale for as long."""
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
    deaf: bool = False
    """Calls are answered, and watches are open and show nothing."""
    hidden: frozenset[Resource] = frozenset()
    """Kinds that are not served, or may not be read: 404 for every call and watch."""
    hostility: Hostility | None = None
    """How a hostile worker answers."""
    hung_deletes: bool = False
    """Deletions are never answered."""
    mutates_copies: bool = False
    """A webhook of the cluster adds something to every Workload created through this link."""
    refusals: Mapping[str, int] = MappingProxyType({})
    """Plurals of kinds of which a policy refuses the statuses, those of copies apart, and with which code."""
    keeps: frozenset[str] = frozenset()
    """Plurals of kinds of which a webhook of the cluster refuses to have copies deleted."""
    nameless: int = 0
    """With which code it refuses to say which cluster it is; 0: it says so. Not over HTTP."""
    doubled: float = 0.0
    """Share of writes that a proxy repeats once they took effect: the answer is that to the repetition."""


FINE: Final = Weather()


@attrs.define(eq=False)
class Life:
    """One process. What it sends after its death arrives nowhere."""

    alive: bool = True


@attrs.define(eq=False)
class _Wire:
    """One connection: a call, or an open watch."""

    scope: anyio.CancelScope
    cut: bool = False


@attrs.define(eq=False)
class Link:
    """One cluster as the daemon reaches it."""

    name: str
    client: DirectClient
    dice: random.Random
    token: str
    """The credential the cluster accepts."""
    former: str = ""
    """A token that it accepts still; empty: none."""
    weather: Weather = FINE
    requests: collections.Counter[str] = attrs.field(factory=collections.Counter)
    """How many of each were sent: `create workloads.v1beta2.kueue.x-k8s.io`."""
    conflicts: collections.Counter[str] = attrs.field(factory=collections.Counter)
    """How many of them came after somebody else's write."""
    on_change: Callable[[], None] = lambda: None
    """Called when the link comes up or goes down."""
    on_turn: Callable[[], None] = lambda: None
    """Called when the weather changes, for those who wait for it beside `until_heard`."""
    on_moment: Callable[[], None] = lambda: None
    """Called just before and just after a call takes effect: the moments at which a process likes to die."""
    on_create: Callable[[Resource, Json], None] = lambda *_: None
    """Called with what a process asks to have created, whether it comes to that or not; not over HTTP."""
    late: anyio.abc.TaskGroup | None = None
    """Where writes whose sender is gone are on their way."""
    muted_since: float | None = None
    """Since when watches show nothing."""
    _wires: dict[_Wire, None] = attrs.field(factory=dict)
    _turned: anyio.Event = attrs.field(factory=anyio.Event)

    def change(self, **weather: Any) -> None:
        """Change the weather. What is under way notices a link that goes down."""
        self.weather = attrs.evolve(self.weather, **weather)
        mute = self.weather.silent or self.weather.deaf
        self.muted_since = (self.muted_since or anyio.current_time()) if mute else None
        self._turned.set()
        self._turned = anyio.Event()
        self.on_turn()
        if self.weather.down:
            self.cut()
        self.on_change()

    def accepts(self, token: str) -> bool:
        """Whether a credential is good."""
        return bool(token) and token in (self.token, self.former)

    def renew(self, token: str) -> None:
        """From now on a new credential is good, and the one before as well."""
        self.token, self.former = token, self.token

    def revoke(self, token: str) -> None:
        """From now on only a new credential is good."""
        self.token, self.former = token, ""

    def cut(self) -> None:
        """Break everything that is under way."""
        for wire in self._wires:
            wire.cut = True
            wire.scope.cancel()

    def look_for(self, resource: Resource) -> None:
        """Find a kind.

        Raises:
            NotFound: it is hidden.
            Forbidden: nobody may ask which cluster it is.
            ServerFault: that is not answered.
        """
        if self.weather.nameless and resource == NAMESPACE:
            refusal = Forbidden if self.weather.nameless == HTTPStatus.FORBIDDEN else ServerFault
            raise refusal(f"{self.name}: which cluster it is is not told", status=self.weather.nameless)
        if resource in self.weather.hidden:
            raise NotFound(f"{self.name}: the server could not find the requested resource {resource}", status=404)

    @property
    def is_up(self) -> bool:
        """Whether all of it gets through."""
        return not (self.weather.down or self.weather.silent or self.weather.deaf or self.weather.hidden)

    async def carry(self, what: str, act: Callable[[], Awaitable[T]], life: Life, *, writes: bool) -> T:
        """Bring a call there and its answer back, or not."""
        self.requests[what] += 1
        if what == UNDRAWN:
            if not self.is_up or not life.alive:
                raise Unreachable(f"{self.name}: {what}: cannot connect")
            return await act()
        with self.wire(what, DEADLINE):
            try:
                await self._way_there(what, life)
            except anyio.get_cancelled_exc_class():
                if writes and life.alive and self.late is not None and self.dice.random() < GHOSTS:
                    self.late.start_soon(self._arrive_late, act)
                raise
            self.on_moment()
            try:
                result = await act()
            except Conflict:
                self.conflicts[what] += 1
                raise
            self.on_moment()
            if writes and self.weather.doubled and self.dice.random() < self.weather.doubled:
                await self._hop(what)
                result = await act()
            await self._way_back(what, writes=writes)
            return result
        raise AssertionError("unreachable: a wire that broke raises")

    @contextlib.contextmanager
    def wire(self, what: str, limit: float) -> Iterator[_Wire]:
        """A connection that lasts at most `limit` seconds and breaks with the link."""
        wire = _Wire(anyio.CancelScope(deadline=anyio.current_time() + limit))
        self._wires[wire] = None
        try:
            with wire.scope:
                yield wire
        finally:
            del self._wires[wire]
        if wire.scope.cancelled_caught:
            if wire.cut:
                raise Unreachable(f"{self.name}: {what}: connection reset")
            raise DeadlineExceeded(f"{self.name}: {what}: no answer in time")

    async def until_mute(self, seconds: float) -> None:
        """Return once watches have shown nothing for so long: then they are taken for dead."""
        opened = anyio.current_time()
        while True:
            since = self.muted_since
            with anyio.move_on_at(float("inf") if since is None else max(since, opened) + seconds):
                await self._turned.wait()
                continue
            return

    async def until_heard(self) -> None:
        """Wait while watches show nothing."""
        while self.muted_since is not None:
            await self._turned.wait()

    async def _way_there(self, what: str, life: Life) -> None:
        if not life.alive:
            await anyio.sleep_forever()
        await self._hop(what)
        if self.dice.random() < self.weather.lost_requests:
            raise Unreachable(f"{self.name}: {what}: request lost")
        if self.dice.random() < self.weather.refused:
            raise self._refusal(what)

    async def _way_back(self, what: str, *, writes: bool) -> None:
        await self._hop(what)
        if writes and self.dice.random() < self.weather.lost_replies:
            raise Unreachable(f"{self.name}: {what}: reply lost")

    async def _hop(self, what: str) -> None:
        if self.weather.down:
            raise Unreachable(f"{self.name}: {what}: cannot connect")
        await anyio.sleep(self.dice.expovariate(1 / self.weather.latency))
        if self.weather.silent or (self.weather.hung_deletes and what.startswith("delete")):
            await anyio.sleep_forever()  # until the deadline, or until the connection is cut

    def _refusal(self, what: str) -> ApiError:
        words = f"{self.name}: {what}: drawn"
        return self.dice.choice(
            (
                ServerFault(f"{words} 500", status=500),
                TooManyRequests(f"{words} 429", status=429, retry_after=1.0),
                Conflict(f"{words} 409", status=409),
            )
            if not what.startswith(("get", "list", "watch"))
            else (
                ServerFault(f"{words} 500", status=500),
                TooManyRequests(f"{words} 429", status=429, retry_after=1.0),
            )
        )

    async def _arrive_late(self, act: Callable[[], Awaitable[object]]) -> None:
        await anyio.sleep(self.dice.uniform(0.0, 0.5))
        with contextlib.suppress(ApiError):  # nobody hears the answer
            await act()
