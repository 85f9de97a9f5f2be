"""A manager that is stopped after it made a job and before it recorded where: only one worker knows of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.kinds import CLUSTER_QUEUE, WORKLOAD
from multikueue.core.names import ObjectKey
from multikueue.core.workloads import cluster_name, nominated
from multikueue.sandbox.apiserver import Delay, DirectClient, Hang, Match, Refuse
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = pytest.mark.looptime

OURS = Match(user="multikueue")


async def hold(fleet: Fleet, worker: str, *, on: bool) -> None:
    """Let a worker's queue admit nothing, or again everything."""
    patch = {"spec": {"stopPolicy": "Hold" if on else "None"}}
    await DirectClient(fleet.workers[worker]).merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)


@asynccontextmanager
async def stopped_too_early() -> AsyncIterator[Fleet]:
    """A job runs on worker1, nobody has recorded that, worker2 would have it too, and no manager runs."""
    fleet = Fleet.of("worker1", "worker2")
    await fleet.connect()
    for worker in fleet.workers:
        await hold(fleet, worker, on=True)
    async with fleet.kueues():
        async with fleet.running():
            for worker in fleet.workers:
                await until(is_active(fleet, worker))
            await fleet.submit()

            async def offered() -> bool:
                found = (await fleet.admin.list(WORKLOAD)).items
                return [*map(nominated, found)] == [("worker1", "worker2")]

            await until(offered)
            writes = Match(verbs=("patch",), resource="workloads", user="multikueue")
            broken = fleet.manager.faults.add(Refuse(500), on=writes)
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
        before = await fleet.running_on()
        async with fleet.running():
            for _ in range(60):
                await anyio.sleep(0.5)
                assert await fleet.running_on() == before
            assert cluster_name(await fleet.workload()) == "worker1"


async def test_it_does_not_wait_for_ever() -> None:
    """A worker that cannot be reached any more is no reason not to run anywhere."""
    async with stopped_too_early() as fleet:
        fleet.workers["worker1"].faults.add(Hang(), on=OURS)
        async with fleet.running():

            async def elsewhere() -> bool:
                return cluster_name(await fleet.workload()) == "worker2"

            assert 30 < await until(elsewhere, within=70) < 65
