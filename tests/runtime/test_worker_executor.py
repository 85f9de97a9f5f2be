"""WorkerExecutor: a slow or failing worker holds up its own lane and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import anyio
import attrs
import pytest

from multikueue.core.machinery.backoff import Backoff
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.workload.effects import (
    MANAGER,
    Announce,
    ApplyStatus,
    CreateJob,
    CreateWorkload,
    DeleteWorkload,
    Effect,
)
from multikueue.errors import DeadlineExceeded, Forbidden, NotSent, ServerFault, TooManyRequests, Unreachable
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.worker_executor import WorkerExecutor

pytestmark = pytest.mark.looptime

KEY, OTHER = ObjectKey("default", "wl"), ObjectKey("default", "other")
W1, W2 = ClusterName("w1"), ClusterName("w2")


class FakePerformer(EffectExecutor):
    """Does what the test says, and notes when."""

    def __init__(self, act: Callable[[Effect], float | Exception]) -> None:
        self.act = act
        self.done: list[tuple[float, str, str]] = []

    async def perform(self, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            outcome = self.act(effect)
            if isinstance(outcome, Exception):
                raise outcome
            await anyio.sleep(outcome)
            self.done.append((anyio.current_time(), effect.cluster, type(effect).__name__))


@attrs.define(eq=False)
class World:
    """WorkerExecutor, and the keys they ask to be planned again."""

    effects: FakePerformer
    again: list[tuple[float, ObjectKey, float]] = attrs.field(factory=list)

    def lanes(self) -> WorkerExecutor:
        def enqueue(key: ObjectKey, after: float) -> None:
            self.again.append((anyio.current_time(), key, after))

        return WorkerExecutor(self.effects, enqueue, backoff=Backoff(base=1, cap=60))


async def test_a_worker_that_hangs_delays_neither_the_other_nor_the_reconcile() -> None:
    """kueue#11206: one hung worker stopped all admission for 90 minutes."""
    world = World(FakePerformer(lambda effect: 30.0 if effect.cluster == W1 else 0.1))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (CreateWorkload(W1, {}), CreateWorkload(W2, {}), Announce("Normal", "hello")))
        assert anyio.current_time() == pytest.approx(0.1)
        await lanes.wait_idle()
        tasks.cancel_scope.cancel()

    assert {(round(at, 1), cluster) for at, cluster, _ in world.effects.done} == {(0.1, W2), (0.1, ""), (30, W1)}


async def test_a_lane_that_is_taken_is_not_given_more_and_is_planned_again_when_it_is_free() -> None:
    """The answer to the first write decides what comes next; asking twice would double it."""
    world = World(FakePerformer(lambda _effect: 5.0))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (CreateWorkload(W1, {}),))
        await lanes.perform(KEY, None, (CreateWorkload(W1, {}),))
        await lanes.perform(OTHER, None, (CreateWorkload(W1, {}),))
        await lanes.wait_idle()
        tasks.cancel_scope.cancel()

    assert [at for at, _, _ in world.effects.done] == [5, 5]
    assert world.again == [(5, KEY, 0)]


async def test_a_lane_that_fails_backs_off_alone() -> None:
    """The same Workload goes on elsewhere; the failing worker is asked 1, 2, 4 s later, not at every event."""
    fault = ServerFault("broken", status=500)
    world = World(FakePerformer(lambda effect: fault if effect.cluster == W1 else 0.0))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        for _ in range(10):
            await lanes.perform(KEY, None, (CreateWorkload(W1, {}), CreateWorkload(W2, {})))
            await anyio.sleep(0.5)
        tasks.cancel_scope.cancel()

    assert len(world.effects.done) == 10
    assert sorted({at + after for at, _, after in world.again}) == [1, 3, 7]


async def test_an_event_during_the_back_off_does_not_lose_the_retry() -> None:
    """A key that is planned earlier is not planned later as well: who finds its lane resting asks for that again."""
    fault = ServerFault("broken", status=500)
    world = World(FakePerformer(lambda _effect: fault))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (CreateWorkload(W1, {}),))
        await anyio.sleep(0.25)
        await lanes.perform(KEY, None, (CreateWorkload(W1, {}),))
        tasks.cancel_scope.cancel()

    assert world.again == [(0, KEY, 1), (0.25, KEY, 0.75)]


