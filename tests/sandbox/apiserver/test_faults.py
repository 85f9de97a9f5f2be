"""Fault rules, over HTTP where the connection itself is what fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import anyio
import pytest

from multikueue.sandbox.apiserver import (
    ApiServer,
    CutWatch,
    Delay,
    ExpireWatch,
    Faults,
    Hang,
    Match,
    Refuse,
    Reset,
    SilenceWatch,
)
from multikueue.sandbox.apiserver.faults import Call, Effect, Side
from multikueue.sandbox.apiserver.verbs.listing import ListOptions
from tests.sandbox.apiserver.objects import CONFIG_MAPS, config_map

PATH = "/api/v1/namespaces/default/configmaps"
CALL = Call("me", "get", "jobs.batch", "default", "j")


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[ApiServer, aiohttp.ClientSession]]:
    """A server without TLS and a client of it."""
    async with (
        ApiServer("faulty", tls=False) as server,
        aiohttp.ClientSession(server.url, timeout=aiohttp.ClientTimeout(total=10)) as session,
    ):
        yield server, session


@pytest.mark.parametrize(
    "match",
    [
        Match(),
        Match(verbs=("get", "list")),
        Match(resource="jobs"),
        Match(resource="jobs.batch"),
        Match(namespace="default", name="j", user="me"),
    ],
)
def test_a_rule_hits_what_it_names(match: Match) -> None:
    """An empty field means any."""
    assert match.fits(CALL)


@pytest.mark.parametrize(
    "match", [Match(verbs=("list",)), Match(resource="pods"), Match(user="you"), Match(subresource="status")]
)
def test_a_rule_spares_what_it_does_not_name(match: Match) -> None:
    """Every field that is given has to fit."""
    assert not match.fits(CALL)


def test_a_rule_is_spent_after_its_times() -> None:
    """`times` counts hits."""
    faults = Faults()
    rule = faults.add(Reset(), times=2)
    assert [bool(faults.match(CALL)) for _ in range(3)] == [True, True, False]
    assert rule.hits == 2


def test_chance_repeats_from_its_seed() -> None:
    """A failing run can be run again."""

    def hits(seed: int) -> list[bool]:
        faults = Faults(seed)
        faults.add(Reset(), probability=0.5)
        return [bool(faults.match(CALL)) for _ in range(50)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 5 < sum(hits(1)) < 45


async def test_a_lost_request_has_no_effect_and_a_lost_reply_has() -> None:
    """The two look the same to the client; that is the point."""
    async with serving() as (server, session):
        sides: tuple[Side, ...] = ("request", "reply")
        for side in sides:
            server.faults.add(Reset(), on=Match(verbs=("create",)), at=side, times=1)
            with pytest.raises(aiohttp.ClientError):
                await session.post(PATH, json=config_map(side))
        page = server.registry.list(CONFIG_MAPS, "default", ListOptions())
        assert [entry.obj["metadata"]["name"] for entry in page.entries] == ["reply"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [(409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")],
)
async def test_errors_are_statuses(code: int, reason: str) -> None:
    """With the reason a real server gives, and Retry-After if asked for."""
    async with serving() as (server, session):
        server.faults.add(Refuse(code, retry_after=7), times=1)
        async with session.get(PATH) as response:
            assert (response.status, response.headers["Retry-After"]) == (code, "7")
            assert (await response.json())["reason"] == reason
        async with session.get(PATH) as response:
            assert response.status == 200


@pytest.mark.parametrize("effect", [Hang(), Delay(60)])
async def test_a_hanging_request_ends_with_its_client(effect: Effect) -> None:
    """The client's deadline is what ends it, and the server stops at once afterwards."""
    async with serving() as (server, session):
        server.faults.add(effect, times=1)
        with pytest.raises(TimeoutError):
            await session.get(PATH, timeout=aiohttp.ClientTimeout(total=0.1))
        async with session.get(PATH) as response:
            assert response.status == 200


async def test_a_partition_swallows_requests_until_it_heals() -> None:
    """Connections that hung in it are dead, new ones work."""
    async with serving() as (server, session):
        server.faults.partition("hang")
        with pytest.raises(TimeoutError):
            await session.get(PATH, timeout=aiohttp.ClientTimeout(total=0.1))
        server.faults.heal()
        async with session.get(PATH) as response:
            assert response.status == 200


async def test_a_partition_can_reset() -> None:
    """Then it is noticed at once."""
    async with serving() as (server, session):
        server.faults.partition("reset")
        with pytest.raises(aiohttp.ClientError):
            await session.post(PATH, json=config_map("a"))
        server.faults.heal()
        async with session.post(PATH, json=config_map("a")) as response:
            assert response.status == 201


async def watched(session: aiohttp.ClientSession) -> list[str]:
    """The types of the events of a watch until it ends; `reset` if its connection did."""
    types: list[str] = []
    try:
        async with session.get(PATH, params={"watch": "true", "timeoutSeconds": "5"}) as response:
            async for line in response.content:
                types.append(line.decode().split('"')[3])
    except aiohttp.ClientError:
        types.append("reset")
    return types


@pytest.mark.parametrize(
    ("effect", "seen"),
    [
        (CutWatch(2), ["ADDED", "ADDED", "reset"]),
        (CutWatch(), ["reset"]),
        (ExpireWatch(1), ["ADDED", "ERROR"]),
        (ExpireWatch(), ["ERROR"]),
    ],
)
async def test_watches_are_cut_and_expire_after_so_many_events(effect: Effect, seen: list[str]) -> None:
    """At the start, and in mid-stream."""
    async with serving() as (server, session):
        for name in ("a", "b", "c"):
            server.registry.create_object(config_map(name))
        server.faults.add(effect, on=Match(verbs=("watch",)))
        assert await watched(session) == seen


async def test_a_silenced_watch_says_nothing_more() -> None:
    """It is accepted, sends what it may, and then not even bookmarks."""
    async with serving() as (server, session):
        server.registry.create_object(config_map("a"))
        server.faults.add(SilenceWatch(1), on=Match(verbs=("watch",)))
        async with session.get(PATH, params={"watch": "true", "allowWatchBookmarks": "true"}) as response:
            assert await response.content.readline()
            server.registry.create_object(config_map("b"))
            with anyio.move_on_after(0.1):
                await response.content.readline()
                raise AssertionError("it spoke")


async def test_open_connections_can_be_dropped() -> None:
    """A watch in progress is reset, and the server stays reachable."""
    async with serving() as (server, session):
        server.registry.create_object(config_map("a"))
        async with session.get(PATH, params={"watch": "true"}) as response:
            assert await response.content.readline()
            server.drop_connections()
            with pytest.raises(aiohttp.ClientError):
                await response.content.readline()
        async with session.get(PATH) as response:
            assert response.status == 200
