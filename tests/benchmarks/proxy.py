"""`python -m tests.benchmarks.proxy`: TCP connections that are far away, hang or break.

Each direction is late by half of the round trip and not slower otherwise: any number of bytes may be on their way. A
connection is made after one round trip, as TCP needs it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, cast

import anyio
import attrs

from multikueue.core.model.names import Json
from tests.benchmarks.answering import Answer, run


@attrs.define(eq=False)
class Route:
    """The way to one server, and what is wrong with it."""

    host: str
    port: int
    delay: float
    """Seconds in one direction."""
    hangs: bool = False
    """Nothing gets through any more, in both directions, and new connections lead nowhere."""
    refuses: bool = False
    connections: set[_Near] = attrs.field(factory=set)

    def cut(self) -> None:
        """Break all connections."""
        for near in list(self.connections):
            near.abort()


class _Side(asyncio.Protocol):
    """One end of a connection: what it receives reaches the other end later, in order."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are none by type

    def data_received(self, data: bytes) -> None:
        self._later(lambda other: other.write(data))

    def eof_received(self) -> bool:
        self._later(lambda other: other.write_eof())
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._later(lambda other: other.close())

    def _later(self, act: Callable[[asyncio.Transport], None]) -> None:
        if self._route.delay:
            self._loop.call_later(self._route.delay, self._pass, act)
        else:
            self._pass(act)

    def _pass(self, act: Callable[[asyncio.Transport], None]) -> None:
        other = self.other.transport if self.other is not None else None
        if other is not None and not other.is_closing() and not self._route.hangs:
            with suppress(OSError):  # `write_eof` to one that has gone meanwhile
                act(other)


class _Near(_Side):
    """The client's end."""

    def __init__(self, route: Route, tasks: Any) -> None:
        super().__init__(route)
        self._tasks = tasks
        self._waiting: list[Callable[[asyncio.Transport], None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._route.connections.add(self)
        if self._route.refuses:
            self.abort()
        else:
            self._tasks.start_soon(self._connect)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._route.connections.discard(self)

    def abort(self) -> None:
        for side in (self, self.other):
            if side is not None and side.transport is not None:
                side.transport.abort()

    async def _connect(self) -> None:
        await anyio.sleep(2 * self._route.delay)
        far = _Side(self._route)
        try:
            await self._loop.create_connection(lambda: far, self._route.host, self._route.port)
        except OSError:
            self.abort()
            return
        far.other, self.other = self, far
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            self._pass(act)

    def _pass(self, act: Callable[[asyncio.Transport], None]) -> None:
        if self.other is None:
            self._waiting.append(act)
        else:
            super()._pass(act)


@asynccontextmanager
async def proxy(config: Json) -> AsyncIterator[tuple[Json, Answer]]:
    """Listen for each of `config["routes"]`; asked, make one hang or drop its connections."""
    routes = {
        name: Route(address["host"], address["port"], config["delay"]) for name, address in config["routes"].items()
    }
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        loop, ports = asyncio.get_running_loop(), {}
        for name, route in routes.items():
            server = await loop.create_server(functools.partial(_Near, route, tasks), "127.0.0.1", 0)
            stack.callback(server.close)
            ports[name] = server.sockets[0].getsockname()[1]

        async def answer(request: Json) -> Json:
            route = routes[request["route"]]
            if request["do"] == "hang":
                route.hangs = True
                return {}
            route.refuses = True
            route.cut()
            await anyio.sleep(request["seconds"])
            route.refuses = False
            return {}

        yield {"ports": ports}, answer


if __name__ == "__main__":
    run(proxy)
