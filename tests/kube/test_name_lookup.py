"""Lookups of names that name servers know, do not know, or do not answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError, Cause, NotSent
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.http.name_lookup import NameLookup
from multikueue.kube.http.single_flight import SingleFlight
from tests.kube.scripted import eventually, job, says, serving

KEY = ObjectKey("default", "a")
HASTY = ClientOptions(connect_deadline=0.05)
MANY = 45
"""More than there are threads in any pool that clients could share."""


@attrs.define(eq=False)
class Names:
    """A name server. Lookups of names that begin with "dead" block until `answered`; others succeed."""

    answered: threading.Event = attrs.field(factory=threading.Event)
    unknown: bool = False
    asked: list[str] = attrs.field(factory=list)
    stuck: int = 0

    def getaddrinfo(self, host: str, port: int, *options: Any, **more: Any) -> list[tuple[Any, ...]]:
        """Replaces `socket.getaddrinfo`."""
        del options, more
        self.asked.append(host)
        if host.startswith("dead"):
            self.stuck += 1
            self.answered.wait()
            self.stuck -= 1
        if self.unknown:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    """A fake name server. getaddrinfo blocks, so the tests need real threads."""
    made = Names()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    try:
        yield made
    finally:
        made.answered.set()


@asynccontextmanager
async def talking_to(host: str, options: ClientOptions | None = None) -> AsyncIterator[KubeClient]:
    """A client of a server that is known by this name."""
    async with serving(says(200, job("1"))) as server:
        config = ClusterConfig(server.url.replace("127.0.0.1", host))
        async with KubeClient(config, name="w1", options=options or ClientOptions()) as client:
            yield client


async def error_of(client: KubeClient) -> ApiError:
    """What a get raises."""
    with pytest.raises(ApiError) as caught:
        await client.get(JOB, KEY)
    return caught.value


async def test_names_without_an_answer_do_not_delay_other_workers(names: Names) -> None:
    """However many there are. They do not delay the closing of their clients either."""
    async with talking_to("healthy.example") as client, SingleFlight() as flights, anyio.create_task_group() as tasks:
        for number in range(MANY):
            tasks.start_soon(NameLookup(flights, deadline=60).resolve, f"dead{number}.example")
        await eventually(lambda: names.stuck == MANY)
        with anyio.fail_after(2):
            assert await client.get(JOB, KEY) == job("1")
        began = anyio.current_time()
        tasks.cancel_scope.cancel()
    assert anyio.current_time() - began < 2
    assert names.stuck == MANY


async def test_an_unknown_name_is_reported_in_the_systems_words(names: Names) -> None:
    """Nothing was sent, and the next call asks again."""
    names.unknown = True
    async with talking_to("gone.example") as client:
        for _ in range(2):
            error = await error_of(client)
            assert type(error) is NotSent
            assert str(error) == "w1: get jobs.batch: cannot connect: Name or service not known"
            assert error.cause is Cause.HOST_NAME
        names.unknown = False
        assert await client.get(JOB, KEY) == job("1")


async def test_a_name_without_an_answer_takes_one_thread_however_often_it_is_looked_up(names: Names) -> None:
    """A worker is retried every minute for hours, by calls and by watches."""
    async with talking_to("dead.example", HASTY) as client:
        for _ in range(5):
            error = await error_of(client)
            assert type(error) is NotSent
            assert str(error) == "w1: get jobs.batch: cannot connect: dead.example was not resolved within 0.05 s"
            with pytest.raises(NotSent):
                await client.watch(JOB, print, resource_version="1")
        assert (names.stuck, len(names.asked)) == (1, 1)


async def test_an_answer_that_comes_too_late_is_for_the_next_call(names: Names) -> None:
    """Otherwise a lookup that takes longer than the deadline would never succeed."""
    async with talking_to("dead.example", ClientOptions(connect_deadline=0.5)) as client:
        await error_of(client)
        names.answered.set()
        assert await client.get(JOB, KEY) == job("1")
        assert await client.get(JOB, KEY) == job("1")
    assert names.asked == ["dead.example"]


@pytest.mark.parametrize(("unknown", "kept"), [(True, 60), (False, 0)])
async def test_a_late_answer_is_not_for_the_next_call_if_it_may_be_outdated(
    names: Names, unknown: bool, kept: float
) -> None:
    """An unknown name may be known by now, and a known name may have moved."""
    async with SingleFlight() as flights:
        lookup = NameLookup(flights, deadline=0.05, kept=kept)
        with pytest.raises(socket.gaierror, match="not resolved within"):
            await lookup.resolve("dead.example")
        names.unknown = unknown
        names.answered.set()
        await eventually(lambda: flights.under_way == 0)
        names.unknown = False
        assert [address["host"] for address in await lookup.resolve("dead.example")] == ["127.0.0.1"]
    assert names.asked == ["dead.example"] * 2


async def test_link_local_addresses_keep_their_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are useless without it."""
    index, name = socket.if_nameindex()[0]
    address = ("fe80::1", 6443, 0, index)
    addresses = [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    async with SingleFlight() as flights:
        resolved = await NameLookup(flights, deadline=5).resolve("near.example", 6443, socket.AF_UNSPEC)
    assert [(each["host"], each["port"], each["family"]) for each in resolved] == [
        (f"fe80::1%{name}", 6443, socket.AF_INET6)
    ]


async def test_many_calls_ask_once(names: Names) -> None:
    async with talking_to("healthy.example") as client, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(client.get, JOB, KEY)
    assert names.asked == ["healthy.example"]


async def test_a_client_whose_lookup_is_stuck_is_closed_at_once(names: Names) -> None:
    """Nobody waits for the thread."""
    async with talking_to("dead.example", HASTY) as client:
        await error_of(client)
        await eventually(lambda: names.stuck == 1)  # its thread may start after the deadline
        began = anyio.current_time()
    assert names.stuck == 1
    assert anyio.current_time() - began < 1


async def test_names_are_still_looked_up_while_the_client_is_being_cancelled(names: Names) -> None:
    """The Lease is released then, and that may need a new connection."""
    got = []
    with anyio.CancelScope() as scope:
        async with talking_to("healthy.example") as client:
            scope.cancel()
            with anyio.CancelScope(shield=True):
                got.append(await client.get(JOB, KEY))
    assert got == [job("1")]
    assert names.asked == ["healthy.example"]
