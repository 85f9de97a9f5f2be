"""The sandbox's API server behind a link, for seeds that use the real HTTP client: the link's weather as HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest import mock

import aiohttp
import anyio.lowlevel
import attrs
import orjson
from aiohttp import web

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.objects import uid
from multikueue.errors import ApiError, Unauthorized
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.kube.client_options import ClientOptions
from multikueue.kube.http import requester as exchanging
from multikueue.sandbox.apiserver.faults import Faults
from multikueue.sandbox.apiserver.identity.access import Access
from multikueue.sandbox.apiserver.serving.handling import Handler
from multikueue.sandbox.apiserver.serving.kubelets import Kubelets
from multikueue.sandbox.apiserver.serving.representations import json_response
from multikueue.sandbox.apiserver.serving.routing import Route, route, split
from multikueue.sandbox.apiserver.serving.server import _make_request
from multikueue.sandbox.apiserver.status_errors import StatusError
from tests.simulation.hostility import Hostility, bomb, endless, odd
from tests.simulation.session import mutated
from tests.simulation.weather import UNDRAWN, Life, Link
from tests.simulation.wires import Host, MemoryConnector, Wire, tls
from tests.simulation.world import SimCluster, World

READS: Final = frozenset({"get", "list", "watch"})


@attrs.define(eq=False)
class Front:
    """Carries each request over a link to the server's own handler."""

    cluster: SimCluster
    handler: Handler
    life: Life = attrs.field(factory=Life)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer, or let the connection break as the weather wants it."""
        try:
            target = route(self.cluster.registry.cluster, request.method, split(request.path), request.query)
        except StatusError:
            return await self.handler(request)
        try:
            return await self._serve(request, target)
        except ApiError as error:
            if not error.status:
                return _reset(request)
            retry = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:g}"}
            body = {"kind": "Status", "code": error.status, "reason": error.reason, "message": str(error)}
            return json_response(body, error.status, retry)

    async def _serve(self, request: web.BaseRequest, target: Route) -> web.StreamResponse:
        link, row = self.cluster.link, target.row
        verb = "probe" if target.verb == "list" and request.query.get("limit") == "1" else target.verb
        what = f"{verb} {row.qualified}"
        await self._read(request, target)

        async def act() -> web.StreamResponse:
            if not link.accepts(request.headers.get("Authorization", "").removeprefix("Bearer ")):
                raise Unauthorized(f"{link.name}: {what}: Unauthorized", status=401)
            for hidden in link.weather.hidden:
                if (hidden.gvk.group, hidden.plural) == (row.group, row.plural):
                    link.look_for(hidden)
            if target.verb == "watch":
                await anyio.lowlevel.checkpoint()
                return web.Response()
            answer = await self.handler(request)
            return answer if what == UNDRAWN else self._hostile(target, answer)

        answer = await link.carry(what, act, self.life, writes=target.verb not in READS)
        if target.verb == "create" and isinstance(answer, web.Response) and isinstance(answer.body, bytes):
            self.cluster.answered.add(uid(orjson.loads(answer.body)))
        return await self._watch(request, what) if target.verb == "watch" else answer

    def _hostile(self, target: Route, answer: web.StreamResponse) -> web.StreamResponse:
        """What a hostile server answers in place of a page of a list."""
        if target.verb != "list" or not isinstance(answer, web.Response) or not isinstance(answer.body, bytes):
            return answer
        match self.cluster.link.weather.hostility:
            case Hostility.ODD:
                listed: Any = orjson.loads(answer.body)
                listed["items"] = [odd(obj, self.cluster.link.dice) for obj in listed["items"]]
                return json_response(orjson.dumps(listed))
            case Hostility.ENDLESS:
                return json_response(endless(answer.body))
            case Hostility.BOMB:
                return web.Response(
                    body=bomb(), headers={"Content-Encoding": "gzip", "Content-Type": "application/json"}
                )
        return answer

    async def _read(self, request: web.BaseRequest, target: Route) -> None:
        """Read the body before anything goes wrong: it may arrive when its sender is gone."""
        body = await request.read()
        created = target.verb == "create" and target.row.plural == WORKLOAD.plural
        if created and self.cluster.link.weather.mutates_copies:
            request._read_bytes = orjson.dumps(mutated(orjson.loads(body)))

    async def _watch(self, request: web.BaseRequest, what: str) -> web.StreamResponse:
        link = self.cluster.link
        if link.dice.random() < link.weather.expired_watches:
            status = StatusError(410, "Expired", f"{link.name}: drawn 410")
            return json_response(status.body(), 410)
        wire = request.transport
        assert isinstance(wire, Wire)
        assert wire.other is not None
        client = wire.other
        wire.delay = lambda: link.weather.lag + link.dice.expovariate(1 / link.weather.latency)
        client.held = lambda: link.muted_since is not None
        client.altered = lambda data: _altered(link, data)
        try:
            with link.wire(what, float("inf")):
                return await self.handler(request)
        finally:
            wire.delay, client.held, client.altered = lambda: 0.0, lambda: False, lambda data: data
        raise AssertionError("unreachable: a wire that broke raises")


def _altered(link: Link, data: bytes) -> bytes:
    """A piece of a watch's stream as a hostile server sends it: of as many bytes, for it is a chunk of HTTP."""
    if link.weather.hostility is Hostility.NO_EVENTS:
        return data.replace(b'{"type":', b'{"Type":')
    return data


def _reset(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


@attrs.define(eq=False)
class Net:
    """All servers of a world, and clients that reach them over HTTP."""

    hosts: dict[str, Host]
    _clients: dict[int, tuple[ClusterConfig, Host, Life]] = attrs.field(factory=dict)
    """By the identity of their configuration."""

    def client(self, name: str, config: ClusterConfig, host: str, life: Life, options: ClientOptions) -> KubeClient:
        """A client of a process."""
        config = attrs.evolve(config)
        self._clients[id(config)] = config, self.hosts[host], life
        return KubeClient(config, name=name, options=options)

    def open_session(
        self, config: ClusterConfig, names: Any, connections: int, user_agent: str
    ) -> aiohttp.ClientSession:
        """Takes the place of `transport.open_session`."""
        del names
        _, host, life = self._clients[id(config)]
        return aiohttp.ClientSession(
            connector=MemoryConnector(host, life, connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept": "application/json", "User-Agent": user_agent},
        )


@asynccontextmanager
async def served(world: World) -> AsyncIterator[Net]:
    """Serve a world's clusters over HTTP in memory."""
    hosts: dict[str, Host] = {}
    servers = []
    for cluster in world.clusters:
        access, faults = Access(cluster.registry, None), Faults(world.seed)
        handler = Handler(cluster.registry, access, faults, lambda: "in-memory", Kubelets(cluster.registry))
        server = web.Server(
            Front(cluster, handler), request_factory=_make_request, handler_cancellation=True, access_log=None
        )
        servers.append(server)
        host = Host(cluster.link, server)
        hosts[cluster.name] = host
        cluster.link.on_turn = _waker(host)
    net = Net(hosts)
    with (
        mock.patch.object(exchanging, "open_session", net.open_session),
        mock.patch.object(exchanging, "ssl_context", return_value=tls()),
    ):
        try:
            yield net
        finally:
            for server in servers:
                with contextlib.suppress(asyncio.CancelledError):
                    await server.shutdown(0.0)


def _waker(host: Host) -> Callable[[], None]:
    """Has what waits on a host's connections be looked at again."""

    def look() -> None:
        for wire in list(host.wires):
            if wire.is_closing():
                del host.wires[wire]
            else:
                wire.look()

    return look
