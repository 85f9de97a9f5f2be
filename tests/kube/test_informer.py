"""Informers: what they store, which handlers they call, and when they retry after which failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey, Resource
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
from multikueue.kube.informers.shared_parts import BREATH
from multikueue.protocols import ObjectList
from tests.kube.fake_server import HANGS, Broken, FakeServer, Refused, Step, Told, listed, obj, wait

pytestmark = pytest.mark.looptime

KEY = ObjectKey("n", "a")
FOREVER: list[Step] = [wait(1e6)]
BACKOFF = Backoff(base=1, cap=8, reset_after=2)
REFUSED = Backoff(base=30, cap=300)
DOWN = Unreachable("down")


@attrs.define(eq=False)
class Recorder:
    """An informer, and what its handlers got."""

    informer: Informer
    changes: list[str] = attrs.field(factory=list)
    states: list[tuple[float, InformerStatus]] = attrs.field(factory=list)

    @property
    def failures(self) -> list[tuple[float, int]]:
        """Each new number of failures, and when."""
        counted = [(0.0, 0)]
        for at, state in self.states:
            if state.failures != counted[-1][1]:
                counted.append((at, state.failures))
        return counted[1:]


@asynccontextmanager
async def running(server: FakeServer, seconds: float, **options: Any) -> AsyncIterator[Recorder]:
    """An informer that has run for some seconds."""

    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        versions = [o["metadata"]["resourceVersion"] if o else "-" for o in (old, new)]
        recorder.changes.append(f"{key.name} {'>'.join(versions)}")

    def status_changed(state: InformerStatus) -> None:
        recorder.states.append((anyio.current_time(), state))

    informer = Informer(
        server, JOB, on_change=changed, on_status=status_changed, backoff=BACKOFF, refused_backoff=REFUSED, **options
    )
    recorder = Recorder(informer)
    with anyio.move_on_after(seconds):
        await informer.run()
    yield recorder


def asked(server: FakeServer, what: str = "") -> list[float]:
    """When the server got requests."""
    return [at for at, line in server.log if line.startswith(what)]


async def test_it_lists_once_and_watches_from_there() -> None:
    server = FakeServer(
        [listed("5", obj("a", "3"))],
        [[Told("MODIFIED", "6"), Told("ADDED", "7", "b"), Told("DELETED", "8"), Told("BOOKMARK", "9"), *FOREVER]],
    )
    async with running(server, 10) as recorder:
        assert recorder.changes == ["a ->3", "a 3>6", "b ->7", "a 6>-"]
        assert [job["metadata"]["name"] for job in recorder.informer.values()] == ["b"]
        assert recorder.informer.resource_version == "9"
        assert server.log == [(0, "list"), (0, "watch 5")]
        assert recorder.informer.status == InformerStatus(synced=True, lists=1)


async def test_orderly_ends_are_resumed_at_once_from_the_last_event() -> None:
    """API servers end watches every half hour. `on_status` gets no failure."""
    server = FakeServer([listed("5")], [[Told("ADDED", "6"), Told("BOOKMARK", "9", after=1800)], FOREVER])
    async with running(server, 2000) as recorder:
        assert server.log == [(0, "list"), (0, "watch 5"), (1800, "watch 9")]
        assert recorder.failures == []


async def test_an_established_watch_that_is_reset_is_resumed_at_once_and_is_no_failure() -> None:
    """Proxies reset connections. The worker must not be lost for that."""
    server = FakeServer([listed("5")], [[Broken(DOWN, after=3)], FOREVER])
    async with running(server, 10) as recorder:
        assert asked(server, "watch") == [0, 3]
        assert recorder.failures == []


async def test_streams_that_end_at_once_are_asked_for_more_and_more_rarely() -> None:
    """Kueue was seen to reconnect a thousand times a second."""
    server = FakeServer([listed("5")], [[]])
    async with running(server, 30) as recorder:
        assert asked(server, "watch") == [0, 1, 3, 7, 15, 23]
        assert recorder.failures == [(0, 1), (1, 2), (3, 3), (7, 4), (15, 5), (23, 6)]
        assert recorder.informer.status.retry_in == 8


async def test_it_has_recovered_once_a_watch_is_established() -> None:
    """Two seconds after the server accepted it, with or without events."""
    server = FakeServer([DOWN, DOWN, listed("5")], [FOREVER])
    async with running(server, 100) as recorder:
        assert asked(server, "list") == [0, 1, 3]
        assert recorder.failures == [(0, 1), (1, 2), (5, 0)]
        assert recorder.informer.status == InformerStatus(synced=True, lists=1)


async def test_a_server_that_accepts_connections_and_sends_nothing_has_not_recovered() -> None:
    """However long the requests hang."""
    hung = Refused(DeadlineExceeded("hung"), after=30)
    server = FakeServer([listed("5")], [[wait(10), Broken(DeadlineExceeded("silent"))], [hung]])
    async with running(server, 200) as recorder:
        assert asked(server, "watch") == [0, 10, 41, 73, 107, 145, 183]
        assert [failures for _, failures in recorder.failures] == [1, 2, 3, 4, 5]


async def test_silence_is_no_failure_if_the_server_answers() -> None:
    """A kind that nobody uses gets no bookmarks: the worker would be lost every 90 s."""
    server = FakeServer([listed("5")], [[wait(90), Broken(DeadlineExceeded("silent"))], FOREVER], present="7")
    async with running(server, 200) as recorder:
        again = [(90, "probe"), (90, "list"), (90, "watch 5")]
        assert server.log == [(0, "list"), (0, "watch 5"), *again]
        assert recorder.failures == []


async def test_only_the_first_probe_after_silence_has_the_short_deadline() -> None:
    """The 20 s are for detecting a dead server. A server that recovers may take longer for the probe."""
    steps: list[list[Step]] = [[wait(90), Broken(DeadlineExceeded("silent"))], FOREVER]
    server = FakeServer([listed("5")], steps, present="7", slow=22.0)
    async with running(server, 140) as recorder:
        assert server.log[2:] == [(90, "probe"), (111, "list"), (111, "watch 5")]
        assert recorder.failures == [(110, 1), (113, 0)]


async def test_a_request_that_is_given_up_has_failed() -> None:
    """Somebody else knows that the server does not answer, and when it did last: here ten seconds before."""
    server = FakeServer([listed("5")], [FOREVER, FOREVER], present="5")
    informer = Informer(server, JOB, backoff=BACKOFF, heard_at=lambda: 50.0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await anyio.sleep(60)
        informer.abandon(DeadlineExceeded("no answer to anything"))
        await anyio.sleep(0.5)
        status = informer.status
        assert (status.failures, status.last_error, status.silent_for) == (1, "no answer to anything", 10.0)
        await anyio.sleep(30)
        assert server.log[2:] == [(61, "probe"), (61, "watch 5")]
        assert (informer.status.failures, informer.status.silent_for) == (0, 0.0)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("present", "noticed"), [(DOWN, 7200), (HANGS, 7220)])
async def test_silence_is_a_failure_if_the_server_refuses_or_hangs(present: str | Exception, noticed: float) -> None:
    """However long the watch was open before."""
    server = FakeServer([listed("5")], [[wait(7200), Broken(DeadlineExceeded("silent"))], FOREVER], present=present)
    async with running(server, 7240) as recorder:
        assert asked(server, "probe")[0] == 7200
        assert recorder.failures[0] == (noticed, 1)


async def test_after_a_410_it_lists_at_once_and_handlers_get_only_the_changes() -> None:
    """Handlers get a vanished object as deleted, and nothing for an unchanged one."""
    server = FakeServer(
        [listed("5", obj("a", "1"), obj("b", "2"), obj("c", "3")), listed("9", obj("b", "2"), obj("c", "8"))],
        [[wait(5), Broken(Expired("gone"))], FOREVER],
    )
    async with running(server, 100) as recorder:
        assert server.log == [(0, "list"), (0, "watch 5"), (5, "list"), (5, "watch 9")]
        assert recorder.changes[3:] == ["c 3>8", "a 1>-"]
        assert recorder.failures == []
        assert recorder.informer.status.lists == 2


async def test_after_a_reset_it_probes_the_server_and_resumes() -> None:
    """The probe is one small request. A list would return all objects."""
    server = FakeServer([listed("5")], [[wait(3), Broken(DOWN)], FOREVER], present="5")
    async with running(server, 10) as recorder:
        assert server.log == [(0, "list"), (0, "watch 5"), (3, "probe"), (3, "watch 5")]
        assert recorder.failures == []


async def test_a_server_that_was_restored_from_a_backup_is_listed_again() -> None:
    """Its resourceVersion went backwards. Lost objects are deleted; another object with an old version is a change."""
    before = listed("500", obj("a", "3", uid="1"), obj("b", "400", uid="2"))
    after = listed("77", obj("a", "3", uid="9"))
    server = FakeServer([before, after], [[wait(3), Broken(DOWN)], FOREVER], present="77")
    async with running(server, 10) as recorder:
        assert server.log[2:] == [(3, "probe"), (3, "list"), (3, "watch 77")]
        assert recorder.changes == ["a ->3", "b ->400", "a 3>3", "b 400>-"]
        assert (recorder.informer.status.histories, recorder.informer.resource_version) == (1, "77")


class Away(FakeServer):
    """It takes no request from the third second to the ninth."""

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        answer = await super().list(resource, **options)
        if 3 <= anyio.current_time() < 9:
            raise DOWN
        return answer


async def test_what_happened_while_the_server_was_away_is_known_before_it_counts_as_back() -> None:
    """A watch counts as established two seconds after it is accepted, and here its first event comes 25 s later: the
    kind was served by then, with its objects as they were before the server was lost (simulation, seed 5021)."""
    was, missed = listed("5", obj("a", "3")), listed("9", obj("a", "8"))
    late: list[Step] = [wait(25), Told("MODIFIED", "8"), *FOREVER]
    server = Away([was, missed], [[wait(3), Broken(DOWN)], late], present="9")
    async with running(server, 20) as recorder:
        assert recorder.failures == [(3, 1), (4, 2), (6, 3), (12, 0)]
        assert recorder.changes == ["a ->3", "a 3>8"]
        assert server.log[2:] == [(3, "probe"), (4, "list"), (6, "list"), (10, "list"), (10, "watch 9")]


async def test_a_watch_is_renewed_after_its_lifetime() -> None:
    """Up to a fifth earlier, so that not all are renewed at the same time. It is no failure and needs no probe."""
    server = FakeServer([listed("5")], [FOREVER])
    async with running(server, 200, lifetime=100, fraction=lambda: 0.5) as recorder:
        assert server.log == [(0, "list"), (0, "watch 5"), (90, "watch 5"), (180, "watch 5")]
        assert recorder.failures == []


async def test_an_informer_notices_that_its_predecessors_server_was_replaced() -> None:
    """On the same server, the first list cannot be behind what the predecessor has read."""
    server = FakeServer([listed("500"), listed("77")], [FOREVER])
    async with running(server, 1) as recorder:
        successor = Informer(server, JOB, predecessor=recorder.informer)
        with anyio.move_on_after(1):
            await successor.run()
        assert (successor.status.histories, successor.predecessor) == (1, None)


async def test_what_went_or_was_replaced_since_its_predecessor_read_last_is_told_first() -> None:
    """A worker's kubeconfig was replaced meanwhile, and nobody was told of a job copy that had been deleted."""
    before = listed("5", obj("a", "2", uid="a1"), obj("b", "3", uid="b1"), obj("c", "4", uid="c1"))
    server = FakeServer([before, listed("9", obj("b", "3", uid="b1"), obj("c", "8", uid="c2"))], [FOREVER])
    async with running(server, 1) as earlier, running(server, 1, predecessor=earlier.informer) as successor:
        assert successor.changes == ["a 2>-", "c 4>-", "b ->3", "c ->8"]


