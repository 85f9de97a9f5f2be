"""A burst over equal workers that have room for all of it."""

from __future__ import annotations

from collections import Counter

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored import score
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.workloads import is_finished
from multikueue.runtime.loop import loop_time
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.sandbox.jobs import RunnerOptions
from tests.runtime.fleet import LONG, Fleet, until
from tests.runtime.test_scored import placed, scored

pytestmark = pytest.mark.looptime


async def test_a_burst_goes_to_several_workers_and_a_few_jobs_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first had to admit all of it, one job after the other, beside others that had nothing to do."""
    monkeypatch.setattr(score, "AT_ONCE", 3)
    fleet = Fleet.of("w1", "w2")
    await fleet.connect(cpu=100)
    async with fleet.kueues(LONG), fleet.running(attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher())):
        await anyio.sleep(5)
        for number in range(2):
            await fleet.submit(f"few-{number}")
        await anyio.sleep(20)
        assert Counter((await placed(fleet)).values()) == {"w1": 2}
        for number in range(6):
            await fleet.submit(f"many-{number}")
        await anyio.sleep(20)

        assert Counter((await placed(fleet)).values()) == {"w1": 5, "w2": 3}


async def test_jobs_that_end_at_once_leave_their_room_to_the_next() -> None:
    """Their room was kept for three seconds more, as figures might not show yet what they got: 49 seconds for these."""
    fleet = Fleet.of("w1")

    async def ended() -> bool:
        workloads = (await fleet.admin.list(WORKLOAD)).items
        return len(workloads) == 20 and all(map(is_finished, workloads))

    async with scored(fleet, RunnerOptions(minimum=0.1, maximum=0.1)):
        began = loop_time()
        for number in range(20):
            await fleet.submit(f"j{number}")
        await until(ended)

    assert loop_time() - began < 10
