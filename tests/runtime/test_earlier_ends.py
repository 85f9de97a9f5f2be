"""A job ends on its worker after an eviction that nobody has seen: it does not run once more elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import cluster_name
from multikueue.sandbox.apiserver import Hang, Match, Reset
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import evict
from tests.runtime.fleet import Fleet, now, until

pytestmark = pytest.mark.looptime

LENGTH = 200.0
"""Seconds that a job runs."""


@asynccontextmanager
async def out_of_sight(fleet: Fleet, how: str) -> AsyncIterator[None]:
    """The job starts, and before its first status is here nobody sees its worker any more: no daemon, or no network."""
    async with AsyncExitStack() as daemon:
        await daemon.enter_async_context(fleet.dispatching())
        fleet.manager.faults.add(Hang(), on=Match(verbs=("patch",), resource="jobs", user="multikueue"))
        await fleet.submit()
        await until(fleet.running_on)
        await until(fleet.ready)
        await anyio.sleep(0.5)
        assert not dig(await fleet.admin.get(JOB, ObjectKey("default", "job")), "status", "active")
        there = fleet.workers[cluster_name(await fleet.workload()) or ""].faults
        if how == "no network":
            there.add(Reset(), on=Match(user="multikueue"))
            there.connections.drop()
        else:
            await daemon.aclose()
        fleet.manager.faults.clear()
        yield
        there.clear()
        if how == "no daemon":
            await daemon.enter_async_context(fleet.running())
        await anyio.sleep(300)


@pytest.mark.parametrize("how", ["no network", "no daemon"])
async def test_a_job_that_was_evicted_unseen_does_not_run_again_once_it_has_ended(how: str) -> None:
    """Its copy was of an attempt whose reservation the manager had forgotten: it was removed, and made elsewhere."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues(RunnerOptions(minimum=LENGTH, maximum=LENGTH)):
        async with out_of_sight(fleet, how):
            await evict(fleet.admin, ObjectKey.of(await fleet.workload()), clock=now)
            await anyio.sleep(300)
            assert not await fleet.finished()
        shown = await fleet.admin.get(JOB, ObjectKey("default", "job"))
        assert (await fleet.finished(), dig(shown, "status", "succeeded")) == (True, 1)
        assert sum(fleet.requests(worker, "create", JOB) for worker in fleet.workers) == 1
