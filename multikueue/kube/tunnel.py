"""A connection to an API server on which one request is sent and then bytes go both ways, as they are.

With an answer of 101 the server speaks another protocol from then on (SPDY, WebSocket), which nobody here reads. What
it takes to reach the server, a proxy and TLS and credentials, is the client's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final, cast

import aiohttp
import anyio
import attrs
import yarl

from multikueue.errors import DeadlineExceeded, Unreachable
from multikueue.kube.credentials.credential import Credential
from multikueue.kube.http.error_mapping import ErrorMapping, where
from multikueue.kube.http.requester import Requester
from multikueue.kube.http.requests import Request

AHEAD: Final = 64 << 10
"""Bytes of an answer's head at most; twice as many are read ahead of who takes them."""
_UNAUTHORIZED: Final = b" 401 "


@attrs.frozen(eq=False)
class Tunnel:
    """What the server has answered, and the connection as it is after that."""

    head: bytes
    """Of the answer, with the empty line that ends it."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@asynccontextmanager
async def opened_tunnel(
    exchange: Requester, request: Request, headers: Iterable[tuple[str, str]]
) -> AsyncIterator[Tunnel]:
    """Send a request without a body over a connection of its own; it is closed at the end.

    Args:
        exchange: the server, and the credentials for it.
        request: method and path.
        headers: beside Host and what the credentials and the configuration demand. Names and values must have been
            checked: they are written as they are.

    Raises:
        ApiError: the server cannot be reached, or has not answered in time.
    """
    credential = await exchange.credentials.credential()
    connection, tunnel = await _answered(exchange, request, headers, credential)
    try:
        if _UNAUTHORIZED in tunnel.head.partition(b"\r\n")[0]:
            fresh = await exchange.credentials.credential(refused=credential)
            if fresh != credential:
                connection.close()
                connection, tunnel = await _answered(exchange, request, headers, fresh)
        yield tunnel
    finally:
        tunnel.writer.transport.abort()
        connection.close()


async def _answered(
    exchange: Requester, request: Request, headers: Iterable[tuple[str, str]], credential: Credential
) -> tuple[aiohttp.connector.Connection, Tunnel]:
    begin = where(exchange.name, request)
    try:
        with anyio.fail_after(exchange.options.deadline), ErrorMapping(exchange.name, request):
            connection, host = await _connected(exchange, credential)
            try:
                reader, writer = _streams(connection)
                writer.write(_head(exchange, request, [("host", host), *headers], credential))
                await writer.drain()
                return connection, Tunnel(await _head_of(reader, begin), reader, writer)
            except BaseException:
                connection.close()
                raise
    except TimeoutError as error:
        raise DeadlineExceeded(f"{begin}: no answer in time") from error


async def _head_of(reader: asyncio.StreamReader, begin: str) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise Unreachable(f"{begin}: the answer is not HTTP, or breaks off") from error


async def _connected(exchange: Requester, credential: Credential) -> tuple[aiohttp.connector.Connection, str]:
    config, session = exchange.config, exchange.sessions.watches
    tls = await exchange.sessions.tls(credential.pair)
    wanted = aiohttp.ClientRequest(
        "GET",
        yarl.URL(config.server),
        loop=asyncio.get_running_loop(),
        session=session,
        ssl=tls,
        proxy=yarl.URL(config.proxy) if config.proxy else None,
        proxy_headers=dict(config.proxy_headers) or None,
        server_hostname=config.tls_server_name or None,
    )
    assert session.connector is not None, "a session that is open has one"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=exchange.options.connect_deadline)
    return await session.connector.connect(wanted, [], timeout), wanted.headers["Host"]


def _streams(connection: aiohttp.connector.Connection) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Take the connection from aiohttp, which reads no byte of it."""
    transport = cast(asyncio.Transport, connection.transport)  # uvloop's is no instance of it
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(AHEAD, loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _head(exchange: Requester, request: Request, headers: list[tuple[str, str]], credential: Credential) -> bytes:
    fields = [*headers, *exchange.config.headers, ("Accept-Encoding", "identity"), ("Content-Length", "0")]
    if credential.token:
        fields.append(("Authorization", f"{credential.scheme} {credential.token}".strip()))
    if exchange.options.impersonate:
        fields.append(("Impersonate-User", exchange.options.impersonate))
    path = yarl.URL(exchange.config.server).raw_path.rstrip("/") + request.path
    lines = (f"{name}: {value}" for name, value in fields)
    return "\r\n".join([f"{request.method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")
