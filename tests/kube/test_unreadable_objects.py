"""One object that cannot be decoded, or is misshapen, leaves the others of its kind as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest
from aiohttp import web

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Unreachable, Unreadable
from multikueue.kube import ClusterConfig, Informer, KubeClient
from multikueue.kube.informers.informer import LOOK_AGAIN
from multikueue.kube.informers.list_pages import PageSizes
from multikueue.protocols import ObjectList, UnreadableObject, WatchEvent
from multikueue.sandbox.apiserver import ApiServer
from tests.kube.deep_objects import DEEP, DEFINITION, GADGET, gadget, key, mend, spoil
from tests.kube.fake_server import Broken, FakeServer, listed, obj, wait
from tests.kube.scripted import event, eventually, job, limited, says, streams

BROKEN = [
    pytest.param(DEEP, id="nested"),
    pytest.param(b"[" * 1200 + b"]" * 1200, id="lists"),
    pytest.param(b'"\xff\xfe"', id="no UTF-8"),
    pytest.param(b"1e999", id="large number"),
    pytest.param(b'"\\ud800"', id="half a character"),
]


@asynccontextmanager
async def followed(*names: str) -> AsyncIterator[tuple[ApiServer, KubeClient, Informer]]:
    """A server with such objects, a client, and an informer that may keep what cannot be read."""
    async with ApiServer(tls=False) as server, KubeClient(ClusterConfig(server.url), name="w1") as client:
        server.registry.create_object(DEFINITION)
        for name in names:
            server.registry.create_object(gadget(name))
        yield server, client, Informer(client, GADGET, keeps_unreadable=True)


@asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[None]:
    """Run it meanwhile."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.wait_synced()
        yield
        tasks.cancel_scope.cancel()


def unreadable(informer: Informer) -> list[str]:
    keys = informer.unreadable.outlines.keys()
    return sorted(key.name for key in keys)


def readable(informer: Informer) -> list[str]:
    keys = informer.keys()
    return sorted(key.name for key in keys if key not in informer.unreadable)


@pytest.mark.parametrize("value", BROKEN)
async def test_a_list_goes_past_it_and_its_name_stays_known(value: bytes) -> None:
    names = [f"g{number:03}" for number in range(20)]
    async with followed(*names) as (server, client, informer):
        spoil(server.registry, "g007", value)
        listed = await client.list(GADGET)
        assert [item["metadata"]["name"] for item in listed.items] == [name for name in names if name != "g007"]
        (spoiled,) = listed.unreadable
        assert ObjectKey.of(spoiled.object) == key("g007")
        assert spoiled.object["metadata"]["uid"]
        assert "cannot be decoded" in spoiled.why
        async with running(informer):
            assert unreadable(informer) == ["g007"]
            assert readable(informer) == [name for name in names if name != "g007"]
            assert not informer.status.failures


@pytest.mark.parametrize("value", BROKEN)
async def test_an_event_tells_of_it_and_the_watch_goes_on(value: bytes) -> None:
    """No list follows: its sender could have the kind listed all the time."""
    async with followed("a", "b") as (server, _, informer), running(informer):
        spoil(server.registry, "a", value)
        server.registry.create_object(gadget("c"))
        await eventually(lambda: readable(informer) == ["b", "c"])
        assert unreadable(informer) == ["a"]
        assert informer.get(key("a")) is not None, "its last version stays"
        assert (informer.status.lists, informer.status.failures) == (1, 0)


async def test_what_is_mended_or_gone_is_known_again() -> None:
    changes: list[tuple[str, bool, bool]] = []
    async with followed("a", "b") as (server, client, informer):
        informer.subscribe(lambda key, old, new: changes.append((key.name, old is not None, new is not None)))
        spoil(server.registry, "a")
        spoil(server.registry, "b")
        async with running(informer):
            assert unreadable(informer) == ["a", "b"]
            mend(server.registry, "a")
            await client.delete(GADGET, key("b"))
            await eventually(lambda: not informer.unreadable)
            assert readable(informer) == ["a"]
    assert changes == [("a", False, True), ("b", False, True), ("a", True, True), ("b", True, False)]


async def test_a_list_tells_that_it_is_gone() -> None:
    async with followed("a", "b") as (server, client, informer):
        spoil(server.registry, "a")
        async with running(informer):
            pass
        await client.delete(GADGET, key("a"))
        await informer._replace(await client.list(GADGET), False)
        assert not informer.unreadable
        assert readable(informer) == ["b"]


