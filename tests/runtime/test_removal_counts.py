"""What it costs to take a run away, in requests: on the virtual clock they are the same on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.apiserver import ApiServer
from multikueue.sandbox.kueue import evict
from tests.runtime.fleet import LONG, Fleet, is_active, now, until
from tests.runtime.test_counts import requests

pytestmark = pytest.mark.looptime


async def _move(fleet: Fleet) -> None:
    workload = await fleet.workload()
    asked = {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: workload["status"]["clusterName"]}}}
    await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), asked)


async def _evict(fleet: Fleet) -> None:
    await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)


async def _delete(fleet: Fleet) -> None:
    await fleet.admin.delete(JOB, ObjectKey("default", "job"), propagation="Background")


@pytest.mark.parametrize(
    ("act", "on_workers", "on_manager"),
    [
        (
            _move,
            {"create workloads": 1, "create jobs": 1, "patch workloads": 1, "delete jobs": 1},
            {"patch workloads": 7, "patch jobs": 2, "create events": 2},
        ),
        (
            _evict,
            {"create workloads": 2, "create jobs": 1, "patch workloads": 1, "delete jobs": 1, "delete workloads": 1},
            {"patch workloads": 5, "patch jobs": 3, "patch events": 1},
        ),
        (_delete, {"patch workloads": 1, "delete jobs": 1}, {}),
    ],
    ids=["moved", "evicted", "deleted"],
)
async def test_what_taking_a_run_away_costs(
    act: Callable[[Fleet], Awaitable[None]], on_workers: dict[str, int], on_manager: dict[str, int]
) -> None:
    """Up to the next run: it is stopped, its job is deleted, and Kueue's own collection takes its Workload copy.

    267d433b sent as many for a deletion (no stop, and a deletion of the Workload copy), and four more for the others.
    """
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues(LONG), fleet.running():
        for name in fleet.workers:
            await until(is_active(fleet, name))
        await fleet.submit()
        await until(fleet.running_on)
        await anyio.sleep(5.0)
        before = _counted(fleet.manager), _counted(*fleet.workers.values())
        await act(fleet)
        await anyio.sleep(120.0)
        assert _counted(*fleet.workers.values()) - before[1] == on_workers
        assert _counted(fleet.manager) - before[0] == on_manager


def _counted(*servers: ApiServer) -> Counter[str]:
    """The requests, each without the group of what it was for."""
    counted: Counter[str] = Counter()
    for request, count in requests(*servers).items():
        counted[request.partition(".")[0]] += count
    return counted
