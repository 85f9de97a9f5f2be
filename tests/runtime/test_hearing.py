"""A job that is made on a worker, and not recorded: whoever dispatches next must not make it a second time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import cluster_name, nominated
from multikueue.sandbox.apiserver import Delay, DirectClient, Fault, Hang, Match, Refuse, SilenceWatch
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.runtime.fleet import Fleet, is_active, until

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
        found = (await fleet.admin.list(WORKLOAD)).items
        return [*map(nominated, found)] == [("worker1", "worker2")]

    await until(offered)


def refuse_records(fleet: Fleet) -> Fault:
    """Let the manager's API server take nothing we write about the Workload."""
    writes = Match(verbs=("patch",), resource="workloads", user="multikueue")
    return fleet.manager.faults.add(Refuse(500), on=writes)


def lose(fleet: Fleet, worker: str) -> None:
    """Break our connections to a worker, and answer no more."""
    fleet.workers[worker].faults.add(Hang(), on=OURS)
    fleet.workers[worker].faults.connections.drop()


async def runs_on_worker1_for(fleet: Fleet, seconds: int) -> None:
    """Watch that it runs there, and nowhere else."""
    before = await fleet.running_on()
    assert [*before] == ["worker1"]
    for _ in range(seconds):
        await anyio.sleep(1)
        assert await fleet.running_on() == before


@asynccontextmanager
async def stopped_too_early() -> AsyncIterator[Fleet]:
    """A job runs on worker1, nobody has recorded that, worker2 would have it too, and no manager runs."""
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues():
        async with fleet.running():
            await offer_to_both(fleet)
            broken = refuse_records(fleet)
            await hold(fleet, "worker1", on=False)
            await until(fleet.running_on)
        fleet.manager.faults.remove(broken)
        assert cluster_name(await fleet.workload()) is None
        await hold(fleet, "worker2", on=False)
        yield fleet


async def test_the_next_manager_waits_for_the_worker_that_has_it() -> None:
    """The other one answers first, and has admitted it: it would run twice."""
    async with stopped_too_early() as fleet:
        fleet.workers["worker1"].faults.add(Delay(5.0), on=OURS)
        async with fleet.running():
            await runs_on_worker1_for(fleet, 30)
            assert cluster_name(await fleet.workload()) == "worker1"


async def test_also_if_that_one_refuses_to_list_its_jobs_at_first() -> None:
    """It has just been started itself, and says 404 for a while."""
    async with stopped_too_early() as fleet:
        refused = fleet.workers["worker1"].faults.add(Refuse(404), on=Match(resource="jobs", user="multikueue"))
        async with fleet.running():
            await runs_on_worker1_for(fleet, 10)
            fleet.workers["worker1"].faults.remove(refused)
            await runs_on_worker1_for(fleet, 30)
            assert cluster_name(await fleet.workload()) == "worker1"


async def test_it_does_not_wait_for_ever() -> None:
    """A worker that cannot be reached any more is no reason not to run anywhere."""
    async with stopped_too_early() as fleet:
        fleet.workers["worker1"].faults.add(Hang(), on=OURS)
        async with fleet.running():

            async def elsewhere() -> bool:
                return cluster_name(await fleet.workload()) == "worker2"

            assert 55 < await until(elsewhere, within=70) < 65


async def test_a_worker_that_drops_before_it_is_recorded_keeps_what_was_seen_there() -> None:
    """Without any restart: the manager's API server is in trouble at the moment the worker's link breaks."""
    fleet = Fleet.of("worker1", "worker2")
    async with fleet.kueues(), fleet.running():
        await offer_to_both(fleet)
        broken = refuse_records(fleet)
        await hold(fleet, "worker1", on=False)
        await until(fleet.running_on)
        await anyio.sleep(1)
        lose(fleet, "worker1")
        await hold(fleet, "worker2", on=False)
        await runs_on_worker1_for(fleet, 60)
        fleet.manager.faults.remove(broken)
        await runs_on_worker1_for(fleet, 60)
        assert cluster_name(await fleet.workload()) == "worker1"


async def test_a_worker_that_drops_while_the_job_is_being_created_may_have_it() -> None:
    """The answer is lost, and so is whatever would show that the job is there, which it is."""
    fleet = Fleet.of("worker1", "worker2")
    faults = fleet.workers["worker1"].faults
    faults.add(SilenceWatch(), on=Match(resource="jobs", user="multikueue"))
    faults.add(Hang(), on=Match(verbs=("create",), resource="jobs", user="multikueue"), at="reply")
    async with fleet.kueues(), fleet.running(fleet.build(lost_timeout=300)):
        await offer_to_both(fleet)
        await hold(fleet, "worker1", on=False)
        await until(fleet.running_on)
        lose(fleet, "worker1")
        await hold(fleet, "worker2", on=False)
        await runs_on_worker1_for(fleet, 280)

        async def elsewhere() -> bool:
            return cluster_name(await fleet.workload()) == "worker2"

        await until(elsewhere, within=60)


async def test_a_manager_that_takes_long_to_read_its_own_cluster_gives_workers_as_long_afterwards() -> None:
    """Workers are asked only then."""
    async with stopped_too_early() as fleet:
        slow = fleet.manager.faults.add(Refuse(500), on=Match(verbs=("list",), resource="workloads", user="multikueue"))
        fleet.workers["worker1"].faults.add(Delay(5.0), on=OURS)
        manager = fleet.build()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.run)
            await runs_on_worker1_for(fleet, 120)
            fleet.manager.faults.remove(slow)
            await runs_on_worker1_for(fleet, 120)
            assert cluster_name(await fleet.workload()) == "worker1"
            tasks.cancel_scope.cancel()
