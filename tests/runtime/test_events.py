"""Events are sent in the background and never hold up what they tell about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import EVENT
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import AlreadyExists, ApiError, Forbidden, NotFound, ServerFault, TooManyRequests
from multikueue.protocols import Subresource
from multikueue.runtime.event_series import REMEMBERED, Series, SeriesMemory
from multikueue.runtime.events import ATTEMPTS, CAPACITY, EventRecorder, EventStatistics
from multikueue.testing import running
from tests.runtime.unasked import Unasked

pytestmark = pytest.mark.looptime

WORKLOAD: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {"namespace": "team", "name": "job-sample", "uid": "u1", "resourceVersion": "7"},
}
CLUSTER: Json = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "MultiKueueCluster",
    "metadata": {"name": "worker-1", "uid": "u2"},
}


@attrs.define(eq=False)
class EventServer(Unasked):
    """Keeps events, after `latency` seconds; answers with `errors` first."""

    latency: float = 0.01
    errors: list[ApiError] = attrs.field(factory=list)
    events: list[Json] = attrs.field(factory=list)
    tried_at: list[float] = attrs.field(factory=list)
    patches: int = 0
    may_patch: bool = True

    @property
    def counts(self) -> list[tuple[str, int]]:
        """What `kubectl describe` shows, in its order: each note, and how often it was said."""
        listed = sorted(self.events, key=lambda event: event["metadata"]["name"])
        return [(event["note"], event.get("series", {}).get("count", 1)) for event in listed]

    async def create(self, resource: Resource, obj: Json) -> Json:
        assert resource == EVENT
        self.tried_at.append(anyio.current_time())
        await anyio.sleep(self.latency)
        if self.errors:
            raise self.errors.pop(0)
        self.events.append(obj)
        return obj

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: Json, *, subresource: Subresource = ""
    ) -> Json:
        """With the rules of a real API server."""
        assert resource == EVENT
        assert {*patch, *patch.get("metadata", ())} <= {"series", "metadata", "annotations"}, (
            "all else cannot be changed"
        )
        assert patch["series"]["count"] >= 2
        await anyio.sleep(self.latency)
        if not self.may_patch:
            raise Forbidden("cannot patch resource events", status=403)
        known = next((event for event in self.events if ObjectKey.of(event) == key), None)
        if known is None:
            raise NotFound("it has expired", status=404)
        known.update({**patch, "metadata": {**known["metadata"], **patch.get("metadata", {})}})
        self.patches += 1
        return known


class Sent(NamedTuple):
    """A server that was told of events, and what the recorder counted."""

    server: EventServer
    counted: EventStatistics


def recorder(server: EventServer, *, capacity: int = CAPACITY) -> EventRecorder:
    moment = datetime(2026, 1, 2, 3, 4, 5, 60, UTC)
    return EventRecorder(server, "kueue-workload-controller", "pod-1", lambda: moment, capacity=capacity)


def say(events: EventRecorder, note: str, regarding: Json = WORKLOAD) -> None:
    events.emit(regarding, type="Normal", reason="MultiKueue", action="MultiKueue", note=note)


@asynccontextmanager
async def recorded(**answers: Any) -> AsyncIterator[tuple[EventServer, EventRecorder]]:
    """Write events meanwhile, to a server that answers so."""
    server = EventServer(**answers)
    events = recorder(server)
    async with running(events.run):
        yield server, events


async def run_for(events: EventRecorder, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await events.run()


async def sent(*notes: str, regarding: Json = WORKLOAD, seconds: float = 60, **answers: Any) -> Sent:
    """What comes of these notes within so many seconds, at a server that answers so."""
    server = EventServer(**answers)
    events = recorder(server)
    for note in notes:
        say(events, note, regarding)
    await run_for(events, seconds)
    return Sent(server, events.statistics())


async def test_what_programs_read_of_a_series_is_that_of_the_last_time() -> None:
    async with recorded() as (server, events):
        for due in ("first", "second"):
            events.emit(WORKLOAD, "Warning", "MultiKueue", "Refused", "no", annotations={"due": due})
            await anyio.sleep(1)

    (event,) = server.events
    assert event["metadata"]["annotations"] == {"due": "second"}
    assert event["series"]["count"] == 2
    assert event["metadata"]["namespace"] == "team", "and the rest stays"


async def test_an_event_is_what_kubectl_describe_shows() -> None:
    (event,) = (await sent('The workload got reservation on "worker-1"')).server.events
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "team", "name": event["metadata"]["name"]},
        "eventTime": "2026-01-02T03:04:05.000060Z",
        "reportingController": "kueue-workload-controller",
        "reportingInstance": "pod-1",
        "regarding": {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "namespace": "team",
            "name": "job-sample",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "type": "Normal",
        "reason": "MultiKueue",
        "action": "MultiKueue",
        "note": 'The workload got reservation on "worker-1"',
    }
    assert event["metadata"]["name"].startswith("job-sample.")


async def test_events_about_cluster_scoped_objects_go_to_the_default_namespace() -> None:
    """The API server refuses them anywhere else."""
    (event,) = (await sent("lost", regarding=CLUSTER)).server.events
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["regarding"]


async def test_long_notes_and_names_are_cut_to_what_the_api_takes() -> None:
    long = {**WORKLOAD, "metadata": {**WORKLOAD["metadata"], "name": "n" * 253}}
    (event,) = (await sent("ü" * 1000, regarding=long)).server.events
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith(" ...")
    assert len(event["metadata"]["name"]) == 253


async def test_a_message_that_comes_back_after_another_one_is_the_newest_again() -> None:
    """Admitted, evicted, and admitted again on the same worker: the last line must not say that it is evicted."""
    async with recorded() as (server, events):
        for note in ("admitted", "evicted", "admitted", "admitted", "evicted"):
            say(events, note)
            await anyio.sleep(20)

    assert server.counts == [("admitted", 1), ("evicted", 1), ("admitted", 2), ("evicted", 1)]


async def test_the_count_and_the_time_of_a_series_go_on_with_few_requests() -> None:
    """As those of Kueue's recorder: one Event, whose age is that of its last repeat."""
    server, start = EventServer(), datetime(2026, 1, 1, tzinfo=UTC)
    events = recorder(server)
    events.clock = lambda: start + timedelta(seconds=anyio.current_time() - began)
    async with running(events.run):
        began = anyio.current_time()
        for _ in range(1200):
            say(events, "waiting")
            await anyio.sleep(1)
        await anyio.sleep(61)

    (event,) = server.events
    assert event["series"] == {"count": 1200, "lastObservedTime": "2026-01-01T00:19:59.000000Z"}
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"
    assert server.patches <= 22


