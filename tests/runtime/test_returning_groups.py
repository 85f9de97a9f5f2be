"""A worker that returns with the pods of a group that has moved away: they are stopped first, too."""

from __future__ import annotations

import anyio
import pytest

from multikueue.adapters import AVAILABLE
from multikueue.core.model.kinds import POD, WORKLOAD
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, name_of
from multikueue.sandbox.apiserver import DirectClient, Match, Reset
from multikueue.sandbox.kinds.pods import POD_GROUP
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueue.testing.waiting import background
from tests.runtime.fleet import Fleet, is_active, until
from tests.runtime.test_returning import Away

pytestmark = pytest.mark.looptime

US = Match(user="multikueue")
TEMPLATE: Json = {
    "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}]},
}
STOPPED_WITHIN = 3.0
"""Seconds: a question each second, and what follows."""


async def pods_on(fleet: Fleet, worker: str) -> list[Json]:
    """Those that run there, and nobody has told to end."""
    pods = (await DirectClient(fleet.workers[worker]).list(POD)).items
    return [pod for pod in pods if dig(pod, "status", "phase") == "Running" and not is_terminating(pod)]


async def running_on(fleet: Fleet) -> list[str]:
    """The workers with both pods of the group."""
    return [name for name in fleet.workers if len(await pods_on(fleet, name)) == 2]


async def test_the_pods_of_a_group_that_has_moved_away_are_stopped_first() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    kinds = [kind for kind in AVAILABLE if kind.resource == POD]
    async with fleet.kueues(kinds=[POD_GROUP]), background() as tasks:
        away = Away(fleet, 15.0)
        await tasks.start(fleet.build(15.0, kinds=kinds, connect=away.connect).run)
        for name in fleet.workers:
            await until(is_active(fleet, name))
        for pod in POD_GROUP.examples("group", TEMPLATE, queue=LOCAL_QUEUE_NAME):
            await fleet.admin.create(POD, pod)

        async def runs() -> bool:
            return bool(await running_on(fleet))

        await until(runs)
        await anyio.sleep(10)
        (lost,) = await running_on(fleet)
        (other,) = fleet.workers.keys() - {lost}
        fleet.workers[lost].faults.add(Reset(), on=US)
        fleet.workers[lost].faults.connections.drop()

        async def moved() -> bool:
            return other in await running_on(fleet)

        await until(moved, within=120)
        await anyio.sleep(30)
        assert await pods_on(fleet, lost), "they run twice while nobody is heard there"
        away.lost = lost
        asked = away.give_back()

        async def stopped() -> bool:
            return not await pods_on(fleet, lost)

        assert await until(stopped) <= STOPPED_WITHIN
        done = [(verb, kind) for _, verb, kind, _ in asked if kind in ("pods", "workloads")]
        assert ("list", "pods") not in done[: done.index(("delete", "pods"))]
        assert ("list", "workloads") not in done[: done.index(("delete", "pods"))]

        async def gone() -> bool:
            there = DirectClient(fleet.workers[lost])
            return not [*(await there.list(POD)).items, *(await there.list(WORKLOAD)).items]

        await until(gone, within=60)
        assert [name_of(pod) for pod in await pods_on(fleet, other)] == ["group-0", "group-1"]