async def test_a_worker_that_is_back_is_asked_at_once() -> None:
    """Nobody waits out a back-off that has lost its reason."""
    world = World(FakePerformer(lambda _effect: ServerFault("broken", status=500)))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        for _ in range(2):
            await lanes.perform(KEY, None, (CreateWorkload(W1, {}),))
            await lanes.wait_idle()
            lanes.answers(W1, again=True)
        tasks.cancel_scope.cancel()

    assert [after for _, _, after in world.again] == [1, 1]


async def test_a_job_that_is_being_created_is_known_to_be() -> None:
    """Until the answer is there no other worker may get it."""
    world = World(FakePerformer(lambda _effect: 5.0))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (CreateJob(W1, JOB, {}),))
        assert lanes.starting(W1, KEY)
        assert not lanes.starting(W2, KEY)
        await lanes.wait_idle()
        assert not lanes.starting(W1, KEY)
        tasks.cancel_scope.cancel()


async def test_a_failure_on_the_manager_is_the_reconciles() -> None:
    """The controller backs off the whole key: what was decided may be out of date."""
    world = World(FakePerformer(lambda _effect: ServerFault("broken", status=500)))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        with pytest.raises(ServerFault):
            await lanes.perform(KEY, None, (ApplyStatus(MANAGER, {}, "kueue-admission"),))
        tasks.cancel_scope.cancel()


async def test_a_copy_that_is_being_removed_is_known_to_be() -> None:
    """Until it is gone it looks as if its worker could still win."""
    lanes = World(FakePerformer(lambda _effect: 5.0)).lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (DeleteWorkload(W1, KEY, "uid", (), False),))
        assert lanes.removing(W1, KEY)
        assert not lanes.removing(W2, KEY)
        await lanes.wait_idle()
        assert not lanes.removing(W1, KEY)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("failure", "unsure"),
    [
        (Unreachable("the connection broke"), True),
        (DeadlineExceeded("no answer in time"), True),
        (ServerFault("broken", status=500), True),
        (NotSent("cannot connect"), False),
        (Forbidden("no", status=403), False),
        (TooManyRequests("later", status=429), False),
    ],
)
async def test_a_creation_without_an_answer_leaves_it_unknown_whether_the_job_is_there(
    failure: Exception, unsure: bool
) -> None:
    """Until it is tried again: then it is known."""
    outcomes: list[float | Exception] = [failure, 0.0]
    lanes = World(FakePerformer(lambda _effect: outcomes.pop(0))).lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (CreateJob(W1, JOB, {}),))
        await anyio.sleep(3)
        assert lanes.unsure_for(W1, KEY) == (timedelta(seconds=3) if unsure else None)
        assert lanes.unsure_for(W2, KEY) is None
        await lanes.perform(KEY, None, (CreateJob(W1, JOB, {}),))
        await lanes.wait_idle()
        assert lanes.unsure_for(W1, KEY) is None
        tasks.cancel_scope.cancel()


async def test_what_is_seen_of_a_worker_counts_from_when_it_is_back() -> None:
    """What it says first may be older than the job."""
    lanes = World(FakePerformer(lambda _effect: Unreachable("the connection broke"))).lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        await lanes.perform(KEY, None, (CreateJob(W1, JOB, {}),))
        await anyio.sleep(60)
        lanes.answers(W1, again=False)
        assert lanes.unsure_for(W1, KEY) == timedelta(seconds=60)
        lanes.answers(W1, again=True)
        await anyio.sleep(2)
        assert lanes.unsure_for(W1, KEY) == timedelta(seconds=2)
        lanes.settled(W1, KEY)
        assert lanes.unsure_for(W1, KEY) is None
        tasks.cancel_scope.cancel()


async def test_lanes_nobody_comes_back_to_are_forgotten() -> None:
    """A worker that refuses what others run would cost memory for every job there ever was."""
    world = World(FakePerformer(lambda _effect: Forbidden("no")))
    lanes = world.lanes()
    async with anyio.create_task_group() as tasks:
        await tasks.start(lanes.run)
        for number in range(50):
            await lanes.perform(ObjectKey("default", f"job-{number}"), None, (CreateWorkload(W1, {}),))
            await anyio.sleep(60)
        tasks.cancel_scope.cancel()
    assert lanes.remembered < 15
