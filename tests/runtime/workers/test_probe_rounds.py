"""Many quiet workers are probed together: an idle process that is woken for each of them does little else."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

import anyio
import pytest

from multikueue.core.machinery.liveness import LOST_AFTER
from multikueue.core.model.names import ClusterName
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient, ObjectList
from multikueue.runtime.loop import loop_time
from multikueue.runtime.workers.probe import MANY, ROUND
from multikueue.sandbox.apiserver import Delay, DirectClient, Hang, Match
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(120)]


async def probed_at(workers: int) -> list[float]:
    """When workers were probed within a minute that are all at another distance; then the last one hangs and is lost
    in time."""
    names, probes = [f"worker{number}" for number in range(workers)], []
    fleet = Fleet.of(*names)

    class Watched(DirectClient):
        async def list(self, resource: Any, **rest: Any) -> ObjectList:
            if rest.get("limit") == 1:
                probes.append(loop_time())
            return await super().list(resource, **rest)

    @asynccontextmanager
    async def connect(name: ClusterName, config: ClusterConfig) -> AsyncIterator[ApiClient]:
        del config
        yield Watched(fleet.workers[name], user="multikueue")

    await fleet.connect()
    for number, name in enumerate(names):
        fleet.workers[name].faults.add(Delay(0.013 * (number + 1)), on=Match(user="multikueue"))
    async with fleet.running(fleet.build(connect=connect)):
        for name in names:
            await until(is_active(fleet, name))
        await anyio.sleep(30)
        probes.clear()
        await anyio.sleep(60)
        waiting = list(probes)
        fleet.workers[names[-1]].faults.add(Hang(), on=Match(verbs=("list",), user="multikueue"))
        await until(is_active(fleet, names[-1], status="False"), within=LOST_AFTER + ROUND + 1)
    return waiting


@pytest.mark.parametrize("late", [0.0, 0.002])
async def test_more_workers_than_a_few_are_probed_in_rounds(late: float) -> None:
    """Two dozen rounds in a minute at most, though no two workers answer at the same time; none is left out.

    Real loops wake a little late. A hung worker was looked at every 7.5 s then, and lost after 30 s.
    """
    sleep = anyio.sleep
    with mock.patch.object(anyio, "sleep", lambda seconds: sleep(seconds + late * (seconds > 0))):
        probes = await probed_at(MANY + 1)
    assert all(at % ROUND < 0.01 for at in probes)
    assert len({at // ROUND for at in probes}) <= 24
    assert len(probes) >= 8 * (MANY + 1)


async def test_a_few_workers_are_probed_each_in_its_own_time() -> None:
    probes = await probed_at(3)
    assert len(set(probes)) == len(probes)


async def test_a_loop_that_now_and_then_wakes_late_loses_nobody() -> None:
    """What was heard just after the time to look was due made the next one lie in the past: no time to wait for."""
    sleep, late = anyio.sleep, itertools.cycle((0.0, 0.0, 0.5))
    with mock.patch.object(anyio, "sleep", lambda seconds: sleep(seconds + next(late) * (seconds > 0))):
        probes = await probed_at(3)
    assert len(probes) >= 3 * 10
