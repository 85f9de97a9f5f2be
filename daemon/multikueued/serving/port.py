"""Opens and closes a port of the daemon; the error says why it cannot be opened."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import anyio
from aiohttp import web

from multikueue.errors import SettingsError
from multikueued.serving.gate import ConnectionLimit, Limits
from multikueued.serving.serving_tls import ServingTls

_CLOSE_TIMEOUT: Final = 2.0
_BACKLOG: Final = 128
"""Connections that wait in the kernel; it refuses more."""


@asynccontextmanager
async def listening(
    application: web.Application,
    address: str,
    port: int,
    *,
    settings: str,
    tls: ServingTls | None = None,
    limits: Limits | None = None,
    streams: bool = False,
    beside: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> AsyncIterator[int]:
    """Serve an application while the context lasts; it yields the port.

    Args:
        application: handles the requests.
        address: empty for all addresses.
        port: 0 for any free one.
        settings: the group of settings that has the port, for the error; empty: options have it.
        tls: for HTTPS; None: plain HTTP.
        limits: of the connections.
        streams: whether a handler is cancelled once its client is gone: it may have nothing to write for long.
        beside: runs meanwhile, as what keeps the certificate.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    gate = ConnectionLimit(limits or Limits(), tls)
    application.middlewares.append(gate.middleware)
    # A compressed body is refused as malformed: API servers send none, and a small one may be anything unpacked.
    closing = _CLOSE_TIMEOUT / 2
    runner = web.AppRunner(
        application, access_log=None, shutdown_timeout=closing, auto_decompress=False, handler_cancellation=streams
    )
    with ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in await opened(address, port, settings)]
        await runner.setup()
        assert runner.server is not None
        async with anyio.create_task_group() as tasks:
            try:
                for listener in listeners:
                    tasks.start_soon(gate.run, listener, runner.server)
                if beside is not None:
                    tasks.start_soon(beside)
                yield listeners[0].getsockname()[1]
            finally:
                with anyio.move_on_after(_CLOSE_TIMEOUT, shield=True):
                    await runner.cleanup()
                tasks.cancel_scope.cancel()


def health_check(why_not: Callable[[], str | None]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Answers kubelet: 200, or 503 with what is missing; `why_not` says that, None: nothing."""

    async def show(_: web.Request) -> web.StreamResponse:
        complaint = why_not()
        return web.Response(text=f"{complaint or 'ok'}\n", status=200 if complaint is None else 503)

    return show


async def opened(address: str, port: int, settings: str) -> list[socket.socket]:
    """Listen; arguments and errors as for `listening`."""
    try:
        return await bind(address, port)
    except OSError as error:
        raise SettingsError(_error_message(error, address, port, settings)) from error


async def bind(address: str, port: int) -> list[socket.socket]:
    """Listen on every address of a name; on all of this machine's if it is empty.

    Raises:
        OSError: one of them cannot be listened on.
    """
    addresses = await anyio.getaddrinfo(address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    with ExitStack() as failing:
        listeners = []
        for family, where in dict.fromkeys((family, where) for family, _, _, _, where in addresses):
            try:
                listener = socket.socket(family, socket.SOCK_STREAM)
            except OSError:  # the kernel has no IPv6
                continue
            listeners.append(failing.enter_context(listener))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(where)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        if not listeners:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        failing.pop_all()
    return listeners


def _error_message(error: OSError, address: str, port: int, settings: str) -> str:
    where = f"{address or 'port'}{':' if address else ' '}{port}"
    group = settings.partition(".")[0]
    at, number_of = (f"{group}.bindAddress", f"{settings}.port") if settings else ("--bind-address", "--port")
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {where}: it is in use; set {number_of} to a free one"
    # A resolver's errno is negative, and not one of the system.
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror
    advice = f"set {at} and {number_of} to an address of this machine and a port this user may open"
    return f"cannot listen on {where}: {why}; {advice}"
