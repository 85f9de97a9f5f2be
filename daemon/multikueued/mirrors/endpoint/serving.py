"""The port on which the manager's API servers ask: opened once it is known whom to believe, drained at the end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Final

import anyio
import anyio.abc
import attrs
import structlog

from multikueue.errors import SettingsError
from multikueue.kube.http.transport import keep_alive
from multikueue.runtime.loop import utc_now
from multikueued.mirrors.endpoint.callers import KubeletTls
from multikueued.mirrors.endpoint.heads import MAX_HEAD
from multikueued.mirrors.endpoint.relay import Relay
from multikueued.serving.caller_tls import peer_of
from multikueued.serving.gate import ConnectionLimit, Limits
from multikueued.serving.port import opened

DRAIN: Final = 20.0
"""Seconds for which open streams go on once the process is told to stop: kubelet waits for 30 s. A stream that is cut
ends `kubectl logs -f` with exit code 0."""
BESIDE: Final = 64
"""Connections beside those of streams."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class EndpointPort:
    """Serves while `run` does."""

    relay: Relay
    tls: KubeletTls
    address: str
    number: int
    """0: any free one."""
    on_open: Callable[[int], None] = lambda _: None
    """Called with the port."""
    drain: float = DRAIN

    async def run(self) -> None:
        """Serve until cancelled, and then for as long as streams are open, `drain` seconds at most."""
        await self.tls.ready.wait()
        with contextlib.ExitStack() as stack:
            try:
                listeners = [
                    stack.enter_context(listener) for listener in await opened(self.address, self.number, "mirrorPods")
                ]
            except SettingsError as error:
                log.error("logs of mirrors are not served", error=str(error))
                return
            port = listeners[0].getsockname()[1]
            log.info("serving logs of mirrors", port=port, exec=self.relay.enters)
            self.on_open(port)
            stopping = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve, listeners, stopping)
                try:
                    await anyio.sleep_forever()
                finally:
                    stopping.set()

    async def _serve(self, listeners: list[socket.socket], stopping: anyio.Event) -> None:
        gate = ConnectionLimit(Limits(connections=self.relay.places.most + BESIDE), self.tls)
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                protocols = _Protocols(self.relay, gate, tasks)
                for listener in listeners:
                    tasks.start_soon(gate.run, listener, protocols.made)
                await stopping.wait()
                with anyio.move_on_after(self.drain):
                    await self.relay.places.none_held()
                tasks.cancel_scope.cancel()


@attrs.define(eq=False)
class _Protocols:
    """Makes the protocol of each connection, which starts a task for it."""

    relay: Relay
    gate: ConnectionLimit
    tasks: anyio.abc.TaskGroup

    def made(self) -> asyncio.Protocol:
        """One."""
        reader = asyncio.StreamReader(MAX_HEAD)

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.tasks.start_soon(self._serve, protocol, reader, writer)

        protocol = asyncio.StreamReaderProtocol(reader, connected)
        return protocol

    async def _serve(
        self, protocol: asyncio.Protocol, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        guarded = self.gate.connection(protocol)
        if guarded is None:  # it is closed already
            return
        keep_alive(writer.get_extra_info("socket"))
        peer = peer_of(writer.get_extra_info("ssl_object"), utc_now())
        try:
            await self.relay.serve(reader, writer, peer, guarded.began)
        finally:
            if self.gate.connection(protocol) is not None:
                guarded.answered()  # what is left of the answer is taken in time, or cut off
            writer.close()