async def test_a_410_right_after_each_list_causes_no_tight_loop() -> None:
    server = FakeServer([listed("5")], [[Refused(Expired("gone"))]])
    async with running(server, 20):
        assert asked(server, "list") == [0, 0, 1, 3, 7, 15]


@pytest.mark.parametrize("error", [Forbidden("no"), NotFound("no such kind")])
async def test_after_a_refusal_it_retries_rarely(error: Exception) -> None:
    """Somebody must grant or install something first."""
    server = FakeServer([error], [FOREVER])
    async with running(server, 1000) as recorder:
        assert asked(server) == [0, 30, 90, 210, 450, 750]
        assert recorder.informer.status.last_error == str(error)


async def test_refusals_are_counted_anew_after_a_watch_was_established() -> None:
    """An API server that restarts answers 403 for a moment. The next restart must not cost minutes for that."""
    no: Step = Broken(Forbidden("no", status=403), after=10)
    server = FakeServer([listed("5")], [[no]], present="5")
    async with running(server, 200) as recorder:
        assert asked(server, "watch") == [0, 40, 80, 120, 160]
        assert recorder.informer.status.refusals == 1


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (NotFound("no such kind", status=404), [True, True, True]),
        (Forbidden("no", status=403), [True, True, True]),
        (ServerFault("the kind's webhook fails", status=500), [False, False, True]),
        (Unreachable("connection reset"), [False, False, False]),
    ],
)
async def test_a_refusal_differs_from_a_broken_connection(error: ApiError, refused: list[bool]) -> None:
    """A refusal needs somebody to act on that server. A broken connection affects all kinds, and recovers by itself."""
    server = FakeServer([error, error, error, listed("5")], [FOREVER])
    async with running(server, 1000) as recorder:
        failing = [state.refused for _, state in recorder.states if state.failures and not state.synced]
        assert failing == refused
        assert not recorder.informer.status.refused


