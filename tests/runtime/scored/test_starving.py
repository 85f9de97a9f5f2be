"""A job that is held for an hour while later ones start: whom that is told, and when it is over."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from multikueue.core.dispatchers.scored import starts
from multikueue.core.dispatchers.scored.starts import STARVING
from multikueue.core.model.kinds import EVENT
from multikueue.sandbox.jobs import RunnerOptions
from tests.runtime.fleet import Fleet
from tests.runtime.test_scored import placed, scored

pytestmark = pytest.mark.looptime

AFTER = 170.0
"""Seconds instead of an hour."""
LASTS = 100


async def warned(fleet: Fleet) -> set[tuple[str, str]]:
    """The kind and the name of what events say so of."""
    events = [event for event in (await fleet.admin.list(EVENT)).items if STARVING in event["note"]]
    assert all(
        event["type"] == "Warning" and "priority" in event["note"] and "giveUp" in event["note"] for event in events
    )
    return {(event["regarding"]["kind"], event["regarding"]["name"].removeprefix("job-")[:4]) for event in events}


async def test_a_gang_that_starves_is_told_on_the_job_and_no_more_once_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It needs all of the worker, where one small job begins before the other has ended."""
    monkeypatch.setattr(starts, "STARVES_AFTER", timedelta(seconds=AFTER))
    fleet = Fleet.of("w1")
    async with scored(fleet, RunnerOptions(minimum=LASTS, maximum=LASTS)) as manager:
        await fleet.submit("s0")
        await anyio.sleep(LASTS / 2)
        await fleet.submit("gang", pods=2)
        for number in range(1, 6):
            await fleet.submit(f"s{number}")
            await anyio.sleep(LASTS / 2)
            starves = number * LASTS / 2 > AFTER
            assert (await placed(fleet))["gang"] == "-"
            assert manager.starving() == starves
            assert await warned(fleet) == ({("Job", "gang"), ("Workload", "gang")} if starves else set())
        await anyio.sleep(2 * LASTS)

        assert (await placed(fleet))["gang"] == "w1"
        assert manager.starving() == 0
