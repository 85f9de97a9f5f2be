"""What counts as a word of a server, and what does not."""

from __future__ import annotations

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError, NotFound, Unreadable
from multikueue.protocols import WatchEvent
from multikueue.runtime.heard_client import HeardClient
from multikueue.sandbox.apiserver import DirectClient, Faults, Hang, Refuse, Registry, Reset
from tests.sandbox.apiserver.objects import job

pytestmark = pytest.mark.looptime
KEY = ObjectKey("default", "a")


@attrs.define
class World:
    """A server, and how often it was heard."""

    faults: Faults = attrs.field(factory=Faults)
    words: int = 0
    client: HeardClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.client = HeardClient(DirectClient(Registry(), faults=self.faults), self._hear)

    def _hear(self) -> None:
        self.words += 1


async def test_every_answer_is_heard() -> None:
    world = World()
    client = world.client
    made = await client.create(JOB, job("a"))
    await client.get(JOB, KEY)
    await client.list(JOB)
    await client.replace(JOB, {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
    await client.merge_patch(JOB, KEY, {"metadata": {"labels": {"a": "c"}}})
    applied: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "default"}}
    await client.apply(JOB, applied, field_manager="test")
    await client.delete(JOB, KEY)
    assert world.words == 7
    with pytest.raises(NotFound):
        await client.get(JOB, ObjectKey("default", "b"))
    assert world.words == 8


@pytest.mark.parametrize(
    ("effect", "heard"),
    [
        (Refuse(403), 1),
        (Refuse(429), 1),
        (Refuse(500), 1),
        (Refuse(503), 0),
        (Refuse(504), 0),
        (Reset(), 0),
        (Hang(), 0),
    ],
    ids=str,
)
async def test_a_refusal_is_heard_and_a_proxy_that_answers_for_the_server_is_not(
    effect: Refuse | Reset | Hang, heard: int
) -> None:
    world = World()
    world.faults.add(effect)
    with pytest.raises(ApiError):
        await world.client.list(JOB, limit=1)
    assert world.words == heard


async def test_events_are_heard_and_bookmarks_are_not() -> None:
    """An API server sends bookmarks from memory, and accepts watches so: its storage may hang."""
    world = World()
    seen: list[WatchEvent] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await world.client.watch(JOB, seen.append, resource_version="0")

        tasks.start_soon(watch)
        await anyio.sleep(300)
        assert world.words == 0
        await world.client.client.create(JOB, job("a"))
        await anyio.sleep(300)
        tasks.cancel_scope.cancel()
    kinds = [event.type for event in seen]
    assert kinds.count("ADDED") == world.words == 1
    assert "BOOKMARK" in kinds


async def test_an_answer_that_is_too_much_to_read_is_heard() -> None:
    """The server is there: it is not lost."""

    class Bomb(DirectClient):
        async def get(self, resource: Resource, key: ObjectKey) -> Json:
            raise Unreadable("the answer has more than 5 bytes")

    words: list[str] = []
    client = HeardClient(Bomb(Registry()), lambda: words.append("heard"))
    with pytest.raises(Unreadable):
        await client.get(JOB, KEY)
    assert words == ["heard"]