async def test_many_of_them_between_others_are_all_found() -> None:
    """Alone, side by side, first and last of 120."""
    spoiled = {0, 1, 2, 17, 60, 61, 118, 119}
    names = [f"g{number:03}" for number in range(120)]
    async with followed(*names) as (server, client, _):
        for number in spoiled:
            spoil(server.registry, names[number])
        listed = await client.list(GADGET)
    assert [ObjectKey.of(unreadable.object).name for unreadable in listed.unreadable] == [
        names[number] for number in sorted(spoiled)
    ]
    assert len(listed.items) == len(names) - len(spoiled)


async def test_one_more_than_is_read_by_a_probe() -> None:
    """A probe lists one object: a server is not lost because that one cannot be decoded."""
    async with followed("a") as (server, client, _):
        spoil(server.registry, "a")
        listed = await client.list(GADGET, limit=1)
    assert [ObjectKey.of(unreadable.object) for unreadable in listed.unreadable] == [key("a")]


def test_pages_are_halved_down_to_one_and_grow_again() -> None:
    """The 400th of 500."""
    sizes, first, asked = PageSizes(500), 0, []
    while True:
        asked.append(sizes.next)
        if first + sizes.next <= 399:
            first += sizes.next
            sizes.read(sizes.next, sizes.next)
        elif sizes.failed():
            break
    assert asked == [500, 250, 125, 62, 31, 15, 8, 4, 2, 1, 1]
    sizes.passed()
    after = []
    while sizes.searching:
        after.append(sizes.next)
        sizes.read(sizes.next, sizes.next)
    assert (after, sizes.next) == ([2, 4, 8, 16, 32, 64, 128, 256], 500)


def bare(*names: str, token: str = "") -> Json:
    """A page of a list."""
    return {
        "metadata": {"resourceVersion": "5"} | ({"continue": token} if token else {}),
        "items": [job("1", name) for name in names],
    }


async def test_metadata_that_cannot_be_decoded_either_tells_the_name() -> None:
    """`managedFields` nest as deep as what they are about."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = orjson.dumps(bare("a"))
        spoiled = b'"managedFields":' + DEEP + b',"name":"a"'
        return web.Response(body=body.replace(b'"name":"a"', spoiled))

    async with limited(answer) as (server, client):
        listed = await client.list(JOB)
    assert [ObjectKey.of(unreadable.object).name for unreadable in listed.unreadable] == ["a"]
    assert server.asked[-1].headers["Accept"].startswith("application/json;as=PartialObjectMetadataList")


async def test_a_server_where_nothing_can_be_decoded_is_asked_for_so_many_pages_only() -> None:
    """Each object cannot be decoded, and there is always one more."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if "PartialObject" in request.headers.get("Accept", ""):
            return await says(200, bare("a", token="more"))(request)
        return web.Response(body=b'{"items":[' + DEEP + b"]}")

    async with limited(answer, list_pages=5) as (server, client):
        with pytest.raises(Unreadable, match="more than 5 pages"):
            await client.list(JOB)
    assert len(server.asked) <= 5 * 20 + 2


async def test_an_event_whose_metadata_comes_last_or_nests_too_deep_has_a_name() -> None:
    events: list[WatchEvent] = []
    line = orjson.dumps(event("ADDED", "6"))
    deep = line.replace(b'"metadata":{', b'"spec":' + DEEP + b',"metadata":{"managedFields":' + DEEP + b",")
    async with limited(streams(deep + b"\n")) as (_, client):
        await client.watch(JOB, events.append, resource_version="5")
    assert [(event.type, event.object["metadata"]["name"]) for event in events] == [("ADDED", "a")]
    assert events[0].unreadable


MISSHAPEN: list[Any] = [
    {"labels": ["a"]},
    {"labels": {"a": 1}},
    {"annotations": ["a"]},
    {"finalizers": 7},
    {"ownerReferences": {"name": "x"}},
    {"ownerReferences": [{"name": None}]},
    {"uid": 5},
    {"deletionTimestamp": {}},
]


