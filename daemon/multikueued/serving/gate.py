"""Bounds what the clients of a port may hold: connections, and time.

Anybody who reaches a port is a client: who it is is asked later, if at all.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import anyio
import attrs
import structlog
from aiohttp import StreamReader, web

from multikueued.serving.serving_tls import ServingTls

OWED: Final = 0.25
"""Seconds after which one that owes something makes room: those who mean it need a few milliseconds."""
ACCEPT_DELAY: Final = 1.0
"""Seconds until the next try where the process may open no more files, as in asyncio."""

log = structlog.get_logger(__name__)


@attrs.frozen
class Limits:
    """What the clients of a port may hold."""

    connections: int = 128
    """Open at a time. Beyond them the one that has been idle longest is closed; if none is, the one that has owed
    something longest, for `OWED` at least; else others wait in the kernel's queue. A few API servers with some
    connections each, kubelet and Prometheus need a tenth."""
    head_timeout: float = 5.0
    """Seconds for TLS, and then for the head of a request from when it may begin. API servers send it in one packet."""
    idle_timeout: float = 120.0
    """Seconds for an answer to be read and the next request to begin. API servers themselves close after 90 s: they
    should do so first, because a request that meets a closing connection is lost."""


@attrs.define(eq=False)
class GuardedConnection(asyncio.Protocol):
    """Closes a connection that lets us wait; hands all else to the server's own protocol."""

    inner: asyncio.Protocol
    limits: Limits
    on_lost: Callable[[], None]
    idle: bool = attrs.field(default=False, init=False)
    """Whether an answer has been given and nothing has come since."""
    owes_since: float = attrs.field(factory=anyio.current_time, init=False)
    """Since when the handshake, a head or more of a body is to come, or its last answer to be taken; infinite: none."""
    _owes_body: bool = attrs.field(default=False, init=False)
    evicted: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)
    """Cancelled to close it at once, also while it has no transport."""
    _transport: asyncio.Transport | None = attrs.field(default=None, init=False)
    _deadline: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A head is to come."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no instance of it
        self._wait(self.limits.head_timeout)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """The first byte after an answer begins the next head."""
        if self.idle:
            self.idle = False
            self._wait(self.limits.head_timeout)
            self.owes_since = anyio.current_time()
        elif self._owes_body:
            self.owes_since = anyio.current_time()
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`."""
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.BaseProtocol`."""
        self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free its place."""
        self._wait(None)
        self._transport = None  # there is nothing to abort any more: a transport that has lost its loop raises
        self.inner.connection_lost(exc)
        self.on_lost()

    def began(self, body: StreamReader | None = None) -> None:
        """The head has arrived, and its handler runs: that one bounds the body, if one is to come."""
        self.idle, self._owes_body, self.owes_since = False, True, anyio.current_time()
        self._wait(None)
        if body is None:
            self._owes_nothing()
        else:
            body.on_eof(self._owes_nothing)

    def answered(self) -> None:
        """The handler has an answer."""
        self._owes_nothing()
        self.idle = True
        self._wait(self.limits.idle_timeout)

    @property
    def is_clear(self) -> bool:
        """Whether it is idle, and its last answer has been sent."""
        return self.idle and self._transport is not None and not self._transport.get_write_buffer_size()

    def make_room(self) -> None:
        """Close once the answer has been sent, for which there is as long as for a head, unless others want its place
        before that.
        """
        self.idle, self.owes_since = False, anyio.current_time()
        if self._transport is not None:
            self._wait(self.limits.head_timeout)
            self._transport.close()

    def _owes_nothing(self) -> None:
        self._owes_body, self.owes_since = False, math.inf

    def close(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _wait(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.close)


@attrs.define(eq=False)
class ConnectionLimit:
    """Accepts connections, up to the limit."""

    limits: Limits
    tls: ServingTls | None = None
    """Asked for each new connection; None: plain TCP."""
    _open: dict[asyncio.Protocol, GuardedConnection] = attrs.field(factory=dict, init=False)
    """By the server's own protocol, in the order in which they answered last."""
    _places: anyio.Semaphore = attrs.field(init=False)

    @_places.default
    def _as_limited(self) -> anyio.Semaphore:
        return anyio.Semaphore(self.limits.connections)

    async def run(self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Accept until cancelled; the server makes a protocol for each connection."""
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    accepted, _ = await loop.sock_accept(listener)
                except OSError as error:  # no more files, or the client is gone already
                    log.warning("cannot accept a connection", error=str(error))
                    await anyio.sleep(ACCEPT_DELAY)
                    continue
                await self._place()
                tasks.start_soon(self._serve, accepted, protocol())

    def connection(self, inner: asyncio.Protocol) -> GuardedConnection | None:
        """The connection of one of the server's own protocols; None: it is closed."""
        return self._open.get(inner)

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Of the application: tells a connection when its request begins and when it has an answer."""
        connection = self.connection(request.protocol)
        if connection is None:
            return await handler(request)
        connection.began(request.content)
        try:
            return await handler(request)
        finally:
            if request.protocol in self._open:
                self._open[request.protocol] = self._open.pop(request.protocol)
                connection.answered()

    async def _place(self) -> None:
        acquired = False
        while not acquired:
            if not self._places.value:
                self._make_room()
            with anyio.move_on_after(OWED):  # one that is busy now may be idle then
                await self._places.acquire()
                acquired = True

    def _make_room(self) -> None:
        """Close one: at once, but for one that has not taken its answer yet."""
        clear = next((connection for connection in self._open.values() if connection.is_clear), None)
        if (leaving := clear or self._owing()) is not None:
            leaving.evicted.cancel()
        elif (idle := next((connection for connection in self._open.values() if connection.idle), None)) is not None:
            idle.make_room()

    def _owing(self) -> GuardedConnection | None:
        """Who has owed something longest; None: nobody for long."""
        longest = min(self._open.values(), key=lambda connection: connection.owes_since, default=None)
        return longest if longest is not None and anyio.current_time() - longest.owes_since >= OWED else None

    async def _serve(self, accepted: socket.socket, inner: asyncio.Protocol) -> None:
        """Serve one connection until it is closed."""
        lost = anyio.Event()
        connection = GuardedConnection(inner, self.limits, lost.set)
        tls = self.tls.context if self.tls is not None else None
        handshake: dict[str, Any] = {"ssl_handshake_timeout": self.limits.head_timeout} if tls is not None else {}
        self._open[inner] = connection
        try:
            with connection.evicted:
                loop = asyncio.get_running_loop()
                await loop.connect_accepted_socket(lambda: connection, accepted, ssl=tls, **handshake)
                await lost.wait()
        except OSError:  # the handshake failed, as of anybody who speaks no TLS
            return
        finally:
            connection.close()
            del self._open[inner]
            self._places.release()
