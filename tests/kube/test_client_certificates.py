"""Client certificates from exec plugins: they are shown to the server, and a new one needs new connections."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import anyio
import anyio.from_thread
import attrs
import pytest
import trustme
from aiohttp import web

from multikueue.core.machinery.backoff import CONNECTION_BACKOFF, WATCH_BACKOFF
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Unauthorized, Unreachable
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.credential import Credential, KeyPair
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.kube.http.sessions import SETTLED, Sessions
from multikueue.kube.http.single_flight import SingleFlight
from multikueue.kube.http.transport import ssl_context
from tests.kube.scripted import Answer, ScriptedServer, event, eventually, hangs, job, refuses, says, serving, streams

KEY = ObjectKey("default", "a")
CLIENTS = trustme.CA()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches and unused connections end soon: over real connections there is no virtual clock."""
    monkeypatch.setattr("multikueue.kube.http.sessions.SETTLED", 0.0)


@pytest.fixture
def _hardly_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that nobody uses closes almost at once."""
    monkeypatch.setattr("multikueue.kube.http.transport.POOLED_FOR", 0.2)


def pair(name: str) -> KeyPair:
    """A client certificate."""
    mine = CLIENTS.issue_cert(f"{name}@example.com", common_name=name)
    return KeyPair(mine.cert_chain_pems[0].bytes().decode(), mine.private_key_pem.bytes().decode())


ONE, TWO, THREE = pair("one"), pair("two"), pair("three")


def shown(request: web.Request) -> str:
    """The name in the certificate that came with a request."""
    assert request.transport is not None
    certificate: dict[str, Any] = request.transport.get_extra_info("peercert")
    return str(dict(part for names in certificate["subject"] for part in names)["commonName"])


@attrs.define(eq=False)
class Plugin:
    """Prints these, one after the other; the last again and again."""

    credentials: list[Credential]
    runs: int = 0
    shown: list[str] = attrs.field(factory=list)
    """The names in the certificates that came with requests."""

    async def run(self, _: ExecPlugin) -> Credential:
        self.runs += 1
        return self.credentials[min(self.runs, len(self.credentials)) - 1]


@asynccontextmanager
async def talking(plugin: Plugin, *script: Answer) -> AsyncIterator[tuple[ScriptedServer, KubeClient]]:
    """A server that wants client certificates, and a client that gets them from a plugin."""
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    CLIENTS.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED

    def noting(answer: Answer) -> Answer:
        async def noted(request: web.Request) -> web.StreamResponse:
            plugin.shown.append(shown(request))
            return await answer(request)

        return noted

    async with serving(*map(noting, script), tls=tls) as server:
        config = ClusterConfig(
            server.url, ca_pem=authority.cert_pem.bytes().decode(), exec_plugin=ExecPlugin("/plugin")
        )
        plugins = Authenticators(run=plugin.run)
        async with KubeClient(config, name="w1", plugins=plugins) as client:
            yield server, client


@attrs.define(eq=False)
class Creation:
    """A call that is under way until the test lets it end."""

    begun: anyio.Event = attrs.field(factory=anyio.Event)
    go_on: anyio.Event = attrs.field(factory=anyio.Event)
    made: list[object] = attrs.field(factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.begun.set()
        await self.go_on.wait()
        return await says(200, job("1"))(request)

    async def call(self, client: KubeClient) -> None:
        self.made.append(await client.create(JOB, job("1")))


def gone(request: web.Request) -> bool:
    """Whether the connection that a request came by is closed."""
    return request.transport is None or request.transport.is_closing()


@pytest.mark.parametrize("token", ["", "t"])
async def test_a_certificate_is_shown_with_or_without_a_token(token: str) -> None:
    """On one connection, and with one run of the plugin."""
    plugin = Plugin([Credential(token, ONE)])
    async with talking(plugin, says(200, job("1"))) as (server, client):
        for _ in range(3):
            assert await client.get(JOB, KEY) == job("1")
        assert plugin.shown == ["one"] * 3
        assert len({request.transport for request in server.asked}) == 1
        assert server.authorizations == [f"Bearer {token}" if token else ""] * 3
    assert plugin.runs == 1


@pytest.mark.usefixtures("_hardly_pooled")
async def test_a_new_certificate_closes_the_connections_of_the_old_one() -> None:
    """The request that was refused is repeated once, over a new connection."""
    plugin = Plugin([Credential("", ONE), Credential("", TWO)])
    script = says(200, job("1")), refuses(401), says(200, job("2"))
    async with talking(plugin, *script) as (server, client):
        await client.get(JOB, KEY)
        assert await client.get(JOB, KEY) == job("2")
        await eventually(lambda: gone(server.asked[0]))
        await client.get(JOB, KEY)
        assert plugin.shown == ["one", "one", "two", "two"]


async def test_a_certificate_that_is_refused_is_not_asked_for_again_and_again() -> None:
    """The same one again makes no new connection."""
    plugin = Plugin([Credential("", ONE)])
    async with talking(plugin, refuses(401)) as (server, client):
        for _ in range(3):
            with pytest.raises(Unauthorized, match="no"):
                await client.get(JOB, KEY)
        assert len({request.transport for request in server.asked}) == 1
    assert plugin.runs == 2


async def test_a_watch_with_the_old_certificate_ends_and_begins_again_with_the_new_one() -> None:
    plugin = Plugin([Credential("", ONE), Credential("", TWO)])
    opened, ends = anyio.Event(), list[str]()

    async def watch(client: KubeClient) -> None:
        try:
            await client.watch(JOB, lambda _: opened.set(), resource_version="1")
        except Unreachable as error:
            ends.append(str(error))

    script = streams(event("ADDED", "2"), then=hangs), refuses(401), says(200, job("1")), streams(event("ADDED", "3"))
    async with talking(plugin, *script) as (_, client):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, client)
            await opened.wait()
            assert await client.get(JOB, KEY) == job("1")
        assert len(ends) == 1
        await watch(client)
        assert [plugin.shown[-1], len(ends)] == ["two", 1]


@pytest.mark.usefixtures("_hardly_pooled")
async def test_a_call_that_is_under_way_ends_with_the_old_certificate() -> None:
    """Nobody knows what a write came to that is cut off."""
    plugin = Plugin([Credential("", ONE), Credential("", TWO)])
    creation = Creation()
    async with talking(plugin, creation.answer, refuses(401), says(200, job("2"))) as (server, client):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(creation.call, client)
            await creation.begun.wait()
            assert await client.get(JOB, KEY) == job("2")
            assert not gone(server.asked[0])
            creation.go_on.set()
        assert creation.made == [job("1")]
        await eventually(lambda: gone(server.asked[0]))


async def test_a_client_that_is_closed_meanwhile_closes_the_old_connections_too() -> None:
    """It does not wait for what is under way. A session that is left open would warn, which fails a test."""
    plugin = Plugin([Credential("", ONE), Credential("", TWO)])
    begun = anyio.Event()

    async def begins(request: web.Request) -> web.StreamResponse:
        begun.set()
        return await hangs(request)

    async def create(client: KubeClient) -> None:
        with contextlib.suppress(Unreachable):
            await client.create(JOB, job("1"))

    async with anyio.create_task_group() as tasks:
        async with talking(plugin, begins, refuses(401), says(200, job("2"))) as (server, client):
            tasks.start_soon(create, client)
            await begun.wait()
            await client.get(JOB, KEY)
            assert not gone(server.asked[0])
        assert gone(server.asked[0])
        tasks.cancel_scope.cancel()


async def test_a_client_that_is_closed_while_a_certificate_is_loaded_opens_nothing() -> None:
    plugin = Plugin([Credential("", ONE)])
    loading, go_on = anyio.Event(), threading.Event()

    def slow(*given: Any) -> ssl.SSLContext:
        anyio.from_thread.run_sync(loading.set)
        go_on.wait(20)
        return ssl_context(*given)

    async def get(client: KubeClient) -> None:
        with contextlib.suppress(Unreachable):
            await client.get(JOB, KEY)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("multikueue.kube.http.sessions.ssl_context", slow)
        async with anyio.create_task_group() as tasks:
            async with talking(plugin, says(200, job("1"))) as (server, client):
                tasks.start_soon(get, client)
                await loading.wait()
            go_on.set()
        assert not server.asked


@pytest.mark.usefixtures("_hardly_pooled")
async def test_two_new_certificates_in_a_row_close_both_earlier_ones() -> None:
    """Also while calls with the first are still under way."""
    plugin = Plugin([Credential("", ONE), Credential("", TWO), Credential("", THREE)])
    creation = Creation()
    script = creation.answer, refuses(401), says(200, job("2")), refuses(401), says(200, job("3"))
    async with talking(plugin, *script) as (server, client):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(creation.call, client)
            await creation.begun.wait()
            assert await client.get(JOB, KEY) == job("2")
            plugins = client.plugins.get(ExecPlugin("/plugin"))
            plugins._pause_until = 0.0
            assert await client.get(JOB, KEY) == job("3")
            creation.go_on.set()
        assert creation.made == [job("1")]
        await eventually(lambda: all(map(gone, server.asked[:4])))
        assert plugin.shown == ["one", "one", "two", "two", "three"]


async def test_certificates_are_loaded_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's authorities take 30 ms."""
    threads: list[threading.Thread] = []

    def recording(*given: Any) -> ssl.SSLContext:
        threads.append(threading.current_thread())
        return ssl_context(*given)

    monkeypatch.setattr("multikueue.kube.http.sessions.ssl_context", recording)
    async with talking(Plugin([Credential("", ONE)]), says(200, job("1"))) as (_, client):
        await client.get(JOB, KEY)
    assert threads
    assert threading.current_thread() not in threads


