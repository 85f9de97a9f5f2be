"""The real HTTP client and the sandbox's HTTP server, joined in memory: on the virtual clock, without a socket.

Real sockets would need real time: a selector decides then when something arrives, and a seed would not repeat. So the
client's connector gets pairs of transports instead. All above them is what runs in production: aiohttp's parsers,
pools, timeouts and limits, and `multikueue.kube` on one side, the sandbox's routing and streams on the other.
"""

from __future__ import annotations

import asyncio
import collections
import ssl
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import aiohttp
import attrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from multikueue.kube.http.transport import POOLED_FOR, has_connection
from tests.simulation.weather import Life, Link

REFUSED: Final = OSError(111, "Connection refused")


class Wire(asyncio.Transport):
    """One end of a connection. What is written arrives at the other end in order, each piece when it is due."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.other: Wire | None = None
        self.protocol: Any = None
        self.delay: Callable[[], float] = lambda: 0.0
        self._loop = loop
        self._coming: collections.deque[tuple[float, bytes | None]] = collections.deque()
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._closed = False
        self.held: Callable[[], bool] = lambda: False
        self.altered: Callable[[bytes], bytes] = lambda data: data

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send; nothing once the connection is closed."""
        if self.other is not None and not self._closed and data:
            self.other.receive(bytes(data), self.delay())

    def receive(self, data: bytes | None, delay: float) -> None:
        """Something is on its way here; None: the end."""
        due = self._loop.time() + delay
        last = self._coming[-1][0] if self._coming else due
        self._coming.append((max(due, last), data))
        self.look()

    def look(self) -> None:
        """Hand over what is due, unless somebody holds it up."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._coming and not self._paused and not self.held():
            self._timer = self._loop.call_at(self._coming[0][0], self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        if self._closed or self._paused or self.held():
            return
        _, data = self._coming.popleft()
        if data is None:
            self._lose(None)
        else:
            self.protocol.data_received(self.altered(data))
            self.look()

    def close(self) -> None:
        """Close in order: what was sent arrives."""
        if not self._closed:
            if self.other is not None:
                self.other.receive(None, self.delay())
            self._lose(None)

    def abort(self) -> None:
        """Reset: what is on its way is lost, on both sides."""
        for end in (self, self.other):
            if end is not None:
                end._lose(ConnectionResetError(104, "Connection reset by peer"))

    def _lose(self, error: Exception | None) -> None:
        if not self._closed:
            self._closed = True
            self._coming.clear()
            self._loop.call_soon(self.protocol.connection_lost, error)

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._closed

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._paused = True

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._paused = False
        self.look()

    def is_reading(self) -> bool:
        """See `asyncio.ReadTransport`."""
        return not self._paused

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`: nothing waits here."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See `asyncio.WriteTransport`."""


def join(client: asyncio.BaseProtocol, server: asyncio.BaseProtocol, life: Life) -> tuple[Wire, Wire]:
    """Connect two protocols; a process that is dead sends nothing more."""
    loop = asyncio.get_running_loop()
    here, there = LivingWire(loop, life), Wire(loop)
    here.other, there.other = there, here
    here.protocol, there.protocol = client, server
    server.connection_made(there)
    client.connection_made(here)
    return here, there


class LivingWire(Wire):
    """The end of a process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, life: Life) -> None:
        super().__init__(loop)
        self._life = life

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, if the process is alive."""
        if self._life.alive:
            super().write(data)


@attrs.define(eq=False)
class Host:
    """A server that can be connected to: what serves a new connection, and the link that leads to it."""

    link: Link
    serve: Callable[[], asyncio.BaseProtocol]
    wires: dict[Wire, None] = attrs.field(factory=dict)
    """The ends of clients, for what is to be woken when a link is turned on again."""


class MemoryConnector(aiohttp.BaseConnector):
    """Connections in memory."""

    def __init__(self, host: Host, life: Life, connections: int) -> None:
        super().__init__(limit=connections, keepalive_timeout=POOLED_FOR)
        self._host = host
        self._life = life

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        has_connection()
        return connection

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        del traces, timeout
        if not self._life.alive:
            await asyncio.get_running_loop().create_future()
        if self._host.link.weather.down:
            key: ConnectionKey = req.connection_key
            raise aiohttp.ClientConnectorError(key, REFUSED)
        protocol: ResponseHandler = self._factory()
        here, _ = join(protocol, self._host.serve(), self._life)
        self._host.wires[here] = None
        return protocol


@cache
def tls() -> ssl.SSLContext:
    """A context for all: nothing is encrypted in memory."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