async def test_several_things_that_are_said_again_and_again_are_one_event_each() -> None:
    """A reconcile tells all that is wrong, each time."""
    async with recorded() as (server, events):
        for number in range(100):
            for note in ("a is wrong", "b is wrong", "c is wrong")[number // 50 :]:
                say(events, note)
            await anyio.sleep(5)

    assert server.counts == [("a is wrong", 50), ("b is wrong", 100), ("c is wrong", 100)]


async def test_two_messages_that_take_turns_for_long_are_folded() -> None:
    """Their order is lost in `kubectl describe`, but an API server must not be flooded."""
    async with recorded() as (server, events):
        for number in range(600):
            say(events, ("lost", "found")[number % 2])
            await anyio.sleep(1)
        await anyio.sleep(61)

    assert len(server.events) <= 2 + 20 + 10
    assert sum(count for _, count in server.counts) == 600


async def test_a_series_whose_event_has_expired_is_written_anew() -> None:
    async with recorded() as (server, events):
        say(events, "waiting")
        await anyio.sleep(1)
        server.events.clear()
        say(events, "waiting")
        await anyio.sleep(1)

    assert server.counts == [("waiting", 2)]


async def test_a_repeat_while_the_event_is_being_created_is_counted() -> None:
    async with recorded(latency=5) as (server, events):
        say(events, "waiting")
        await anyio.sleep(1)
        say(events, "waiting")
        await anyio.sleep(15)

    assert server.counts == [("waiting", 2)]


async def test_without_the_permission_to_patch_a_series_is_an_event_each_five_minutes() -> None:
    async with recorded(may_patch=False) as (server, events):
        for _ in range(900):
            say(events, "waiting")
            await anyio.sleep(1)

    assert len(server.events) == 3


async def test_a_shutdown_writes_the_last_counts() -> None:
    async with recorded() as (server, events):
        for _ in range(5):
            say(events, "waiting")
            await anyio.sleep(1)

    assert server.counts == [("waiting", 5)]


async def test_the_same_message_on_the_same_object_is_one_event() -> None:
    async with recorded() as (server, events):
        for _ in range(299):
            say(events, "waiting")
            await anyio.sleep(1)
        say(events, "waiting", CLUSTER)
        say(events, "running")
        await anyio.sleep(2)
        say(events, "waiting")
        await anyio.sleep(1)

    assert [event["note"] for event in server.events] == ["waiting", "waiting", "running", "waiting"]
    assert events.statistics().repeated == 298


async def test_emit_does_not_wait_and_the_oldest_are_dropped_when_too_many_wait() -> None:
    server = EventServer()
    events = recorder(server, capacity=10)
    for number in range(25):
        say(events, f"note {number}")
    assert (events.statistics().waiting, events.statistics().dropped) == (10, 15)

    await run_for(events, 1)
    assert {event["note"] for event in server.events} == {f"note {number}" for number in range(15, 25)}


async def test_a_server_in_trouble_is_asked_again_after_a_while_and_then_left_alone() -> None:
    outcome = await sent("first", errors=[ServerFault("etcd is gone", status=503) for _ in range(ATTEMPTS)])
    assert len(outcome.server.tried_at) == ATTEMPTS
    assert [round(later - earlier, 1) for earlier, later in pairwise(outcome.server.tried_at)] == [2.0, 4.0]
    assert (outcome.counted.sent, outcome.counted.dropped) == (0, 1)


async def test_retry_after_is_respected() -> None:
    outcome = await sent("first", errors=[TooManyRequests("slow down", status=429, retry_after=20.0)])
    first, second = outcome.server.tried_at
    assert (second - first >= 20.0, outcome.counted.sent) == (True, 1)


async def test_an_event_that_may_not_be_written_is_dropped_and_the_next_is_sent() -> None:
    outcome = await sent("first", "second", errors=[Forbidden("namespace is being terminated", status=403)])
    assert (outcome.server.counts, outcome.counted.dropped) == ([("second", 1)], 1)


async def test_a_dropped_message_may_be_said_again() -> None:
    async with recorded(errors=[Forbidden("not yet", status=403)]) as (server, events):
        say(events, "first")
        await anyio.sleep(1)
        say(events, "first")
        await anyio.sleep(1)

    assert [event["note"] for event in server.events] == ["first"]


async def test_an_event_that_is_there_already_counts_as_sent() -> None:
    assert (await sent("first", errors=[AlreadyExists("event exists", status=409)])).counted.sent == 1


async def test_a_shutdown_sends_what_waits_and_what_was_under_way() -> None:
    """The last events of a process tell what it did last: they are worth two seconds."""
    async with recorded(latency=0.5) as (server, events):
        for number in range(8):
            say(events, f"note {number}")
        await anyio.sleep(0.1)

    assert len(server.events) == 8


async def test_a_shutdown_is_not_held_up_by_a_server_that_does_not_answer(looptime: float) -> None:
    async with recorded(latency=1e6) as (_, events):
        say(events, "note")
        await anyio.sleep(1)

    assert looptime <= 3.1
    assert events.statistics().waiting == 1


async def test_who_has_thousands_of_events_drops_none_of_others_and_goes_before_none() -> None:
    """A namespace with a burst of events had another's dropped before they were sent."""
    server = EventServer()
    events = recorder(server, capacity=10)
    metadata = WORKLOAD["metadata"]
    say(events, "mine", {**WORKLOAD, "metadata": {**metadata, "namespace": "victim", "uid": "v"}})
    for number in range(100):
        say(events, f"note {number}", {**WORKLOAD, "metadata": {**metadata, "namespace": "attacker", "uid": "a"}})
    say(events, "mine, too", {**WORKLOAD, "metadata": {**metadata, "namespace": "victim", "uid": "v"}})
    await run_for(events, 1)
    notes = [event["note"] for event in server.events]
    assert len(notes) == 10
    assert max(notes.index("mine"), notes.index("mine, too")) < 4


def test_who_is_told_thousands_of_things_has_none_of_others_forgotten() -> None:
    """What others are told again would be a new Event each time."""

    def series(namespace: str, number: int) -> Series:
        return Series((namespace, f"uid-{number}", "Normal", "MultiKueue", "Said."), {}, 0.0)

    memory, victim = SeriesMemory(), series("victim", 0)
    memory.repeated(victim.message, 0.0, "t")
    memory.begin(victim)
    for number in range(REMEMBERED + 100):
        said = series("attacker", number)
        memory.repeated(said.message, 1.0, "t")
        memory.begin(said)
    assert memory.repeated(victim.message, 2.0, "t") is victim
    assert len(memory.due(2.0)) == 0
    assert memory.repeated(series("attacker", 0).message, 2.0, "t") is None, "its own are"