async def test_retry_after_is_honoured_up_to_a_limit() -> None:
    """API servers throttle watches while they start."""
    patient, mad = TooManyRequests("later", retry_after=20), TooManyRequests("later", retry_after=1e9)
    server = FakeServer([patient, mad, listed("5")], [FOREVER])
    async with running(server, 400):
        assert asked(server, "list") == [0, 20, 320]


async def test_jitter_is_added() -> None:
    server = FakeServer([DOWN], [FOREVER])
    backoff = Backoff(base=10, cap=10, jitter=0.5)
    informer = Informer(server, JOB, backoff=backoff, fraction=lambda: 0.5)
    with anyio.move_on_after(20):
        await informer.run()
    assert asked(server) == [0, 12.5]


async def test_waiting_for_the_first_list_or_the_first_failure() -> None:
    """`wait_settled` lets a program start although a kind is not installed."""
    server = FakeServer([DOWN, listed("5")], [FOREVER])
    informer = Informer(server, JOB, backoff=BACKOFF)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.wait_settled()
        assert (anyio.current_time(), informer.status.failures, informer.status.synced) == (0, 1, False)
        await informer.wait_synced()
        assert anyio.current_time() == 1
        await informer.wait_settled()
        tasks.cancel_scope.cancel()


async def test_objects_are_found_by_index_as_they_change() -> None:
    """Also where an index function returns a value twice."""

    def by_label(job: Json) -> list[str]:
        value = job["metadata"]["resourceVersion"]
        return [value, value, "all"]

    server = FakeServer([listed("5", obj("a", "3"))], [[Told("MODIFIED", "6"), *FOREVER]])
    async with running(server, 2, indexes={"x": by_label}) as recorder:
        assert recorder.informer.by("x", "3") == recorder.informer.by("y", "3") == []
        assert recorder.informer.by("x", "6") == recorder.informer.by("x", "all") == [obj("a", "6")]