@attrs.define(eq=False)
class Stream:
    """A response of which only the end shows."""

    ended_at: float = 0.0

    def close(self) -> None:
        self.ended_at = self.ended_at or anyio.current_time()


@pytest.mark.looptime
async def test_a_watch_goes_on_until_its_end_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that opens it may be the one that has the certificate renewed. One that is only accepted then ends,
    too."""
    monkeypatch.setattr("multikueue.kube.http.sessions.SETTLED", SETTLED)
    assert max(WATCH_BACKOFF.reset_after, CONNECTION_BACKOFF.reset_after) < SETTLED
    monkeypatch.setattr("multikueue.kube.http.sessions.ssl_context", lambda *_: ssl.create_default_context())
    first, late, second = (cast(Any, Stream()) for _ in range(3))
    began = anyio.current_time()
    open_: Any = SimpleNamespace(closed=False)
    async with SingleFlight() as flights:
        sessions = Sessions(ClusterConfig("https://w1"), open_, open_, flights, 30, ssl.create_default_context())
        earlier = await sessions.tls(None)
        sessions.began(first, earlier)
        sessions.began(second, await sessions.tls(ONE))
        await anyio.sleep(SETTLED + 1)
        sessions.began(late, earlier)
        await anyio.sleep(60)
    assert [stream.ended_at - began for stream in (first, late)] == pytest.approx([SETTLED, SETTLED + 30], abs=0.1)
    assert second.ended_at == 0.0