@pytest.mark.looptime
@pytest.mark.parametrize("by_event", [False, True])
async def test_what_was_spoilt_on_the_way_is_listed_again_after_five_minutes_without_an_event(by_event: bool) -> None:
    """Nothing changes on the server, so no event comes; and nobody can have the kind listed more often by it."""
    odd, sound = obj("odd", "2", annotations=["a"]), obj("odd", "2")
    first = listed("5", sound if by_event else odd)
    server = FakeServer([first, listed("5", odd), listed("5", sound)], [[wait(9000)]])
    informer = Informer(server, JOB, keeps_unreadable=True)
    async with running(informer):
        if by_event:
            informer._apply(WatchEvent("MODIFIED", odd))
        await anyio.sleep(LOOK_AGAIN + 1)
        assert unreadable(informer) == ["odd"]
        await anyio.sleep(LOOK_AGAIN)
        assert (readable(informer), unreadable(informer)) == (["odd"], [])
        await anyio.sleep(10 * LOOK_AGAIN)
    assert [what for _, what in server.log].count("list") == 3
    assert informer.status.failures == 0


@pytest.mark.looptime
async def test_a_watch_that_breaks_meanwhile_puts_that_off_no_further() -> None:
    """Each watch resumes where the one before it broke: were its five minutes its own, nobody would ever list again
    behind a link that breaks every few minutes (seed 810134)."""
    server = FakeServer(
        [listed("5", obj("odd", "2", annotations=["a"])), listed("5", obj("odd", "2"))],
        [[Broken(Unreachable("reset"), after=200)]],
    )
    informer = Informer(server, JOB, keeps_unreadable=True)
    async with running(informer):
        await anyio.sleep(LOOK_AGAIN - 1)
        assert unreadable(informer) == ["odd"]
        await anyio.sleep(2)
        assert (readable(informer), unreadable(informer)) == (["odd"], [])
        await anyio.sleep(10 * LOOK_AGAIN)
    assert [what for _, what in server.log].count("list") == 2
    assert informer.status.failures == 0


@pytest.mark.looptime
@pytest.mark.parametrize("metadata", MISSHAPEN)
@pytest.mark.parametrize("by_event", [False, True])
async def test_misshapen_metadata_is_unknown_and_the_others_go_on(metadata: Json, by_event: bool) -> None:
    odd, sound = obj("odd", "2", **metadata), obj("sound", "3")
    first = listed("5") if by_event else listed("5", odd, sound)
    informer = Informer(FakeServer([first], [[wait(9000)]]), JOB, keeps_unreadable=True)
    async with running(informer):
        if by_event:
            informer._apply(WatchEvent("ADDED", odd))
            informer._apply(WatchEvent("ADDED", sound))
        assert (readable(informer), unreadable(informer)) == (["sound"], ["odd"])
        assert "metadata." in informer.unreadable.why(ObjectKey("n", "odd"))
        informer._apply(WatchEvent("MODIFIED", obj("odd", "9")))
        assert (readable(informer), unreadable(informer)) == (["odd", "sound"], [])


@pytest.mark.looptime
async def test_an_informer_that_may_keep_none_fails_until_it_is_mended() -> None:
    """Of the manager's configuration: without one of its objects the others would mean something else."""
    odd = ObjectList([obj("a", "1")], "5", (UnreadableObject(obj("b", "2"), "deep"),))
    informer = Informer(FakeServer([odd, odd, listed("9", obj("b", "8"))], [[wait(9000)]]), JOB)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.wait_settled()
        assert informer.status.unreadable
        assert '"n/b" cannot be read: deep' in informer.status.last_error
        assert not informer.status.synced
        await informer.wait_synced()
        assert readable(informer) == ["b"]
        tasks.cancel_scope.cancel()


@pytest.mark.looptime
async def test_what_is_not_selected_is_not_ours_also_if_it_cannot_be_read() -> None:
    """A server that ignores selectors sends others' objects. Where the labels cannot be read nobody knows."""
    theirs = UnreadableObject(obj("theirs", "2", labels={"a": "b"}), "deep")
    unknown = obj("unknown", "3", labels=["a"])
    server = FakeServer([ObjectList([unknown], "5", (theirs,))], [[wait(9000)]])
    informer = Informer(server, JOB, keeps_unreadable=True, belongs=_is_ours)
    async with running(informer):
        assert unreadable(informer) == ["unknown"]


def _is_ours(obj: Json) -> bool:
    return "ours" in (obj["metadata"].get("labels") or {})
