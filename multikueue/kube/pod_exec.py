"""Runs a command in a container, over the WebSocket client of kubernetes-asyncio."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import anyio
import attrs
import orjson

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.outside_text import one_line
from multikueue.errors import DeadlineExceeded, Invalid, Unreachable
from multikueue.kube.http.error_mapping import MAX_MESSAGE, ErrorMapping, decoded, where
from multikueue.kube.http.requester import Requester
from multikueue.kube.http.requests import Request

HEARTBEAT: Final = 20.0
"""Seconds between pings. A server that answers none for half as long is gone: a command may say nothing for hours."""
PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""v5 (Kubernetes 1.30) can say that the input has ended."""
_STDIN, _STDOUT, _STDERR, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255


@attrs.frozen
class ExecRequest:
    """What to run, and where."""

    pod: ObjectKey
    container: str
    command: tuple[str, ...]
    stdin: bool = False
    """Whether it has input."""
    tty: bool = False
    """Whether it has a terminal. Then there is one output."""


@attrs.frozen(eq=False)
class Execution:
    """A command that runs in a container."""

    request: Request
    cluster: str
    _socket: aiohttp.ClientWebSocketResponse = attrs.field(repr=False)

    async def write(self, data: bytes) -> None:
        """Send some of its input; nothing: the input has ended, where the server can be told."""
        if data:
            await self._send(bytes([_STDIN]) + data)
        elif self._socket.protocol == PROTOCOLS[0]:
            await self._send(bytes([_CLOSE, _STDIN]))

    async def resize(self, columns: int, lines: int) -> None:
        """The size of its terminal."""
        await self._send(bytes([_RESIZE]) + orjson.dumps({"Width": columns, "Height": lines}))

    async def _send(self, data: bytes) -> None:
        with ErrorMapping(self.cluster, self.request):
            await self._socket.send_bytes(data)

    async def wait(self, on_output: Callable[[bytes, bool], None]) -> int:
        """Its exit code, once it has ended.

        Args:
            on_output: gets what it writes, and whether that is an error output.

        Raises:
            Invalid: it could not be started.
            ApiError: the connection broke.
        """
        begin = where(self.cluster, self.request)
        while True:
            with ErrorMapping(self.cluster, self.request):
                message = await self._socket.receive()
            if message.type not in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
                raise Unreachable(f"{begin}: the connection broke; the command may still run")
            data = message.data.encode() if isinstance(message.data, str) else message.data
            channel, rest = data[:1], data[1:]
            if channel in (bytes([_STDOUT]), bytes([_STDERR])) and rest:
                on_output(rest, channel[0] == _STDERR)
            elif channel == bytes([_STATUS]):
                return _exit_code(rest, begin)


def _exit_code(status: bytes, begin: str) -> int:
    """Raises as `Execution.wait`."""
    from kubernetes_asyncio.stream import WsApiClient

    try:
        return int(WsApiClient.parse_error_data(status))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        message = one_line(str((decoded(status) or {}).get("message") or "")[:MAX_MESSAGE])
        raise Invalid(f"{begin}: {message or 'it could not be started'}") from None


@attrs.frozen(eq=False)
class _Session:
    """A session of ours in the place of kubernetes-asyncio's, whose WebSockets know neither proxy nor server name."""

    exchange: Requester
    tls: ssl.SSLContext

    def ws_connect(self, url: str, **given: Any) -> Any:
        """See `aiohttp.ClientSession.ws_connect`."""
        config = self.exchange.config
        return self.exchange.sessions.watches.ws_connect(
            url,
            protocols=PROTOCOLS,
            ssl=self.tls,
            server_hostname=config.tls_server_name or None,
            proxy_headers=dict(config.proxy_headers) or None,
            **given,
        )


@asynccontextmanager
async def execution(exchange: Requester, asked: ExecRequest) -> AsyncIterator[Execution]:
    """Start a command; its connection is closed at the end.

    Raises:
        Forbidden: the identity may not `create` and `get` pods/exec.
        ApiError: it could not be started.
    """
    from kubernetes_asyncio.client import Configuration, CoreV1Api
    from kubernetes_asyncio.stream import WsApiClient

    request = Request("create", attrs.evolve(POD, plural="pods/exec"), "GET", "")
    config, name = exchange.config, exchange.name
    with anyio.fail_after(exchange.options.deadline):
        credential = await exchange.credentials.credential()
        tls = await exchange.sessions.tls(credential.pair)
    key = f"{credential.scheme} {credential.token}".strip() if credential.token else ""
    api = WsApiClient(
        Configuration(host=config.server, api_key={"BearerToken": key} if key else {}), heartbeat=HEARTBEAT
    )
    if exchange.options.impersonate:
        api.set_default_header("Impersonate-User", exchange.options.impersonate)
    await api.close()  # its session knows neither the server's certificate nor ours
    client: Any = api.rest_client
    client.pool_manager = _Session(exchange, tls)
    core: Any = CoreV1Api(api)
    connecting = await core.connect_get_namespaced_pod_exec(
        asked.pod.name,
        asked.pod.namespace,
        command=list(asked.command),
        container=asked.container,
        stdin=asked.stdin,
        stdout=True,
        stderr=not asked.tty,
        tty=asked.tty,
        _preload_content=False,
    )
    try:
        with anyio.fail_after(exchange.options.deadline), ErrorMapping(name, request):
            socket = await connecting
    except TimeoutError as error:
        raise DeadlineExceeded(f"{where(name, request)}: not accepted in time") from error
    try:
        yield Execution(request, name, socket)
    finally:
        with anyio.move_on_after(1.0, shield=True):
            await socket.close()
