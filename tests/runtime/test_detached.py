"""A cluster that is detached while jobs run there: who does so takes our credentials first, and the jobs run on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import anyio
import attrs
import pytest

from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.labels import DETACHED_ANNOTATION, GIVE_UP_BEFORE_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver import Match, Reset
from tests.runtime.fleet import Fleet, is_active, now, until

pytestmark = pytest.mark.looptime

GRACE = 900.0
"""`workerLostTimeout`."""


@attrs.frozen
class Detached:
    """A fleet with a job on a worker that is being detached, and whose credentials are gone."""

    fleet: Fleet
    worker: str

    async def note(self, annotation: str) -> None:
        noted = {"metadata": {"annotations": {annotation: timestamp(now())}}}
        await self.fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", self.worker), noted)

    async def runs_elsewhere(self) -> bool:
        return bool(set(await self.fleet.running_on()) - {self.worker})

    async def is_assigned(self) -> bool:
        return bool(dig(await self.fleet.workload(), "status", "clusterName") == self.worker)

    async def moves_at(self) -> datetime | None:
        """When its jobs move, as its MultiKueueCluster says."""
        said = connection_facts(await self.fleet.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", self.worker)))
        return said.moves_at if said is not None else None

    async def take_credentials(self) -> None:
        self.fleet.workers[self.worker].faults.add(Reset(), on=Match(user="multikueue"))
        self.fleet.workers[self.worker].faults.connections.drop()
        await until(is_active(self.fleet, self.worker, "False"))


@asynccontextmanager
async def placed() -> AsyncIterator[Detached]:
    """With a job on a worker, and nobody at work."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues():
        async with fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            (worker,) = await fleet.running_on()
        yield Detached(fleet, worker)


async def test_its_jobs_move_some_time_after_it_is_gone_and_not_before() -> None:
    """They ran twice: the clock began with the credentials, which go first. A restart changes nothing."""
    async with placed() as detached:
        fleet = detached.fleet
        async with fleet.running():
            await until(is_active(fleet, detached.worker))
            await detached.note(DETACHED_ANNOTATION)
            await anyio.sleep(1)
            await detached.take_credentials()
            (note,) = [note for _, reason, note in await fleet.events() if reason == "Detached"]
            assert "default/job-job-" in note, "it names the jobs"
            await anyio.sleep(GRACE + 60)
            assert await detached.is_assigned()
            assert await detached.moves_at() is None, "no moment is told at which nothing happens"
        async with fleet.running():
            await anyio.sleep(GRACE + 60)
            assert await detached.is_assigned()
            await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", detached.worker))
            began = anyio.current_time()
            await until(detached.runs_elsewhere, within=GRACE + 60)
            assert anyio.current_time() - began > GRACE - 10


async def test_one_that_comes_back_keeps_its_jobs_for_the_time_since_it_was_gone() -> None:
    """They moved at the moment at which its MultiKueueCluster was there again, had the detaching taken long."""
    async with placed() as detached, detached.fleet.running():
        fleet, key = detached.fleet, ObjectKey("", detached.worker)
        await until(is_active(fleet, detached.worker))
        await detached.note(DETACHED_ANNOTATION)
        await anyio.sleep(1)
        await detached.take_credentials()
        await anyio.sleep(GRACE + 60)
        cluster = await fleet.admin.get(MULTIKUEUE_CLUSTER, key)
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, key)
        began = anyio.current_time()
        await anyio.sleep(10)
        await fleet.admin.create(
            MULTIKUEUE_CLUSTER, {**cluster, "metadata": {"name": detached.worker}, "status": {"conditions": []}}
        )
        await until(detached.runs_elsewhere, within=GRACE + 60)
        assert anyio.current_time() - began > GRACE - 10


async def test_one_that_was_lost_before_is_dead_and_its_time_goes_on() -> None:
    async with placed() as detached, detached.fleet.running():
        await until(is_active(detached.fleet, detached.worker))
        await detached.take_credentials()
        began, moves_at = anyio.current_time(), await detached.moves_at()
        await anyio.sleep(60)
        await detached.note(DETACHED_ANNOTATION)
        await until(detached.runs_elsewhere, within=GRACE + 60)
        assert anyio.current_time() - began < GRACE + 30
        assert moves_at is not None
        assert await detached.moves_at() == moves_at


async def test_a_person_may_say_that_it_is_broken() -> None:
    async with placed() as detached, detached.fleet.running():
        await until(is_active(detached.fleet, detached.worker))
        await detached.note(DETACHED_ANNOTATION)
        await anyio.sleep(1)
        await detached.take_credentials()
        await anyio.sleep(2 * GRACE)
        assert await detached.is_assigned()
        await detached.note(GIVE_UP_BEFORE_ANNOTATION)
        await until(detached.runs_elsewhere, within=60)
