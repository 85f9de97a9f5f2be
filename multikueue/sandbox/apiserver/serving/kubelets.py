"""What the server asks kubelets for: logs, streams into containers, and `nodes/NAME/proxy`.

It shows its client certificate, and does not look at theirs, as a kube-apiserver without
`--kubelet-certificate-authority`. A connection that is taken over is piped as it is, in both directions: SPDY, and
WebSockets up to `v4.channel.k8s.io`. Newer ones, which a kube-apiserver translates to SPDY, are refused with a 400, and
kubectl asks again with SPDY; where the Node declares `ExtendWebSocketsToKubelet` they are piped, too.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import parse_qs, quote

import aiohttp
import anyio
import attrs
from aiohttp import web
from yarl import URL

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver.serving.locations import STREAMS, Kubelet, chosen_container, log_options, log_path
from multikueue.sandbox.apiserver.serving.routing import Route
from multikueue.sandbox.apiserver.status_errors import StatusError, bad_request, server_response
from multikueue.sandbox.apiserver.verbs.registry import Registry

_DIAL_SECONDS: Final = 10.0
_REFUSAL_SECONDS: Final = 10.0
"""How long a refusal of a stream may take to be read."""
_MAX_HEAD: Final = 64 * 1024
_MAX_WORDS: Final = 50_000
"""Bytes of a refusal that are read, as by a real one."""
_OURS: Final = ("authorization", "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-")
_HOPS: Final = ("connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "content-length")
_NEWER: Final = ("v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io")
"""Subprotocols of WebSockets that a kubelet need not know."""


@attrs.define(eq=False)
class Kubelets:
    """The kubelets of a cluster's nodes, as its API server sees them."""

    _registry: Registry
    tls: ssl.SSLContext | None = None
    """With the server's client certificate; None while it serves without TLS: then it has none to show."""

    def of_pod(self, pod: Json) -> Kubelet | None:
        """Where to ask for a pod; None if its Node is not there.

        Raises:
            StatusError: 500, the Node says no address.
        """
        entry = self._registry.cluster.store.get(("", "nodes"), ("", dig(pod, "spec", "nodeName")))
        return Kubelet.of(entry.obj) if entry else None

    async def log(self, request: web.BaseRequest, pod: Json, kubelet: Kubelet) -> web.StreamResponse:
        """Pass a log on as it comes, until either side ends.

        Raises:
            StatusError: the kubelet cannot be reached, or refuses.
            OSError: the client is gone.
        """
        name = pod["metadata"]["name"]
        container = chosen_container(pod, request.query.get("container", ""))
        target = log_path(pod, container, log_options(name, request.query))
        async with self._session() as session:
            try:
                answer = await session.get(_url(kubelet, target), headers={"Accept-Encoding": "identity"})
            except (aiohttp.ClientError, OSError) as error:
                raise StatusError(500, "", f'Get "{_url(kubelet, target)}": {_dialed(kubelet, error)}') from error
            async with answer:
                if not 200 <= answer.status <= 206:
                    raise server_response(answer.status, "pods/log", name, await _words(answer))
                response = web.StreamResponse(
                    headers={"Content-Type": answer.headers.get("Content-Type", "text/plain")}
                )
                return await _passed_on(request, response, answer)

    async def proxy(self, request: web.BaseRequest, asked: Route) -> web.StreamResponse:
        """Ask a node's kubelet for a path, with any method.

        Raises:
            StatusError: the kubelet cannot be reached, or the Node says no address.
            OSError: the client is gone.
        """
        path = asked.path + ("/" if request.path.endswith("/") else "")
        if not path:
            return web.Response(status=301, headers={"Location": request.path + "/"})
        kubelet = Kubelet.of(self._registry.get(asked.row, None, asked.name))
        query = request.rel_url.raw_query_string
        target = quote(path) + (f"?{query}" if query else "")
        if _wants_upgrade(request):
            return await self._piped(request, kubelet, target)
        headers = [*_without_hops(_headers(request)), ("X-Forwarded-Uri", request.path)]
        async with self._session() as session:
            try:
                answer = await session.request(
                    request.method,
                    _url(kubelet, target),
                    data=await request.read() or None,
                    headers=headers,
                    allow_redirects=False,
                )
            except (aiohttp.ClientError, OSError) as error:
                why = f"error trying to reach service: {_dialed(kubelet, error)}"
                raise StatusError(503, "ServiceUnavailable", why) from error
            async with answer:
                response = web.StreamResponse(status=answer.status)
                for name, text in _without_hops(answer.headers.items()):
                    response.headers.add(name, text)
                return await _passed_on(request, response, answer)

    async def stream(self, request: web.BaseRequest, pod: Json, subresource: str) -> web.StreamResponse:
        """Give a client's connection to the kubelet of a pod, and take nothing more from it.

        Raises:
            StatusError: the pod has no node, the container is not clear, the kubelet cannot be reached, or does not
                take the connection over.
            OSError: the client is gone.
        """
        name = pod["metadata"]["name"]
        if subresource != "portforward":
            chosen_container(pod, request.query.get("container", ""))
        node = dig(pod, "spec", "nodeName")
        if not node:
            raise bad_request(f"pod {name} does not have a host assigned")
        kubelet = self.of_pod(pod)
        if kubelet is None:
            raise bad_request(f"node {node} is not there: its containers are played, and there is nothing to enter")
        target = STREAMS[subresource](pod, parse_qs(request.query_string, keep_blank_values=True))
        if not _wants_upgrade(request):
            raise bad_request("Upgrade request required")
        offered = request.headers.get("Sec-WebSocket-Protocol", "")
        if any(newer in offered for newer in _NEWER[kubelet.takes_v5 :]):
            raise bad_request(f"the sandbox does not translate WebSockets of {offered} to SPDY")
        return await self._piped(request, kubelet, target)

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.tls or untrusting(), force_close=True)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_DIAL_SECONDS)
        return aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)

    async def _piped(self, request: web.BaseRequest, kubelet: Kubelet, target: str) -> web.StreamResponse:
        with _failing(kubelet), anyio.fail_after(_DIAL_SECONDS):
            reader, writer = await asyncio.open_connection(
                kubelet.host, kubelet.port, ssl=self.tls or untrusting(), limit=_MAX_HEAD
            )
        try:
            lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in _headers(request))]
            with _failing(kubelet):
                writer.write("\r\n".join([*lines, "", ""]).encode())
                head = await reader.readuntil(b"\r\n\r\n")
            code = int(head.split(b" ", 2)[1])
            if code < 400 and code != 101:
                raise StatusError(500, "", f"invalid upgrade response: status code {code}")
            return await _taken_over(request, head, reader, writer, None if code == 101 else _REFUSAL_SECONDS)
        finally:
            writer.transport.abort()


