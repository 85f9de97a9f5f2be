"""Plays the API server of a worker: pods, their logs, and WebSockets into their containers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs
import trustme
from aiohttp import WSMsgType, web

from multikueue.core.model.names import Json
from multikueue.kube import ClusterConfig, KubeClient
from tests.controlplane.credentials import kubeconfig
from tests.mirrors.endpoint.spdy import SPDY, capitals, forward, run

TOKEN: Final = "worker-token"
HOST: Final = "127.0.0.1"


def status(code: int, message: str) -> web.Response:
    """A refusal as API servers answer it."""
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


@attrs.define(eq=False)
class PlayedWorker:
    """What it has, and what it was asked. It also answers as the kubelet of a real API server."""

    authority: trustme.CA = attrs.field(factory=trustme.CA)
    uids: dict[str, str] = attrs.field(factory=dict)
    """By NAMESPACE/NAME."""
    log: bytes = b"one\ntwo\nthree\n"
    more: anyio.Event | None = None
    """With it a log that is followed does not end before it is set."""
    breaks_off: bool = False
    """What comes then is no more of the log, but the end of the connection."""
    resets: bool = False
    """With it such an end is a reset."""
    refusal: tuple[int, str] | None = None
    """Of logs and of entering."""
    on_open: list[tuple[str, str]] = attrs.field(factory=list)
    """Pods that have another UID once a stream is open."""
    hung: dict[str, anyio.Event] = attrs.field(factory=dict)
    """Namespaces whose pods are on a node that does not answer before it is set."""
    asked: list[web.BaseRequest] = attrs.field(factory=list)
    code: int = 0
    """With which commands end."""
    disk: Path | None = None
    """Where `tar` and `test` are run, by which files are copied; None: nowhere."""
    port: int = 0

    def kubeconfig(self) -> Json:
        """For this worker."""
        ca = self.authority.cert_pem.bytes().decode()
        return kubeconfig("worker", url=f"https://{HOST}:{self.port}", ca_pem=ca, user="us", token=TOKEN)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[PlayedWorker]:
        """Serve while the context lasts."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.authority.issue_cert(HOST).configure_cert(context)
        server = web.Server(self._answer)
        runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "0.0.0.0", 0, ssl_context=context)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            with anyio.move_on_after(2, shield=True):
                await runner.cleanup()

    def streams(self) -> list[web.BaseRequest]:
        """What was asked for beside pods."""
        return [request for request in self.asked if len(request.path.split("/")) > 7]

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        if request.path.startswith("/containerLogs/"):
            return await self._log(request)
        if request.path.startswith("/exec/"):
            return await self._enter(request)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return status(401, "Unauthorized")
        parts = request.path.split("/")
        namespace, pod, what = parts[4], parts[6], "/".join(parts[7:])
        uid = self.uids.get(f"{namespace}/{pod}")
        if uid is None:
            return status(404, f'pods "{pod}" not found')
        if not what:
            return web.json_response({"kind": "Pod", "metadata": {"namespace": namespace, "name": pod, "uid": uid}})
        if namespace in self.hung:
            await self.hung[namespace].wait()
        if self.refusal is not None:
            return status(*self.refusal)
        for name, other in self.on_open:
            self.uids[name] = other
        return await (self._log(request) if what == "log" else self._enter(request))

    async def _log(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain", "Audit-Id": "of the worker"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        await response.write(self.log)
        if self.more is not None and request.query.get("follow"):
            await self.more.wait()
            if self.breaks_off:
                self._break_off(request)
            await response.write(b"more\n")
        await response.write_eof()
        return response

    def _break_off(self, request: web.BaseRequest) -> None:
        assert request.transport is not None
        if self.resets:
            linger = struct.pack("ii", 1, 0)
            request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        request.transport.abort()

    async def _enter(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return await self._spdy(request)
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        async for message in socket:
            if message.type == WSMsgType.BINARY and message.data[:1] == b"\0":
                await socket.send_bytes(b"\1" + message.data[1:].upper())
            if message.data[1:] == b"exit":
                await socket.send_bytes(b'\3{"status": "Success"}')
                break
        await socket.close()
        return socket

    async def _spdy(self, request: web.BaseRequest) -> web.StreamResponse:
        """Take the connection from aiohttp, and speak SPDY on it."""
        transport = request.transport
        assert transport is not None
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        version = request.headers.getall("X-Stream-Protocol-Version", ["v4.channel.k8s.io"])[0].split(",")[0]
        writer.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
            f"Upgrade: {SPDY}\r\nX-Stream-Protocol-Version: {version}\r\n\r\n".encode()
        )
        try:
            command = request.query.getall("command", [])
            if request.path.endswith("/portforward"):
                await forward(reader, writer)
            elif self.disk is not None and command[:1] in (["tar"], ["test"]):
                await run(reader, writer, _streams(request), command, self.disk)
            else:
                await capitals(reader, writer, _streams(request), self.code)
        finally:
            transport.abort()
        return web.Response()


def _streams(request: web.BaseRequest) -> set[str]:
    """Of a command, by the API's names or the kubelet's."""
    names = {"stdin": "stdin", "stdout": "stdout", "stderr": "stderr"}
    names |= {"input": "stdin", "output": "stdout", "error": "stderr"}
    return {stream for name, stream in names.items() if name in request.query}


@attrs.frozen
class PlayedWorkers:
    """How the endpoint reaches them."""

    configs: dict[str, ClusterConfig]

    @asynccontextmanager
    async def open(self, worker: str) -> AsyncIterator[KubeClient]:
        """A client of one."""
        async with KubeClient(self.configs[worker], name=worker) as client:
            yield client


def outer_address() -> str:
    """An address of this machine that is no loopback: API servers pass on nothing to one through `nodes/proxy`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        return str(probe.getsockname()[0])
