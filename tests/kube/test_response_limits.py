"""How much the client reads of what a server answers."""

from __future__ import annotations

import asyncio
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import anyio
import orjson
import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Unreachable, Unreadable
from multikueue.kube import AnswerLimits, Informer
from multikueue.kube.http.response_limits import (
    LARGE,
    LARGE_AT_ONCE,
    LISTS_UNLIMITED,
    MAX_SCHEMAS,
    PAGE_BYTES,
    read_body,
)
from multikueue.protocols import WatchEvent
from multikueue.testing import running
from tests.examples import shared
from tests.kube.fake_server import FakeServer, Step, Told, listed, obj, wait
from tests.kube.scripted import Answer, event, eventually, job, limited, says, streams

KEY = ObjectKey("default", "a")
MIB = 1 << 20


def bomb(size: int) -> bytes:
    """So many zeros, compressed to a thousandth."""
    packer, zeros = zlib.compressobj(9, wbits=31), b"0" * MIB
    return b"".join([*(packer.compress(zeros) for _ in range(size // MIB)), packer.flush()])


def page(*names: str, token: str = "") -> Json:
    """A page of a list."""
    metadata = {"resourceVersion": "5"} | ({"continue": token} if token else {})
    return {"metadata": metadata, "items": [job("1", name) for name in names]}


def packed(body: bytes, status: int = 200) -> Answer:
    """An answer that is compressed already."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, headers={"Content-Encoding": "gzip"})

    return answer


@pytest.mark.parametrize("status", shared([200, 500]))
async def test_a_bomb_is_not_unpacked(status: int) -> None:
    """512 MiB in half a megabyte: what is read of it is bounded, also of a refusal."""
    body = bomb(512 * MIB)
    assert len(body) < MIB
    async with limited(packed(body, status), answer_bytes=4 * MIB) as (_, client):
        tracemalloc.start()
        try:
            with pytest.raises(Unreadable, match=r"w1: get jobs.batch: the answer has more than 4194304 bytes"):
                await client.get(JOB, KEY)
            assert tracemalloc.get_traced_memory()[1] < 32 * MIB
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("call", ["get", "create", "watch"])
async def test_an_answer_without_an_end_is_left(call: str) -> None:
    """The connection is closed, so that the rest of it does not come."""

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500 if call == "watch" else 200)
        await response.prepare(request)
        while True:
            await response.write(b" " * MIB)

    async with limited(endless, answer_bytes=2 * MIB) as (server, client):
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: client.get(JOB, KEY),
            "create": lambda: client.create(JOB, job("1")),
            "watch": lambda: client.watch(JOB, lambda _: None, resource_version="1"),
        }
        with pytest.raises(Unreadable, match="more than"):
            await calls[call]()
        await eventually(lambda: server.open_streams == 0)


async def test_of_schemas_less_is_read() -> None:
    """Nothing of a worker's jobs depends on them: what it drops shows in its answers, too."""
    async with limited(packed(bomb(64 * MIB)), answer_bytes=128 * MIB) as (_, client):
        with pytest.raises(Unreadable, match=f"the answer has more than {MAX_SCHEMAS} bytes"):
            await client.schema(WORKLOAD.gvk)


async def test_a_list_without_an_end_is_left() -> None:
    """Pages of nothing, each with the promise of another one."""
    async with limited(says(200, page(token="more")), list_pages=7) as (server, client):
        with pytest.raises(Unreadable, match=r"w1: list jobs.batch: the list has more than 7 pages"):
            await client.list(JOB)
    assert len(server.asked) == 7


async def test_a_list_of_too_many_objects_is_left() -> None:
    async with limited(says(200, page("a", "b", token="more")), list_objects=5) as (server, client):
        with pytest.raises(Unreadable, match="the list has more than 5 objects"):
            await client.list(JOB)
    assert len(server.asked) == 3


async def test_a_list_of_too_many_bytes_is_left() -> None:
    answer = page("a" * 1000, token="more")
    async with limited(says(200, answer), list_bytes=10_000, answer_bytes=2_000) as (server, client):
        with pytest.raises(Unreadable, match="the list has more than 10000 bytes"):
            await client.list(JOB)
    assert 5 < len(server.asked) <= 13  # the last three are for smaller pages: what there is has been seen then


async def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones() -> None:
    """500 objects of 10 KiB: an answer may have as many bytes as 60 of them."""
    limits = []

    async def answer(request: web.Request) -> web.StreamResponse:
        limits.append(limit := int(request.query["limit"]))
        first = int(request.query.get("continue", "0"))
        names = [f"{number:05}{'x' * 10_000}" for number in range(first, min(first + limit, 500))]
        token = str(first + limit) if first + limit < 500 else ""
        return await says(200, page(*names, token=token))(request)

    async with limited(answer, answer_bytes=620_000) as (_, client):
        listed = await client.list(JOB)
    assert [int(item["metadata"]["name"][:5]) for item in listed.items] == list(range(500))
    assert limits == [500, *[50] * 10]


async def test_pages_are_larger_again_behind_large_objects() -> None:
    """Else a few large objects of one tenant had a list of small ones read in pages of five, more than it may have."""
    asked = []

    async def answer(request: web.Request) -> web.StreamResponse:
        limit, first = int(request.query["limit"]), int(request.query.get("continue", "0"))
        asked.append(limit)
        names = [
            f"{number:05}{'x' * 100_000 if number < 40 else ''}" for number in range(first, min(first + limit, 3000))
        ]
        return await says(200, page(*names, token=str(first + limit) if first + limit < 3000 else ""))(request)

    async with limited(answer, answer_bytes=620_000, list_pages=40) as (_, client):
        listed = await client.list(JOB)
    assert [int(item["metadata"]["name"][:5]) for item in listed.items] == list(range(3000))
    assert asked == [500, 50, *[5] * 9, 10, 20, 40, 80, 160, 320, *[500] * 5]


async def test_a_page_is_smaller_than_an_answer_may_be() -> None:
    """Which has room for the largest object, once escaped: so many bytes of small parts are a hundred MB in memory."""
    limits = []

    async def answer(request: web.Request) -> web.StreamResponse:
        limits.append(limit := int(request.query["limit"]))
        first = int(request.query.get("continue", "0"))
        names = [f"{number}{'x' * (PAGE_BYTES // 3)}" for number in range(first, min(first + limit, 8))]
        names += [f"8{'x' * (PAGE_BYTES + 1)}"] if first + limit > 8 else []
        return await says(200, page(*names, token=str(first + limit) if first + limit < 9 else ""))(request)

    async with limited(answer) as (_, client):
        assert [item["metadata"]["name"][0] for item in (await client.list(JOB)).items] == [*"012345678"]
    assert limits == [500, 50, 5, *[1] * 9]


async def test_one_object_that_is_too_large_is_told() -> None:
    """Smaller pages do not help."""
    async with limited(says(200, page("a" * 3000, token="more")), answer_bytes=2_000) as (server, client):
        with pytest.raises(Unreadable, match="the answer has more than 2000 bytes"):
            await client.list(JOB)
    assert [request.query["limit"] for request in server.asked] == ["500", "50", "5", "1"]


def test_the_manager_may_have_any_number_of_objects() -> None:
    """It is trusted; but a page is kept small there, too."""
    assert LISTS_UNLIMITED.answer_bytes == AnswerLimits().answer_bytes
    assert LISTS_UNLIMITED.list_objects > 10**9


@pytest.mark.looptime
async def test_a_store_that_grows_by_events_is_bounded_too() -> None:
    """A list, and a watch that adds objects without an end: after those that may be kept it is listed, and left."""
    events: list[Any] = [Told("ADDED", str(number), f"a{number}") for number in range(10, 100)]
    full = listed("100", *(obj(f"a{number}", "100") for number in range(10, 100)))
    server = FakeServer([listed("5"), full], [[*events, wait(1000)]])
    informer = Informer(server, JOB, limits=AnswerLimits(list_objects=20))
    async with running(informer.run):
        await anyio.sleep(50)
    assert len(informer) == 20
    assert informer.status.unreadable
    assert [what for _, what in server.log][:3] == ["list", "watch 5", "list"]


@pytest.mark.looptime
async def test_an_event_that_is_refused_has_not_been_read() -> None:
    """What was written at its version is not in the store: a cache that goes by the version would forget the write."""
    down: ApiError = Unreachable("down")
    events: list[Step] = [Told("ADDED", "6", "b"), Told("ADDED", "7", "c")]
    informer = Informer(FakeServer([listed("5"), down], [events]), JOB, limits=AnswerLimits(list_objects=1))
    with anyio.move_on_after(1):
        await informer.run()
    kept = [name for name in "abc" if ObjectKey("n", name) in informer]
    assert (kept, informer.resource_version) == (["b"], "6")


@pytest.mark.looptime
async def test_a_store_that_fits_again_is_read_again() -> None:
    many: ApiError = Unreadable("too many")
    first: list[Step] = [Told("ADDED", "6", "b"), wait(9000)]
    then: list[Step] = [wait(9000)]
    server = FakeServer([listed("5", obj("a", "1")), many, listed("9")], [first, then])
    informer = Informer(server, JOB, limits=AnswerLimits(list_objects=1))
    async with running(informer.run):
        await anyio.sleep(100)
    assert not informer.status.unreadable
    assert not informer.status.failures


@pytest.mark.looptime
async def test_objects_that_grow_by_events_are_bounded_too() -> None:
    """Those that are there count, each with its last size: an object that changes for ever adds nothing."""
    limits = AnswerLimits(list_bytes=100)
    informer = Informer(FakeServer([listed("5")], [[wait(9000)]]), JOB, limits=limits)
    for number in range(50):
        informer._apply(WatchEvent("MODIFIED", obj("a", str(number)), 40))
    informer._apply(WatchEvent("ADDED", obj("b", "60"), 40))
    informer._apply(WatchEvent("DELETED", obj("b", "61"), 40))
    informer._apply(WatchEvent("ADDED", obj("c", "62"), 60))
    with pytest.raises(Unreadable, match="more than 100 bytes of objects"):
        informer._apply(WatchEvent("ADDED", obj("d", "63"), 1))
    await informer._replace(listed("64", obj("a", "50"), obj("c", "62")), False)
    informer._apply(WatchEvent("ADDED", obj("d", "65"), 30))
    assert len(informer) == 3, "what the list has counts with its size there"


async def test_an_event_has_its_size() -> None:
    line = event("ADDED", "6")
    sizes: list[int] = []
    async with limited(streams(line)) as (_, client):
        await client.watch(JOB, lambda event: sizes.append(event.size), resource_version="5")
    assert sizes == [len(orjson.dumps(line)) + 1]


def content() -> aiohttp.StreamReader:
    """Of an answer that is on its way."""
    protocol = BaseProtocol(asyncio.get_running_loop())
    protocol.connection_made(asyncio.Transport())
    return aiohttp.StreamReader(protocol, LARGE, loop=asyncio.get_running_loop())


async def test_large_answers_have_turns() -> None:
    """Each connection had its own in memory: tenants choose how large objects are."""
    turns, read = anyio.Semaphore(LARGE_AT_ONCE), list[str]()
    bodies = {name: content() for name in ("slow", "next", "small")}

    async def reads(name: str) -> None:
        body = await read_body(bodies[name], 2 * LARGE, name, turns)
        assert len(body) == {"small": LARGE}.get(name, LARGE + 1)
        read.append(name)

    async with anyio.create_task_group() as tasks:
        for name, body in bodies.items():
            body.feed_data(b"x" * (LARGE if name == "small" else LARGE + 1))
            tasks.start_soon(reads, name)
            await anyio.wait_all_tasks_blocked()
        for name in ("next", "small"):
            bodies[name].feed_eof()
        await anyio.wait_all_tasks_blocked()
        assert read == ["small"]
        bodies["slow"].feed_eof()
    assert read == ["small", "slow", "next"]


async def test_one_that_is_too_large_leaves_its_turn_to_the_next() -> None:
    turns = anyio.Semaphore(LARGE_AT_ONCE)
    for _ in range(2 * LARGE_AT_ONCE):
        body = content()
        body.feed_data(b"x" * (LARGE + 2))
        with pytest.raises(Unreadable):
            await read_body(body, LARGE + 1, "w1", turns)
