"""Figures are a second old: a worker may be full although they say that it has room."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.kinds import WORKLOAD
from tests.runtime.fleet import Fleet
from tests.runtime.test_scored import placed, scored

pytestmark = pytest.mark.looptime


async def test_a_job_that_a_full_worker_was_offered_goes_on_at_once_to_one_with_room() -> None:
    """It stayed there for `retry`, beside a worker with room."""
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        for name in ("theirs-1", "theirs-2"):
            await fleet.submit(name, worker="w1")
        await fleet.submit("job")
        await anyio.sleep(Profile().retry.total_seconds() / 3)

        assert fleet.requests("w1", "create", WORKLOAD) == 1, "it was offered by old figures"
        assert await placed(fleet) == {"job": "w2"}


async def test_a_burst_is_on_its_workers_before_an_offer_may_be_taken_back() -> None:
    """Whoever came to a worker that others had filled meanwhile goes on as soon as that is seen."""
    fleet = Fleet.of("w1", "w2", "w3")
    async with scored(fleet):
        await fleet.submit("theirs", worker="w2")
        for number in range(5):
            await fleet.submit(f"j{number}")
        await anyio.sleep(Profile().retry.total_seconds() / 3)

        assert sorted((await placed(fleet)).values()) == ["w1", "w1", "w2", "w3", "w3"]
