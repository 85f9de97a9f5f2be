"""What counts as a word of a server, and what does not: of a client over HTTP, and of the one in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Expired, NotFound, Unreadable
from multikueue.kube import ClientOptions
from multikueue.kube.http.activity import Activity
from multikueue.kube.http.response_limits import AnswerLimits
from multikueue.protocols import ApiClient, WatchEvent
from multikueue.sandbox.apiserver import DirectClient, Faults, Hang, Refuse, Registry, Reset
from tests.kube.scripted import Answer, hangs, job, refuses, resets, says, streams, talking
from tests.sandbox.apiserver.objects import job as new_job

KEY = ObjectKey("default", "a")
APPLIED: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "default"}}
OPTIONS = ClientOptions(deadline=0.2, limits=AnswerLimits(answer_bytes=500))

CALLS: dict[str, Callable[[ApiClient], Awaitable[object]]] = {
    "create": lambda client: client.create(JOB, new_job("a")),
    "get": lambda client: client.get(JOB, KEY),
    "list": lambda client: client.list(JOB, limit=1),
    "patch": lambda client: client.merge_patch(JOB, KEY, {"metadata": {"labels": {"a": "c"}}}),
    "apply": lambda client: client.apply(JOB, APPLIED, field_manager="test"),
    "schema": lambda client: client.schema(JOB.gvk),
    "delete": lambda client: client.delete(JOB, KEY),
    "get what is gone": lambda client: client.get(JOB, ObjectKey("default", "b")),
}


@pytest.mark.looptime
async def test_every_answer_in_memory_is_heard() -> None:
    client = DirectClient(Registry())
    assert client.last_activity < 0
    for call in CALLS.values():
        await anyio.sleep(1)
        try:
            await call(client)
        except NotFound:
            assert call is CALLS["get what is gone"]
        assert client.last_activity == anyio.current_time()


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("effect", "heard"),
    [
        (Refuse(403), True),
        (Refuse(429), True),
        (Refuse(500), True),
        (Refuse(503), False),
        (Refuse(504), False),
        (Reset(), False),
        (Hang(), False),
    ],
    ids=str,
)
async def test_a_refusal_in_memory_is_heard_and_a_proxy_that_answers_for_the_server_is_not(
    effect: Refuse | Reset | Hang, heard: bool
) -> None:
    faults = Faults()
    client = DirectClient(Registry(), faults=faults)
    faults.add(effect)
    with pytest.raises(ApiError):
        await client.list(JOB, limit=1)
    assert (client.last_activity >= 0) is heard


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        (says(200, job("a")), True),
        (says(200, {**job("a"), "spec": "x" * 1_000}), True),
        (refuses(403), True),
        (refuses(500), True),
        (refuses(503), False),
        (refuses(504), False),
        (resets, False),
        (hangs, False),
    ],
    ids=["answer", "too much to read", "403", "500", "503", "504", "reset", "hang"],
)
async def test_what_is_heard_over_http(answer: Answer, heard: bool) -> None:
    async with talking(answer, options=OPTIONS) as (_, client):
        with contextlib.suppress(ApiError):
            await client.get(JOB, KEY)
        assert (client.last_activity > 0) is heard


BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}
ADDED = {"type": "ADDED", "object": job("a")}
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


@pytest.mark.parametrize(
    ("event", "heard"), [(BOOKMARK, False), (ADDED, True), (GONE, True)], ids=["bookmark", "event", "error"]
)
async def test_events_are_heard_and_bookmarks_are_not(event: Json, heard: bool) -> None:
    """An API server sends bookmarks from memory, and accepts watches so: its storage may hang."""
    seen: list[WatchEvent] = []
    async with talking(streams(event)) as (_, client):
        try:
            await client.watch(JOB, seen.append, resource_version="0")
        except Expired:
            assert event is GONE
        assert (client.last_activity > 0) is heard


@pytest.mark.looptime
async def test_events_in_memory_are_heard_and_bookmarks_are_not() -> None:
    registry = Registry()
    client, writer = DirectClient(registry), DirectClient(registry)
    seen: list[WatchEvent] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await client.watch(JOB, seen.append, resource_version="0")

        tasks.start_soon(watch)
        await anyio.sleep(300)
        assert "BOOKMARK" in [event.type for event in seen]
        assert client.last_activity < 0
        await writer.create(JOB, new_job("a"))
        await anyio.sleep(300)
        assert client.last_activity == 300
        tasks.cancel_scope.cancel()


@pytest.mark.looptime
async def test_an_answer_that_is_too_much_to_read_is_heard() -> None:
    """The server is there: it is not lost."""
    activity = Activity()
    activity.failed(Unreadable("the answer has more than 5 bytes"))
    assert activity.last == anyio.current_time()
