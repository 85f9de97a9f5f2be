"""WorkerExecutor: a slow or failing worker holds up its own part of a plan and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
import structlog

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.errors import ApiError, Conflict, Forbidden, NotSent, ServerFault
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.workers import executor as worker_executor
from multikueue.runtime.workers.executor import PLACES, SHARE, UNKNOWN_SHARE, WorkerBackoffs, WorkerExecutor
from multikueue.testing.waiting import background
from tests.core.door import (
    MANAGER,
    AnnounceWorkload,
    ApplyStatus,
    CreateJob,
    CreateWorkload,
    Creating,
    DeleteWorkload,
    Effect,
    Idle,
    InFlight,
    OutcomeUnknown,
    Removing,
    WritingStatus,
)

pytestmark = pytest.mark.looptime

KEY, OTHER = ObjectKey("default", "wl"), ObjectKey("default", "other")
W1, W2 = ClusterName("w1"), ClusterName("w2")


class FakeShares:
    """Notes for which Workloads what was reserved is settled."""

    def __init__(self) -> None:
        self.settled: list[ObjectKey] = []

    def expect(self, *_: Any) -> None:
        """A copy will be made: that it is counted is shown in `runtime/test_shares`."""

    def settle(self, key: ObjectKey) -> None:
        self.settled.append(key)


class FakeEffects(EffectExecutor):
    """Does what the test says, and notes when."""

    def __init__(self, act: Callable[[Effect], float | Exception]) -> None:
        self.act = act
        self.done: list[tuple[float, str, str]] = []
        self.again: list[bool] = []
        self.shares = FakeShares()

    def target(self, _: ClusterName) -> Any:
        """Of a worker: all that is asked of it here is the account of its shares."""
        return self.shares

    async def execute(self, workload: Json | None, effects: tuple[Effect, ...], *, again: bool = False) -> None:
        self.again.append(again)
        for effect in effects:
            outcome = self.act(effect)
            if isinstance(outcome, Exception):
                raise outcome
            await anyio.sleep(outcome)
            self.done.append((anyio.current_time(), effect.cluster, type(effect).__name__))


@attrs.define(eq=False)
class World:
    """WorkerExecutor, and the keys they ask to be planned again."""

    effects: FakeEffects
    again: list[tuple[float, ObjectKey, float]] = attrs.field(factory=list)

    @asynccontextmanager
    async def executing(self) -> AsyncIterator[WorkerExecutor]:
        def enqueue(_cluster: ClusterName, key: ObjectKey, after: float) -> bool:
            self.again.append((anyio.current_time(), key, after))
            return True

        executor = WorkerExecutor(self.effects, enqueue, WorkerBackoffs(Backoff(base=1, cap=60)))
        async with background() as tasks:
            await tasks.start(executor.run)
            yield executor


async def test_a_worker_that_hangs_delays_neither_the_other_nor_the_reconcile() -> None:
    """kueue#11206: one hung worker stopped all admission for 90 minutes."""
    world = World(FakeEffects(lambda effect: 30.0 if effect.cluster == W1 else 0.1))
    async with world.executing() as executor:
        await executor.execute(
            KEY, None, (CreateWorkload(W1, {}), CreateWorkload(W2, {}), AnnounceWorkload("Normal", "hello"))
        )
        assert anyio.current_time() == pytest.approx(0.1)
        await executor.wait_idle()

    assert {(round(at, 1), cluster) for at, cluster, _ in world.effects.done} == {(0.1, W2), (0.1, ""), (30, W1)}


async def test_a_part_that_is_under_way_is_not_given_more_and_is_planned_again_when_it_is_free() -> None:
    """The answer to the first write decides what comes next; asking twice would double it."""
    world = World(FakeEffects(lambda _effect: 5.0))
    async with world.executing() as executor:
        await executor.execute(KEY, None, (CreateWorkload(W1, {}),))
        await executor.execute(KEY, None, (CreateWorkload(W1, {}),))
        await executor.execute(OTHER, None, (CreateWorkload(W1, {}),))
        await executor.wait_idle()

    assert [at for at, _, _ in world.effects.done] == [5, 5]
    assert world.again == [(5, KEY, 0)]


