"""Caches: what they keep, whom they tell, and when they come back after which failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import (
    ApiError,
    DeadlineExceeded,
    Expired,
    Forbidden,
    NotFound,
    ServerFault,
    TooManyRequests,
    Unreachable,
)
from multikueue.kube import Informer, InformerStatus
from tests.kube.fake_server import HANGS, Broken, FakeServer, Refused, Step, Told, listed, obj, wait

pytestmark = pytest.mark.looptime

KEY = ObjectKey("n", "a")
FOREVER: list[Step] = [wait(1e6)]
BACKOFF = Backoff(base=1, cap=8, reset_after=2)
REFUSED = Backoff(base=30, cap=300)
DOWN = Unreachable("down")


@attrs.define(eq=False)
class Follower:
    """A cache, and what it told."""

    informer: Informer
    changes: list[str] = attrs.field(factory=list)
    states: list[tuple[float, InformerStatus]] = attrs.field(factory=list)

    @property
    def failures(self) -> list[tuple[float, int]]:
        """When the number of failures became what."""
        told = [(0.0, 0)]
        for at, state in self.states:
            if state.failures != told[-1][1]:
                told.append((at, state.failures))
        return told[1:]


@asynccontextmanager
async def following(server: FakeServer, seconds: float, **options: Any) -> AsyncIterator[Follower]:
    """A cache after so many seconds."""

    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        versions = [o["metadata"]["resourceVersion"] if o else "-" for o in (old, new)]
        follower.changes.append(f"{key.name} {'>'.join(versions)}")

    def told(state: InformerStatus) -> None:
        follower.states.append((anyio.current_time(), state))

    cache = Informer(
        server, JOB, on_change=changed, on_status=told, backoff=BACKOFF, refused_backoff=REFUSED, **options
    )
    follower = Follower(cache)
    with anyio.move_on_after(seconds):
        await cache.run()
    yield follower


def asked(server: FakeServer, what: str = "") -> list[float]:
    """When requests came."""
    return [at for at, told in server.log if told.startswith(what)]


async def test_it_lists_once_and_then_follows_from_there() -> None:
    server = FakeServer(
        [listed("5", obj("a", "3"))],
        [[Told("MODIFIED", "6"), Told("ADDED", "7", "b"), Told("DELETED", "8"), Told("BOOKMARK", "9"), *FOREVER]],
    )
    async with following(server, 10) as follower:
        assert follower.changes == ["a ->3", "a 3>6", "b ->7", "a 6>-"]
        assert [job["metadata"]["name"] for job in follower.informer.values()] == ["b"]
        assert follower.informer.resource_version == "9"
        assert server.log == [(0, "list"), (0, "watch 5")]
        assert follower.informer.status == InformerStatus(synced=True, lists=1)


async def test_orderly_ends_are_resumed_at_once_from_the_last_event() -> None:
    """As every half hour; nobody is told of a failure."""
    server = FakeServer([listed("5")], [[Told("ADDED", "6"), Told("BOOKMARK", "9", after=1800)], FOREVER])
    async with following(server, 2000) as follower:
        assert server.log == [(0, "list"), (0, "watch 5"), (1800, "watch 9")]
        assert follower.failures == []


async def test_a_steady_stream_that_is_reset_is_resumed_at_once_and_is_no_failure() -> None:
    """Proxies reset connections; the worker is not lost for it."""
    server = FakeServer([listed("5")], [[Broken(DOWN, after=3)], FOREVER])
    async with following(server, 10) as follower:
        assert asked(server, "watch") == [0, 3]
        assert follower.failures == []


async def test_streams_that_end_at_once_are_asked_for_more_and_more_rarely() -> None:
    """Kueue was seen to reconnect a thousand times a second."""
    server = FakeServer([listed("5")], [[]])
    async with following(server, 30) as follower:
        assert asked(server, "watch") == [0, 1, 3, 7, 15, 23]
        assert follower.failures == [(0, 1), (1, 2), (3, 3), (7, 4), (15, 5), (23, 6)]
        assert follower.informer.status.retry_in == 8


async def test_it_has_recovered_once_a_stream_has_lasted() -> None:
    """Two seconds after it was accepted, whether or not anything happens there."""
    server = FakeServer([DOWN, DOWN, listed("5")], [FOREVER])
    async with following(server, 100) as follower:
        assert asked(server, "list") == [0, 1, 3]
        assert follower.failures == [(0, 1), (1, 2), (5, 0)]
        assert follower.informer.status == InformerStatus(synced=True, lists=1)


async def test_a_server_that_takes_connections_and_says_nothing_has_not_recovered() -> None:
    """However long it takes to find out: waiting is no success."""
    hung = Refused(DeadlineExceeded("hung"), after=30)
    server = FakeServer([listed("5")], [[wait(10), Broken(DeadlineExceeded("silent"))], [hung]])
    async with following(server, 200) as follower:
        assert asked(server, "watch") == [0, 10, 41, 73, 107, 145, 183]
        assert [failures for _, failures in follower.failures] == [1, 2, 3, 4, 5]


async def test_silence_is_no_failure_if_the_server_answers() -> None:
    """Of a kind that nobody uses there are no bookmarks: the worker would be lost every 90 s."""
    server = FakeServer([listed("5")], [[wait(90), Broken(DeadlineExceeded("silent"))], FOREVER], present="7")
    async with following(server, 200) as follower:
        again = [(90, "confirm"), (90, "list"), (90, "watch 5")]
        assert server.log == [(0, "list"), (0, "watch 5"), *again]
        assert follower.failures == []


async def test_a_server_that_fell_silent_for_good_may_take_its_time_once_it_answers_again() -> None:
    """A list of nothing is not always quick: 10 s are for finding out that a server is dead, not for its recovery."""
    steps: list[list[Step]] = [[wait(90), Broken(DeadlineExceeded("silent"))], FOREVER]
    server = FakeServer([listed("5")], steps, present="7", slow=12.0)
    async with following(server, 120) as follower:
        assert server.log[2:] == [(90, "confirm"), (101, "confirm"), (113, "list"), (113, "watch 5")]
        assert follower.failures == [(100, 1), (115, 0)]


@pytest.mark.parametrize(("present", "noticed"), [(DOWN, 7200), (HANGS, 7210)])
async def test_silence_is_a_failure_if_the_server_refuses_or_hangs(present: str | Exception, noticed: float) -> None:
    """However long all was well before."""
    server = FakeServer([listed("5")], [[wait(7200), Broken(DeadlineExceeded("silent"))], FOREVER], present=present)
    async with following(server, 7230) as follower:
        assert asked(server, "confirm")[0] == 7200
        assert follower.failures[0] == (noticed, 1)


async def test_after_a_410_it_lists_at_once_and_tells_only_what_changed() -> None:
    """What is gone is told as deleted, with what it was; what is the same is not told."""
    server = FakeServer(
        [listed("5", obj("a", "1"), obj("b", "2"), obj("c", "3")), listed("9", obj("b", "2"), obj("c", "8"))],
        [[wait(5), Broken(Expired("gone"))], FOREVER],
    )
    async with following(server, 100) as follower:
        assert server.log == [(0, "list"), (0, "watch 5"), (5, "list"), (5, "watch 9")]
        assert follower.changes[3:] == ["c 3>8", "a 1>-"]
        assert follower.failures == []
        assert follower.informer.status.lists == 2


async def test_after_a_break_it_asks_where_the_server_is_and_resumes() -> None:
    """One small request; a list would cost as much as there are objects."""
    server = FakeServer([listed("5")], [[wait(3), Broken(DOWN)], FOREVER], present="5")
    async with following(server, 10) as follower:
        assert server.log == [(0, "list"), (0, "watch 5"), (3, "confirm"), (3, "watch 5")]
        assert follower.failures == []


async def test_a_server_that_was_restored_from_a_backup_is_read_anew() -> None:
    """It is behind what is known: what it lost is told as deleted, and what has the same version by chance as new."""
    before = listed("500", obj("a", "3", uid="1"), obj("b", "400", uid="2"))
    after = listed("77", obj("a", "3", uid="9"))
    server = FakeServer([before, after], [[wait(3), Broken(DOWN)], FOREVER], present="77")
    async with following(server, 10) as follower:
        assert server.log[2:] == [(3, "confirm"), (3, "list"), (3, "watch 77")]
        assert follower.changes == ["a ->3", "b ->400", "a 3>3", "b 400>-"]
        assert (follower.informer.status.histories, follower.informer.resource_version) == (1, "77")


async def test_a_server_that_does_not_say_where_it_is_is_asked_again() -> None:
    server = FakeServer([listed("5")], [[wait(3), Broken(DOWN)], FOREVER], present=DOWN)
    async with following(server, 12) as follower:
        assert asked(server, "confirm") == [3, 4, 6, 10]
        assert follower.informer.status.failures == 4


async def test_a_watch_is_opened_anew_after_its_lifetime() -> None:
    """Up to a fifth earlier, so that not all are at the same time; it is no failure and no break."""
    server = FakeServer([listed("5")], [FOREVER])
    async with following(server, 200, lifetime=100, fraction=lambda: 0.5) as follower:
        assert server.log == [(0, "list"), (0, "watch 5"), (90, "watch 5"), (180, "watch 5")]
        assert follower.failures == []


async def test_a_cache_of_a_server_that_took_anothers_place_notices() -> None:
    """The first list cannot be behind what a cache with the earlier credentials knew, if it is the same server."""
    server = FakeServer([listed("500"), listed("77")], [FOREVER])
    async with following(server, 1) as follower:
        successor = Informer(server, JOB, predecessor=follower.informer)
        with anyio.move_on_after(1):
            await successor.run()
        assert (successor.status.histories, successor.predecessor) == (1, None)


async def test_a_server_that_forgets_what_it_just_listed_is_not_asked_in_a_tight_loop() -> None:
    server = FakeServer([listed("5")], [[Refused(Expired("gone"))]])
    async with following(server, 20):
        assert asked(server, "list") == [0, 0, 1, 3, 7, 15]


@pytest.mark.parametrize("error", [Forbidden("no"), NotFound("no such kind")])
async def test_what_is_refused_is_asked_for_rarely(error: Exception) -> None:
    """Somebody has to grant or install something first."""
    server = FakeServer([error], [FOREVER])
    async with following(server, 1000) as follower:
        assert asked(server) == [0, 30, 90, 210, 450, 750]
        assert follower.informer.status.last_error == str(error)


async def test_refusals_are_counted_anew_after_a_watch_was_established() -> None:
    """An API server that restarts answers 403 for a moment. The next restart must not cost minutes for that."""
    no: Step = Broken(Forbidden("no", status=403), after=10)
    server = FakeServer([listed("5")], [[no]], present="5")
    async with following(server, 200) as follower:
        assert asked(server, "watch") == [0, 40, 80, 120, 160]
        assert follower.informer.status.refusals == 1


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (NotFound("no such kind", status=404), [True, True, True]),
        (Forbidden("no", status=403), [True, True, True]),
        (ServerFault("the kind's webhook fails", status=500), [False, False, True]),
        (Unreachable("connection reset"), [False, False, False]),
    ],
)
async def test_a_refusal_is_told_from_a_line_that_breaks(error: ApiError, refused: list[bool]) -> None:
    """Somebody has to mend the kind on that server; a broken line concerns all kinds, and mends itself."""
    server = FakeServer([error, error, error, listed("5")], [FOREVER])
    async with following(server, 1000) as follower:
        failing = [state.refused for _, state in follower.states if state.failures and not state.synced]
        assert failing == refused
        assert not follower.informer.status.refused


async def test_the_server_may_ask_for_more_time_but_not_for_ever() -> None:
    """Throttled watches, at the start of an API server."""
    patient, mad = TooManyRequests("later", retry_after=20), TooManyRequests("later", retry_after=1e9)
    server = FakeServer([patient, mad, listed("5")], [FOREVER])
    async with following(server, 400):
        assert asked(server, "list") == [0, 20, 320]


async def test_jitter_is_added() -> None:
    server = FakeServer([DOWN], [FOREVER])
    backoff = Backoff(base=10, cap=10, jitter=0.5)
    cache = Informer(server, JOB, backoff=backoff, fraction=lambda: 0.5)
    with anyio.move_on_after(20):
        await cache.run()
    assert asked(server) == [0, 12.5]


async def test_waiting_for_the_first_list_or_the_first_failure() -> None:
    """`wait_settled` lets a program start although a kind is not installed."""
    server = FakeServer([DOWN, listed("5")], [FOREVER])
    cache = Informer(server, JOB, backoff=BACKOFF)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        await cache.wait_settled()
        assert (anyio.current_time(), cache.status.failures, cache.status.synced) == (0, 1, False)
        await cache.wait_synced()
        assert anyio.current_time() == 1
        await cache.wait_settled()
        tasks.cancel_scope.cancel()


async def test_objects_are_found_by_index_as_they_change() -> None:
    """Also where an index says the same thing twice."""

    def by_label(job: Json) -> list[str]:
        value = job["metadata"]["resourceVersion"]
        return [value, value, "all"]

    server = FakeServer([listed("5", obj("a", "3"))], [[Told("MODIFIED", "6"), *FOREVER]])
    async with following(server, 2, indexes={"x": by_label}) as follower:
        assert follower.informer.by("x", "3") == follower.informer.by("y", "3") == []
        assert follower.informer.by("x", "6") == follower.informer.by("x", "all") == [obj("a", "6")]


async def test_only_what_the_transform_keeps_is_kept() -> None:
    def only_a(job: Json) -> Json | None:
        return job if job["metadata"]["name"] == "a" else None

    server = FakeServer([listed("5", obj("a", "3"), obj("b", "3"))], [[Told("ADDED", "6", "c"), *FOREVER]])
    async with following(server, 1, transform=only_a) as follower:
        assert len(follower.informer) == 1
        assert KEY in follower.informer
        assert follower.changes == ["a ->3"]


async def test_managed_fields_are_not_kept() -> None:
    """They are half of an object, and nothing decides by them."""
    server = FakeServer([listed("5", obj("a", "3", managedFields=[{}]))], [FOREVER])
    async with following(server, 1) as follower:
        assert follower.informer.get(KEY) == obj("a", "3")


@pytest.mark.parametrize("steps", [[], [Told("ADDED", "6", "b")]])
async def test_a_handler_that_fails_ends_the_cache(steps: list[Step]) -> None:
    """A bug must be seen, not retried as if the network had failed."""

    def broken(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if key.name == "b" or not steps:
            raise ValueError("bug")

    cache = Informer(FakeServer([listed("5", obj("a", "3"))], [steps]), JOB, on_change=broken)
    with pytest.raises((ValueError, ExceptionGroup)) as caught:
        await cache.run()
    assert "bug" in repr(caught.value)
