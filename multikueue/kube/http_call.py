"""One HTTP request and its answer, over the pooled connections of an aiohttp session.

`ClientSession.request` does for each request what is the same for all of a server: it merges headers, looks for
cookies, and builds two objects with dozens of fields. That is more than half of the CPU time of a request. Here aiohttp
opens connections, with TLS, keeps them, and parses answers; the request is written in one piece. The first GET of a
client goes through the session: later requests connect as it did, and have its `Host`, `User-Agent` and
`Accept-Encoding`. All requests that need a proxy go through the session.

aiohttp does not document what connections are used by: `connect`, `set_response_params` and `read`. If they change,
`tests/kube/test_http_call.py` fails, so `pyproject.toml` allows no later minor version of aiohttp than was tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import aiohttp
import attrs
import yarl
from aiohttp.connector import Connection

from multikueue.kube.answers import read_body
from multikueue.kube.config import ClusterConfig
from multikueue.kube.kubeconfig_document import split_url
from multikueue.kube.requests import Request
from multikueue.kube.transport import Connector

_REPEATABLE: Final = frozenset(("GET", "PUT", "DELETE"))
"""Methods that are sent again, once, if the connection breaks: the server may have closed it while nobody used it (RFC
9112, 9.3.1). If it did the first one, the second PUT is a Conflict and the second DELETE may be a NotFound."""
_SAME: Final = ("Host", "User-Agent", "Accept-Encoding")
"""Headers that each request of a session has, and that aiohttp writes."""


@attrs.frozen
class Answer:
    """An answer that was read completely."""

    status: int
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


@attrs.frozen(eq=False)
class HttpRequests:
    """Sends the requests of one client."""

    config: ClusterConfig
    connect_deadline: float
    """Seconds to connect."""
    _plain: bool = attrs.field(init=False)
    """Whether there is no proxy, and the address has no credentials, no query, no fragment and ASCII only."""
    _prefix: str = attrs.field(init=False)
    """The path of the server's address: each request's path begins with it."""
    _limits: aiohttp.ClientTimeout = attrs.field(init=False)

    @_plain.default
    def _is_plain(self) -> bool:
        server = self.config.server
        plain = not self.config.proxy and server.isascii() and not set(server) & set("@?#")
        return plain and split_url(server) is not None

    @_prefix.default
    def _path_of_server(self) -> str:
        parts = split_url(self.config.server) if self._plain else None
        return parts.path if parts is not None else ""

    @_limits.default
    def _connect_only(self) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=None, sock_connect=self.connect_deadline)

    async def send(
        self, session: aiohttp.ClientSession, request: Request, headers: Mapping[str, str], limit: int, where: str
    ) -> Answer:
        """Send a request and read its answer.

        Args:
            session: whose connections to use.
            request: what to send.
            headers: beside those of the session.
            limit: how many bytes the answer may have, decompressed.
            where: the beginning of error messages.

        Raises:
            Unreadable: the answer has more.
            aiohttp.ClientError, HttpProcessingError, OSError, ValueError: see `ErrorMapping`.
        """
        connector = session.connector
        if not self._plain or not isinstance(connector, Connector) or connector.first is None:
            return await self._by_session(session, request, headers, limit, where)
        head = self._head(connector.first, request, headers)
        try:
            return await self._exchange(connector, connector.first, head, request, limit, where)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            if request.method not in _REPEATABLE:
                raise
        return await self._exchange(connector, connector.first, head, request, limit, where)

    async def stream(
        self, session: aiohttp.ClientSession, request: Request, headers: Mapping[str, str], idle: float | None
    ) -> aiohttp.ClientResponse:
        """Send a request and wait for the headers of its answer, which the caller reads and closes.

        Args:
            session: whose connections to use.
            request: what to send.
            headers: beside those of the session.
            idle: seconds without a byte after which reading fails; None: never.

        Raises:
            aiohttp.ClientError, OSError, ValueError: see `ErrorMapping`.
        """
        return await session.request(
            request.method,
            yarl.URL(self.config.server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.connect_deadline, sock_read=idle),
            allow_redirects=False,  # a redirect would turn a write into a read
            server_hostname=self.config.tls_server_name or None,
        )

    async def _by_session(
        self, session: aiohttp.ClientSession, request: Request, headers: Mapping[str, str], limit: int, where: str
    ) -> Answer:
        async with await self.stream(session, request, headers, None) as response:
            answer = Answer(response.status, response.headers, await read_body(response.content, limit, where))
        if isinstance(session.connector, Connector):
            session.connector.answered(response)
        return answer

    def _head(self, first: aiohttp.ClientRequest, request: Request, headers: Mapping[str, str]) -> bytes:
        """The request line and the headers."""
        lines = [f"{request.method} {self._prefix}{request.path} HTTP/1.1"]
        lines += [f"{name}: {first.headers[name]}" for name in _SAME if name in first.headers]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        text = "\r\n".join((*lines, "", ""))
        if text.count("\r") != len(lines) + 1 or text.count("\n") != len(lines) + 1 or "\0" in text:
            raise ValueError("a line break in a header")
        return text.encode()

    async def _exchange(
        self,
        connector: Connector,
        first: aiohttp.ClientRequest,
        head: bytes,
        request: Request,
        limit: int,
        where: str,
    ) -> Answer:
        try:
            connection = await connector.connect(first, [], self._limits)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error
        try:
            answer = await _exchanged(connection, head + (request.body or b""), limit, where)
        except BaseException:
            connection.close()
            raise
        transport = connection.transport
        if transport is not None and transport.get_write_buffer_size():  # answered before the body was read
            connection.close()
        else:
            connection.release()
        return answer


async def _exchanged(connection: Connection, data: bytes, limit: int, where: str) -> Answer:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None or protocol.transport.is_closing():
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
    protocol.set_response_params(read_until_eof=True)
    protocol.transport.write(data)
    while True:
        message, content = await protocol.read()
        if not 100 <= message.code < 200 or message.code == 101:  # what comes before the answer
            break
    return Answer(message.code, message.headers, await read_body(content, limit, where))