async def test_a_part_hears_that_it_has_failed_before() -> None:
    """A stop that meets a newer copy each time counts as refused then: else nothing would ever be deleted."""
    outcomes: list[float | Exception] = [Conflict("newer", status=409), 0.0, 0.0]
    world = World(FakeEffects(lambda _effect: outcomes.pop(0)))
    async with world.executing() as executor:
        for _ in range(3):
            await executor.execute(KEY, None, (CreateWorkload(W1, {}),))
            await anyio.sleep(2)

    assert world.effects.again == [False, True, False]


async def test_a_part_that_fails_backs_off_alone() -> None:
    """The same Workload goes on elsewhere; the failing worker is asked 1, 2, 4 s later, not at every event."""
    fault = ServerFault("broken", status=500)
    world = World(FakeEffects(lambda effect: fault if effect.cluster == W1 else 0.0))
    async with world.executing() as executor:
        for _ in range(10):
            await executor.execute(KEY, None, (CreateWorkload(W1, {}), CreateWorkload(W2, {})))
            await anyio.sleep(0.5)

    assert len(world.effects.done) == 10
    assert sorted({at + after for at, _, after in world.again}) == [1, 3, 7]


async def test_an_event_during_the_back_off_does_not_lose_the_retry() -> None:
    """A key that is planned earlier is not planned later as well: who finds its part waiting asks for that again."""
    fault = ServerFault("broken", status=500)
    world = World(FakeEffects(lambda _effect: fault))
    async with world.executing() as executor:
        await executor.execute(KEY, None, (CreateWorkload(W1, {}),))
        await anyio.sleep(0.25)
        await executor.execute(KEY, None, (CreateWorkload(W1, {}),))

    assert world.again == [(0, KEY, 1), (0.25, KEY, 0.75)]


async def test_a_worker_that_is_back_is_asked_at_once() -> None:
    """Nobody waits out a back-off that has lost its reason."""
    world = World(FakeEffects(lambda _effect: ServerFault("broken", status=500)))
    async with world.executing() as executor:
        for _ in range(2):
            await executor.execute(KEY, None, (CreateWorkload(W1, {}),))
            await executor.wait_idle()
            executor.backoffs.connected(W1)

    assert [after for _, _, after in world.again] == [1, 1]


async def test_a_job_that_is_being_created_is_known_to_be() -> None:
    """Until the answer is there no other worker may get it."""
    world = World(FakeEffects(lambda _effect: 5.0))
    async with world.executing() as executor:
        await executor.execute(KEY, None, (CreateJob(W1, JOB, {}),))
        assert executor.in_flight(W1, KEY) == Creating()
        assert executor.in_flight(W2, KEY) == Idle()
        await executor.wait_idle()
        assert executor.in_flight(W1, KEY) == Idle()


async def test_a_failure_on_the_manager_is_the_reconciles() -> None:
    """The controller backs off the whole key: what was decided may be out of date."""
    world = World(FakeEffects(lambda _effect: ServerFault("broken", status=500)))
    async with world.executing() as executor:
        with pytest.raises(ServerFault):
            await executor.execute(KEY, None, (ApplyStatus(MANAGER, {}, "kueue-admission"),))


async def test_a_copy_that_is_being_removed_is_known_to_be() -> None:
    """Until it is gone it looks as if its worker could still win."""
    async with World(FakeEffects(lambda _effect: 5.0)).executing() as executor:
        await executor.execute(KEY, None, (DeleteWorkload(W1, KEY, "uid"),))
        assert executor.in_flight(W1, KEY) == Removing()
        assert executor.in_flight(W2, KEY) == Idle()
        await executor.wait_idle()
        assert executor.in_flight(W1, KEY) == Idle()


GATED: Json = {"spec": {"preemptionGates": [{"name": "gate"}]}}


