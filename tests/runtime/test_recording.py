"""The worker is recorded first, then its job is created: whoever dispatches next knows where it may run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import check_state, cluster_name, evictions, nominated
from multikueue.sandbox.apiserver import Delay, DirectClient, Hang, Match, Refuse, SilenceWatch
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.runtime.fleet import CHECK, Fleet, is_active, until

pytestmark = pytest.mark.looptime

OURS = Match(user="multikueue")


async def hold(fleet: Fleet, worker: str, *, on: bool) -> None:
    """Let a worker's queue admit nothing, or again everything."""
    patch = {"spec": {"stopPolicy": "Hold" if on else "None"}}
    await DirectClient(fleet.workers[worker]).merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)


async def offer_to_both(fleet: Fleet) -> None:
    """Submit a job, and wait until both workers may have it; neither of them admits it."""
    await fleet.connect()
    for worker in fleet.workers:
        await hold(fleet, worker, on=True)
    for worker in fleet.workers:
        await until(is_active(fleet, worker))
    await fleet.submit()

    async def offered() -> bool:
        workloads = (await fleet.admin.list(WORKLOAD)).items
        return [*map(nominated, workloads)] == [("worker1", "worker2")]

    await until(offered)


def lose(fleet: Fleet, worker: str) -> None:
    """Break our connections to a worker, and answer no more."""
    fleet.workers[worker].faults.add(Hang(), on=OURS)
    fleet.workers[worker].faults.connections.drop()


def create_unseen(fleet: Fleet, worker: str) -> None:
    """Let a worker create jobs without showing them: neither the answer nor the watch tells."""
    faults = fleet.workers[worker].faults
    faults.add(SilenceWatch(), on=Match(resource="jobs", user="multikueue"))
    faults.add(Hang(), on=Match(verbs=("create",), resource="jobs", user="multikueue"), at="reply")


def is_recorded(fleet: Fleet, worker: str) -> Callable[[], Awaitable[bool]]:
    """Whether the Workload names that worker."""

    async def recorded() -> bool:
        return cluster_name(await fleet.workload()) == worker

    return recorded


async def runs_on_worker1_for(fleet: Fleet, seconds: int) -> None:
    """Watch that it runs there, and nowhere else."""
    before = await fleet.running_on()
    assert [*before] == ["worker1"]
    for _ in range(seconds):
        await anyio.sleep(1)
        assert await fleet.running_on() == before


@asynccontextmanager
async def stopped_after_recording() -> AsyncIterator[Fleet]:
    """worker1 is recorded and may have the job, worker2 would have it too, and no manager runs."""
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues():
        async with fleet.running():
            await offer_to_both(fleet)
            creations = Match(verbs=("create",), resource="jobs", user="multikueue")
            unanswered = fleet.workers["worker1"].faults.add(Hang(), on=creations, at="reply")
            await hold(fleet, "worker1", on=False)
            await until(fleet.running_on)
        fleet.workers["worker1"].faults.remove(unanswered)
        assert cluster_name(await fleet.workload()) == "worker1"
        await hold(fleet, "worker2", on=False)
        yield fleet


async def test_the_next_manager_goes_on_with_the_recorded_worker() -> None:
    """Without waiting for anybody else."""
    async with stopped_after_recording() as fleet:
        lose(fleet, "worker2")
        async with fleet.running():
            assert await until(fleet.ready, within=10) < 5
            await runs_on_worker1_for(fleet, 30)


async def test_it_waits_for_that_worker_however_late_it_answers() -> None:
    """The other one answers first, and has admitted it: it would run twice."""
    async with stopped_after_recording() as fleet:
        fleet.workers["worker1"].faults.add(Delay(25.0), on=OURS)
        async with fleet.running():
            await runs_on_worker1_for(fleet, 120)
            assert cluster_name(await fleet.workload()) == "worker1"


async def test_a_worker_that_is_lost_right_after_a_start_stalls_nobody() -> None:
    """Jobs that were offered to it, and not recorded there, go elsewhere at once."""
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues():
        async with fleet.running():
            await offer_to_both(fleet)
        lose(fleet, "worker1")
        await hold(fleet, "worker2", on=False)
        async with fleet.running():
            assert await until(is_recorded(fleet, "worker2"), within=10) < 5


async def test_a_worker_that_drops_while_the_job_is_being_created_may_have_it() -> None:
    """The answer is lost, and so is whatever would show that the job is there, which it is."""
    fleet = Fleet.of("worker1", "worker2")
    create_unseen(fleet, "worker1")
    async with fleet.kueues(), fleet.running(fleet.build(lost_timeout=300)):
        await offer_to_both(fleet)
        await hold(fleet, "worker1", on=False)
        await until(fleet.running_on)
        lose(fleet, "worker1")
        await hold(fleet, "worker2", on=False)
        await runs_on_worker1_for(fleet, 280)
        await until(is_recorded(fleet, "worker2"), within=60)


async def test_while_all_refuse_there_is_no_loop_of_evictions() -> None:
    """It stays Pending."""
    fleet = Fleet.of("worker1", "worker2")
    for worker in fleet.workers.values():
        worker.faults.add(Refuse(422), on=Match(verbs=("create",), resource="jobs", user="multikueue"))
    async with fleet.kueues(), fleet.running():
        await fleet.connect()
        for name in fleet.workers:
            await until(is_active(fleet, name))
        await fleet.submit()
        await anyio.sleep(240)
        workload = await fleet.workload()
        assert evictions(workload) == 2
        assert check_state(workload, CHECK) == "Pending"
