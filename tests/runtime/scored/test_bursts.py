"""A burst over equal workers that have room for all of it."""

from __future__ import annotations

from collections import Counter

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored import score
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from tests.runtime.fleet import LONG, Fleet
from tests.runtime.test_scored import placed

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