@pytest.mark.parametrize(
    ("effect", "preempts"),
    [
        (ApplyStatus(W1, {}, "kueue-admission"), True),
        (CreateWorkload(W1, {"spec": {}}), True),
        (CreateWorkload(W1, GATED), False),
    ],
    ids=["a status", "a copy", "a copy with a gate"],
)
async def test_what_may_let_a_worker_preempt_is_known_while_it_is_under_way(effect: Effect, preempts: bool) -> None:
    """Until the answer is there no other worker's gate may be opened."""
    async with World(FakeEffects(lambda _effect: 5.0)).executing() as executor:
        await executor.execute(KEY, None, (effect,))
        assert executor.in_flight(W1, KEY) == WritingStatus(may_preempt=preempts)
        assert executor.in_flight(W2, KEY) == Idle()
        await executor.wait_idle()
        assert executor.in_flight(W1, KEY) == Idle()


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (Conflict("modified", status=409), OutcomeUnknown()),
        (ServerFault("no answer"), OutcomeUnknown()),
        (Forbidden("no", status=403), Idle()),
        (NotSent("no connection"), Idle()),
    ],
    ids=["conflict", "no answer", "refused", "not sent"],
)
async def test_what_failed_may_have_been_done_for_ten_seconds(error: ApiError, state: InFlight) -> None:
    """A request that is sent twice conflicts with itself."""
    async with World(FakeEffects(lambda _effect: error)).executing() as executor:
        await executor.execute(KEY, None, (ApplyStatus(W1, {}, "kueue-admission"),))
        await executor.wait_idle()
        assert executor.in_flight(W1, KEY) == state
        await anyio.sleep(10)
        assert executor.in_flight(W1, KEY) == Idle()


async def test_a_refusal_takes_no_doubt_away() -> None:
    """What was sent before may come late: the refusal is of the second request."""
    errors = [ServerFault("no answer"), Forbidden("no", status=403)]
    async with World(FakeEffects(lambda _effect: errors.pop(0))).executing() as executor:
        for seconds in (1, 9):
            await executor.execute(KEY, None, (ApplyStatus(W1, {}, "kueue-admission"),))
            await executor.wait_idle()
            assert executor.in_flight(W1, KEY) == OutcomeUnknown()
            await anyio.sleep(seconds)
        assert executor.in_flight(W1, KEY) == Idle()


async def test_parts_nobody_comes_back_to_are_forgotten() -> None:
    """A worker that refuses what others run would cost memory for every job there ever was."""
    world = World(FakeEffects(lambda _effect: Forbidden("no")))
    async with world.executing() as executor:
        for number in range(50):
            await executor.execute(ObjectKey("default", f"job-{number}"), None, (CreateWorkload(W1, {}),))
            await anyio.sleep(60)
    assert len(executor.backoffs) < 15


async def test_a_parts_log_lines_say_its_worker_and_workload_and_not_which_reconcile_began_it() -> None:
    """It goes on when that reconcile, and its back-off, have ended; nothing it starts may log in its name."""
    contexts: list[dict[str, object]] = []

    def note(effect: Effect) -> float:
        contexts.append(structlog.contextvars.get_contextvars())
        return 1.0

    async with World(FakeEffects(note)).executing() as executor:
        with structlog.contextvars.bound_contextvars(controller="workloads", key="default/wl", attempt=3):
            await executor.execute(KEY, None, (CreateWorkload(W1, {}), AnnounceWorkload("Normal", "hello")))
        await executor.wait_idle()

    of_the_reconcile = {"controller": "workloads", "key": "default/wl", "attempt": 3}
    assert contexts == [of_the_reconcile, {"cluster": W1, "key": "default/wl"}]


def keys(namespace: str, number: int) -> list[ObjectKey]:
    """So many Workloads of a namespace."""
    return [ObjectKey(namespace, f"wl-{index}") for index in range(number)]


async def test_a_worker_that_hangs_has_so_many_tasks_and_no_more() -> None:
    """4,000 invented Workloads a second were as many tasks. Other namespaces and workers have room beside them."""
    world = World(FakeEffects(lambda effect: 30.0 if effect.cluster == W1 else 0.1))
    delete, create = DeleteWorkload(W1, KEY, "uid"), CreateWorkload(W1, {})
    async with world.executing() as executor:
        for key in keys("invented", 2 * UNKNOWN_SHARE):
            await executor.execute(key, None, (delete,))
        assert executor.in_flight_on(W1) == UNKNOWN_SHARE
        for key in keys("big", 2 * SHARE):
            await executor.execute(key, {}, (create,))
        assert executor.in_flight_on(W1) == UNKNOWN_SHARE + SHARE
        await executor.execute(KEY, {}, (create, CreateWorkload(W2, {})))
        assert executor.in_flight_on(W1) == UNKNOWN_SHARE + SHARE + 1
        assert executor.in_flight_on(W2) == 1
        for number in range(PLACES):
            await executor.execute(ObjectKey(f"team-{number}", "wl"), {}, (create,))
        assert executor.in_flight_on(W1) == PLACES
        await anyio.sleep(29.0)
        assert world.again == []


