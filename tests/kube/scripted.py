"""A scripted web server that records its requests."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.names import Json
from multikueue.kube import AnswerLimits, ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.http.sessions import Sessions
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.protocols import RequestHook

Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.define(eq=False)
class ScriptedServer:
    """Answers each request with the next answer of its script; the last one repeats."""

    script: list[Answer]
    url: str = ""
    asked: list[web.Request] = attrs.field(factory=list)
    bodies: list[bytes] = attrs.field(factory=list)
    open_streams: int = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer."""
        assert isinstance(request, web.Request)
        answer = self.script[min(len(self.asked), len(self.script) - 1)]
        self.asked.append(request)
        self.bodies.append(await request.read())
        self.open_streams += 1
        try:
            return await answer(request)
        finally:
            self.open_streams -= 1

    @property
    def authorizations(self) -> list[str]:
        """The Authorization headers that were sent."""
        return [request.headers.get("Authorization", "") for request in self.asked]


@asynccontextmanager
async def serving(*script: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """A server for the time of a test."""
    server = ScriptedServer(list(script))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def talking(
    *script: Answer,
    tls: ssl.SSLContext | None = None,
    options: ClientOptions | None = None,
    hook: RequestHook | None = None,
    **config: Any,
) -> AsyncIterator[tuple[ScriptedServer, KubeClient]]:
    """A server and a client of it; `config` is more of the client's `ClusterConfig`."""
    options = options or ClientOptions()
    async with (
        serving(*script, tls=tls) as server,
        KubeClient(ClusterConfig(server.url, **config), name="w1", options=options, hook=hook) as client,
    ):
        yield server, client


def limited(*script: Answer, **limits: int) -> AbstractAsyncContextManager[tuple[ScriptedServer, KubeClient]]:
    """A server, and a client with limits."""
    return talking(*script, options=ClientOptions(limits=AnswerLimits(**limits)))


def says(status: int, body: Json | str, **headers: str) -> Answer:
    """One plain answer; `Retry_After="1"` sets the header Retry-After."""
    raw = orjson.dumps(body) if isinstance(body, dict) else body.encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(status=status, body=raw, headers=sent)

    return answer


def refuses(status: int, reason: str = "", message: str = "no", **headers: str) -> Answer:
    """A Kubernetes Status."""
    return says(status, {"kind": "Status", "code": status, "reason": reason, "message": message}, **headers)


def only_for(token: str, answer: Answer) -> Answer:
    """This answer, for whoever bears the token."""

    async def looks(request: web.Request) -> web.StreamResponse:
        good = request.headers["Authorization"] == f"Bearer {token}"
        return await (answer if good else refuses(401))(request)

    return looks


def streams(*lines: Json | bytes, then: Answer | None = None) -> Answer:
    """A watch that sends these lines, and then ends or goes on as `then`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line if isinstance(line, bytes) else orjson.dumps(line) + b"\n")
        if then is not None:
            await then(request)
        return response

    return answer


async def resets(request: web.Request) -> web.StreamResponse:
    """The connection breaks."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hangs(request: web.Request) -> web.StreamResponse:
    """It sends nothing more until the client disconnects."""
    del request
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


def sessions_of(session: Any) -> Sessions:
    """Sessions of which both are this one."""
    return Sessions(ClusterConfig("http://w"), session, session, SingleFlight(), 0, ssl.create_default_context())


async def eventually(holds: Callable[[], bool], within: float = 5.0) -> None:
    """Wait until something holds: the end of a real connection takes time."""
    for _ in range(int(within / 0.005)):
        if holds():
            return
        await anyio.sleep(0.005)
    raise AssertionError("it never held")


def event(kind: str, version: str, name: str = "a", **metadata: object) -> Json:
    """One line of a watch of Jobs."""
    return {"type": kind, "object": job(version, name, **metadata)}


def job(version: str, name: str = "a", **metadata: object) -> Json:
    """A Job with the metadata that informers read."""
    named = {"name": name, "namespace": "default", "resourceVersion": version, **metadata}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": named}
