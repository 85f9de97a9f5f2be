"""A policy of the manager refuses statuses for a while, with 422, as a ValidatingAdmissionPolicy does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.runtime.caches.mutation_cache import REFUSALS_COUNT, REFUSED_FOR
from multikueue.sandbox.apiserver import Match, Refuse
from multikueue.sandbox.jobs import RunnerOptions
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "job")
SHORT = RunnerOptions(mean=5.0, minimum=5.0, maximum=5.0)


@asynccontextmanager
async def refused(fleet: Fleet) -> AsyncIterator[None]:
    """Refuse what the daemon writes meanwhile."""
    statuses = Match(verbs=("patch",), resource="jobs", subresource="status", user="multikueue")
    policy = fleet.manager.faults.add(Refuse(422), on=statuses)
    yield
    fleet.manager.faults.remove(policy)
    assert policy.hits


async def test_an_end_that_is_refused_for_less_than_half_a_minute_is_shown() -> None:
    """It was written once. Then the Workload was finished, the copies were removed, and nothing showed the end."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(SHORT), fleet.dispatching():
        await fleet.submit()
        await until(fleet.running_on)
        async with refused(fleet):
            await anyio.sleep(0.8 * REFUSALS_COUNT)

        async def complete() -> bool:
            return is_true(await fleet.admin.get(JOB, KEY), "Complete")

        await until(complete, within=REFUSALS_COUNT)
        await until(fleet.finished)


async def test_a_stop_that_is_refused_for_long_is_shown_once_it_is_not() -> None:
    """It held the quota for good: its status said that it runs, and no event followed."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching():
        await fleet.submit(pods=2)
        await until(fleet.running_on)
        await anyio.sleep(5)
        async with refused(fleet):
            await fleet.admin.merge_patch(JOB, KEY, {"spec": {"parallelism": 1}})
            await anyio.sleep(3 * REFUSALS_COUNT)
            assert not await fleet.running_on()
        await until(fleet.running_on, within=REFUSED_FOR)