async def test_whoever_found_no_place_is_planned_again_when_there_is_one() -> None:
    """Only its key is kept: by then the plan may be another, or empty, and then the next one is asked."""
    world = World(FakeEffects(lambda _: 30.0))
    delete = DeleteWorkload(W1, KEY, "uid")
    inside, outside = keys("inside", UNKNOWN_SHARE), keys("outside", 3)
    async with world.executing() as executor:
        for number, key in enumerate((*inside, *outside)):
            await executor.execute(key, None, (delete,))
            await anyio.sleep(1.0 if number == 0 else 0.0)
        await anyio.sleep(29.5)  # the first has ended
        assert [key for _, key, _ in world.again] == outside[:1]
        await executor.execute(outside[0], None, ())
        assert [key for _, key, _ in world.again] == outside[:2]
        executor.withdraw(outside[1])
        assert [key for _, key, _ in world.again] == outside
        await executor.execute(outside[2], None, (delete,))
        assert (executor.in_flight_on(W1), executor.waiting) == (UNKNOWN_SHARE, 0)
        await executor.wait_idle()
        assert executor.in_flight_on(W1) == 0


async def test_whoever_cannot_be_planned_again_keeps_no_place() -> None:
    """So many wait at that worker's expense already; the collection of garbage finds the rest."""
    executor = WorkerExecutor(FakeEffects(lambda _: 30.0), lambda *_: False, WorkerBackoffs())
    async with background() as tasks:
        await tasks.start(executor.run)
        for key in keys("invented", 3 * UNKNOWN_SHARE):
            await executor.execute(key, None, (DeleteWorkload(W1, KEY, "uid"),))
        await executor.wait_idle()
        assert executor.waiting == 0


async def test_of_the_failures_on_one_worker_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that refuses whatever is done for ever new names."""
    monkeypatch.setattr(worker_executor, "FAILED", 3)
    backoffs = WorkerBackoffs(Backoff(base=1, cap=60))
    backoffs.failed((W2, KEY), ServerFault("down", status=500))
    for key in keys("invented", 10):
        backoffs.failed((W1, key), ServerFault("down", status=500))
    assert len(backoffs) == 4
    assert backoffs.left((W2, KEY)) == 1.0
    assert [backoffs.left((W1, key)) for key in keys("invented", 10)[-4:]] == [0.0, 1.0, 1.0, 1.0]


async def test_of_parts_that_succeed_nothing_is_remembered() -> None:
    """Neither of the worker, once none of its parts fails; the others keep theirs, and their back-off grows."""
    backoffs, fault = WorkerBackoffs(Backoff(base=1, cap=60)), ServerFault("down", status=500)
    for part in ((W1, KEY), (W1, OTHER), (W2, KEY)):
        assert backoffs.failed(part, fault) == 1.0
    backoffs.succeeded((W1, KEY))
    backoffs.succeeded((W1, ObjectKey("default", "never failed")))
    assert (backoffs.left((W1, KEY)), backoffs.left((W1, OTHER)), len(backoffs)) == (0.0, 1.0, 2)
    assert backoffs.failed((W1, OTHER), fault) == 2.0
    backoffs.forget(OTHER)
    assert (list(backoffs._failed), len(backoffs)) == ([W2], 1)
    backoffs.connected(W1)
    backoffs.connected(W2)
    assert len(backoffs) == 0


@pytest.mark.parametrize(("after", "seconds"), [(None, 1.0), (0.5, 1.0), (7.0, 7.0)])
async def test_a_worker_that_says_how_long_to_wait_is_not_asked_earlier(after: float | None, seconds: float) -> None:
    backoffs = WorkerBackoffs(Backoff(base=1, cap=60))
    assert backoffs.failed((W1, KEY), ServerFault("busy", status=503, retry_after=after)) == seconds
    assert backoffs.left((W1, KEY)) == seconds


async def test_a_failure_is_logged_when_it_is_new() -> None:
    """A conflict never is: whoever has changed the object has an event of it."""
    backoffs = WorkerBackoffs(Backoff(base=1, cap=60))
    errors = [ServerFault("a", status=500), ServerFault("a", status=500), ServerFault("b", status=500)]
    with structlog.testing.capture_logs() as lines:
        for error in (*errors, Conflict("c", status=409), ValueError("a bug")):
            backoffs.failed((W1, KEY), error)
    assert [line["log_level"] for line in lines if line["log_level"] != "debug"] == ["info", "info", "error"]
    assert [line.get("error") for line in lines if line["log_level"] == "info"] == ["a", "b"]
