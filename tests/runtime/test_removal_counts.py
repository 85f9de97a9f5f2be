"""What it costs to take a run away, in requests: on the virtual clock they are the same on every machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from tests.runtime.fleet import Fleet, is_active, now, until
from tests.runtime.test_counts import requests

pytestmark = pytest.mark.looptime

RUNS = RunnerOptions(minimum=1e6, maximum=1e6)


async def _move(fleet: Fleet) -> None:
    workload = await fleet.workload()
    asked = {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: workload["status"]["clusterName"]}}}
    await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), asked)


async def _evict(fleet: Fleet) -> None:
    await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)


async def _delete(fleet: Fleet) -> None:
    await fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Background")


@pytest.mark.parametrize(
    ("act", "on_workers"),
    [
        (_move, {"patch workloads.kueue.x-k8s.io": 1}),
        (_evict, {}),
        (_delete, {}),
    ],
    ids=["moved", "evicted", "deleted"],
)
async def test_what_taking_a_run_away_costs(
    act: Callable[[Fleet], Awaitable[None]], on_workers: dict[str, int]
) -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues(RUNS), fleet.running():
        for name in fleet.workers:
            await until(is_active(fleet, name))
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(5.0)
        first = dig(await fleet.workload(), "status", "clusterName")
        manager, workers = requests(fleet.manager), requests(*fleet.workers.values())
        await act(fleet)
        await anyio.sleep(120.0)
        found = requests(*fleet.workers.values()) - workers
        print(act.__name__, dict(found), dict(requests(fleet.manager) - manager), first)
    assert found == on_workers
