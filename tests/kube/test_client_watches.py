"""The client: watches, and how they end."""

from __future__ import annotations

from collections import Counter

import anyio
import anyio.lowlevel
import attrs
import orjson
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.errors import ApiError, DeadlineExceeded, Expired, ServerFault, TooManyRequests, Unreachable, Unreadable
from multikueue.kube import ClientOptions, ClusterConfig, KubeClient
from multikueue.kube.http.response_limits import BREATH, MAX_LINE
from multikueue.protocols import WatchEvent
from tests.kube.scripted import Answer, event, eventually, hangs, refuses, resets, serving, streams, talking

ERROR_410 = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


@attrs.define
class Heard:
    """Records what a watch sends."""

    events: list[str] = attrs.field(factory=list)

    def opened(self) -> None:
        self.events.append("open")

    def event(self, event: WatchEvent) -> None:
        self.events.append(f"{event.type} {event.object['metadata']['resourceVersion']}")


async def watched(*script: Answer, heard: Heard | None = None, idle: float = 5.0, deadline: float = 0.3) -> list[str]:
    """What one watch sends until it ends."""
    heard = heard or Heard()
    async with (
        serving(*script) as server,
        KubeClient(ClusterConfig(server.url), name="w1", options=ClientOptions(deadline=deadline)) as client,
    ):
        await client.watch(JOB, heard.event, resource_version="5", idle=idle, on_open=heard.opened)
    query = dict(server.asked[0].query)
    assert query == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "5"}
    return heard.events


async def test_events_come_in_order_until_the_server_ends_the_stream() -> None:
    """After `on_open`."""
    lines = event("ADDED", "6"), event("BOOKMARK", "7"), event("DELETED", "8")
    assert await watched(streams(*lines)) == ["open", "ADDED 6", "BOOKMARK 7", "DELETED 8"]


async def test_an_object_of_more_than_128_kib_is_one_event() -> None:
    """aiohttp's own limit for a line."""
    big = event("ADDED", "6", annotations={"x": "y" * 400_000})
    assert await watched(streams(big)) == ["open", "ADDED 6"]


async def test_a_line_that_is_too_long_ends_the_watch_and_is_not_quoted() -> None:
    with pytest.raises(Unreadable, match="more than") as caught:
        await watched(streams(b"canary" * (MAX_LINE // 6 + 1)))
    assert "canary" not in f"{caught.value!r}{caught.value.__cause__!r}"


@pytest.mark.parametrize("gone", [refuses(410, "Expired"), refuses(410, "Gone"), streams(ERROR_410)])
async def test_both_forms_of_410_mean_that_history_is_lost(gone: Answer) -> None:
    """As an answer, and as an event in an answer of 200."""
    with pytest.raises(Expired):
        await watched(gone)


async def test_many_events_that_come_together_leave_turns_of_the_loop_to_others() -> None:
    """A hundred of one tenant were one turn."""
    lines = b"".join(orjson.dumps(event("MODIFIED", str(number))) + b"\n" for number in range(6, 106))
    turns, heard = [0], list[int]()

    async def count() -> None:
        while True:
            turns[0] += 1
            await anyio.lowlevel.checkpoint()

    async with talking(streams(lines)) as (_, client), anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await client.watch(JOB, lambda _: heard.append(turns[0]), resource_version="5")
        tasks.cancel_scope.cancel()
    assert len(heard) == 100
    assert max(Counter(heard).values()) <= BREATH


async def test_events_before_an_error_event_are_passed_on() -> None:
    heard = Heard()
    with pytest.raises(Expired, match=r"w1: watch jobs.batch: too old"):
        await watched(streams(event("ADDED", "6"), ERROR_410), heard=heard)
    assert heard.events == ["open", "ADDED 6"]


@pytest.mark.parametrize("status", [{}, {"code": "x"}, {"code": 500}])
async def test_other_error_events_are_errors(status: dict[str, object]) -> None:
    """Even malformed ones."""
    with pytest.raises(ApiError) as caught:
        await watched(streams({"type": "ERROR", "object": status}))
    assert isinstance(caught.value, ServerFault) == (status == {"code": 500})


async def test_429_on_a_watch_has_its_retry_after() -> None:
    """API servers that start up answer so."""
    with pytest.raises(TooManyRequests) as caught:
        await watched(refuses(429, Retry_After="3"))
    assert caught.value.retry_after == 3


async def test_a_stream_that_breaks_is_unreachable() -> None:
    heard = Heard()
    with pytest.raises(Unreachable):
        await watched(streams(event("ADDED", "6"), then=resets), heard=heard)
    assert heard.events[0] == "open"


async def test_half_a_line_is_no_event() -> None:
    """A proxy that ends in the middle must not look like an orderly end."""
    with pytest.raises(Unreachable, match="cut off"):
        await watched(streams(b'{"type":"ADDED","obj'))


@pytest.mark.parametrize("line", [b"<html>\n", b"[]\n", b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":{"a":\n'])
async def test_a_whole_line_that_is_no_event_cannot_be_read(line: bytes) -> None:
    """The same would be sent again to a watch from there, so a list must go past it."""
    with pytest.raises(Unreadable, match="not an event"):
        await watched(streams(line))


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": None}, {"metadata": {"resourceVersion": "6"}}, {"metadata": {"name": 6}}]
)
async def test_an_event_without_an_object_is_no_event(obj: dict[str, object]) -> None:
    """A proxy may answer with anything. That must not crash the client."""
    line = orjson.dumps({"type": "ADDED", "object": obj}) + b"\n"
    with pytest.raises(Unreadable, match="not an event"):
        await watched(streams(line))


async def test_silence_is_noticed() -> None:
    """Bookmarks are asked for, so a healthy server is never silent for long."""
    heard = Heard()
    with anyio.fail_after(3), pytest.raises(DeadlineExceeded):
        await watched(streams(event("ADDED", "6"), then=hangs), heard=heard, idle=0.2)
    assert heard.events == ["open", "ADDED 6"]


async def test_a_server_that_never_accepts_is_given_up_and_was_never_open() -> None:
    """A connection alone is no accepted watch."""
    heard = Heard()
    with anyio.fail_after(3), pytest.raises(DeadlineExceeded, match="not accepted in time"):
        await watched(hangs, heard=heard)
    assert heard.events == []


async def test_an_open_watch_has_no_deadline() -> None:
    """It lasts longer than the deadline of calls."""
    with pytest.raises(DeadlineExceeded, match="no answer"):
        await watched(streams(then=hangs), idle=0.4, deadline=0.1)


@pytest.mark.parametrize("bug", [ValueError, TimeoutError, OSError, KeyError])
async def test_what_a_handler_raises_is_a_bug_and_no_network_failure(bug: type[Exception]) -> None:
    """The client must not retry it in silence."""

    def broken(_: WatchEvent) -> None:
        raise bug("mine")

    async with talking(streams(event("ADDED", "6"))) as (_, client):
        with pytest.raises(bug, match="mine"):
            await client.watch(JOB, broken, resource_version="5")


async def test_a_cancelled_watch_leaves_no_connection_behind() -> None:
    """Not while it waits for headers, and not while it waits for events."""
    for answer in (hangs, streams(event("ADDED", "6"), then=hangs)):
        async with talking(answer) as (server, client):
            for _ in range(5):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_watch, client)
                    await eventually(lambda: server.open_streams == 1)
                    tasks.cancel_scope.cancel()
                await eventually(lambda: server.open_streams == 0)


async def _watch(client: KubeClient) -> None:
    await client.watch(JOB, lambda _: None, resource_version="5")