async def test_only_what_the_transform_returns_is_stored() -> None:
    def only_a(job: Json) -> Json | None:
        return job if job["metadata"]["name"] == "a" else None

    server = FakeServer([listed("5", obj("a", "3"), obj("b", "3"))], [[Told("ADDED", "6", "c"), *FOREVER]])
    async with running(server, 1, transform=only_a) as recorder:
        assert len(recorder.informer) == 1
        assert KEY in recorder.informer
        assert recorder.changes == ["a ->3"]


async def test_managed_fields_are_not_stored() -> None:
    """They are half of an object's size, and no decision reads them."""
    server = FakeServer([listed("5", obj("a", "3", managedFields=[{}]))], [FOREVER])
    async with running(server, 1) as recorder:
        assert recorder.informer.get(KEY) == obj("a", "3")


@pytest.mark.parametrize("steps", [[], [Told("ADDED", "6", "b")]])
async def test_a_handler_that_raises_ends_the_informer(steps: list[Step]) -> None:
    """A bug must be seen, not retried as if the network had failed."""

    def broken(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if key.name == "b" or not steps:
            raise ValueError("bug")

    informer = Informer(FakeServer([listed("5", obj("a", "3"))], [steps]), JOB, on_change=broken)
    with pytest.raises((ValueError, ExceptionGroup)) as caught:
        await informer.run()
    assert "bug" in repr(caught.value)


async def test_others_run_while_a_long_list_is_compared_and_nobody_sees_half_of_it() -> None:
    """A list of one worker stopped the loop for as long as sharing took: 64 MB for 5.8 s, and a Lease is lost at 10."""
    objects = [obj(f"a{number}", "3") for number in range(1_000)]
    informer = Informer(FakeServer([listed("5", *objects)], [FOREVER]), JOB)
    turns, seen = 0, set[int]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        while not informer.status.synced:
            turns += 1
            seen.add(len(informer))
            await anyio.lowlevel.checkpoint()
        seen.add(len(informer))
        tasks.cancel_scope.cancel()
    assert turns > len(objects) / BREATH
    assert seen == {0, len(objects)}


async def test_nobody_subscribes_once_it_runs() -> None:
    informer = Informer(FakeServer([listed("5")], [FOREVER]), JOB)
    async with anyio.create_task_group() as tasks:
        await tasks.start(informer.run)
        with pytest.raises(RuntimeError):
            informer.subscribe(print)
        with pytest.raises(RuntimeError):
            informer.subscribe_status(print)
        tasks.cancel_scope.cancel()