def untrusting() -> ssl.SSLContext:
    """TLS towards servers whose certificates are not looked at, so none of the system's authorities are read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _url(kubelet: Kubelet, target: str) -> URL:
    return URL(f"https://{kubelet.address}{target}", encoded=True)


def _wants_upgrade(request: web.BaseRequest) -> bool:
    return "upgrade" in request.headers.get("Connection", "").lower()


def _headers(request: web.BaseRequest) -> Iterator[tuple[str, str]]:
    """A client's headers as a kubelet gets them: without what was for the API server alone."""
    yield from ((name, text) for name, text in request.headers.items() if not name.lower().startswith(_OURS))
    yield "X-Forwarded-For", request.remote or ""


def _without_hops(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Headers that are not of one connection alone."""
    return ((name, text) for name, text in headers if name.lower() not in _HOPS)


async def _words(answer: aiohttp.ClientResponse) -> str:
    with suppress(aiohttp.ClientError):
        return (await answer.content.read(_MAX_WORDS)).decode(errors="replace")
    return ""


@contextmanager
def _failing(kubelet: Kubelet) -> Iterator[None]:
    """What goes wrong on the way to a kubelet, as a Status."""
    try:
        yield
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise StatusError(500, "", f"error dialing backend: {_dialed(kubelet, error)}") from error


def _dialed(kubelet: Kubelet, error: Exception) -> str:
    """Why a kubelet could not be asked, as Go says it."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    match cause:
        case socket.gaierror():
            return f"dial tcp: lookup {kubelet.host}: no such host"
        case ssl.SSLError():
            return f"remote error: tls: {(cause.reason or 'handshake failure').lower().replace('_', ' ')}"
        case TimeoutError():
            return f"dial tcp {kubelet.address}: i/o timeout"
        case OSError(errno=int(number)):
            return f"dial tcp {kubelet.address}: connect: {os.strerror(number).lower()}"
    return "EOF"


async def _taken_over(
    request: web.BaseRequest,
    head: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    seconds: float | None,
) -> web.StreamResponse:
    """Pipe between a client and a kubelet that has answered with `head`, until one of them ends or time is up."""
    transport = request.transport
    if transport is None:
        raise OSError("the client is gone")
    ours = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(ours)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    theirs = asyncio.StreamWriter(transport, protocol, ours, asyncio.get_running_loop())
    try:
        theirs.write(head)
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as tasks:
                for source, sink in ((ours, writer), (reader, theirs)):
                    tasks.start_soon(_copied, source, sink, tasks.cancel_scope)
    finally:
        theirs.close()  # what is written is sent
        request.protocol.connection_lost(None)  # it does not hear of the end any more
    return web.Response()


async def _copied(source: asyncio.StreamReader, sink: asyncio.StreamWriter, both: anyio.CancelScope) -> None:
    try:
        while data := await source.read(64 * 1024):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass  # one side is gone
    both.cancel()


async def _passed_on(
    request: web.BaseRequest, response: web.StreamResponse, answer: aiohttp.ClientResponse
) -> web.StreamResponse:
    await response.prepare(request)
    try:
        async for data in answer.content.iter_any():
            await response.write(data)
    except aiohttp.ClientError:
        pass  # a kubelet that breaks off ends the answer: clients cannot tell it from an end
    await response.write_eof()
    return response
