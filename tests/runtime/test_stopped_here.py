"""What is stopped on the manager without an eviction: the worker's copy stops, and the manager's job shows that."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.apiserver import DirectClient
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "job")


async def status(fleet: Fleet) -> Json:
    """That of the manager's job."""
    return (await fleet.admin.get(JOB, KEY)).get("status") or {}


async def resize(fleet: Fleet, pods: int) -> None:
    """What `kubectl patch job job -p '{"spec":{"parallelism":2}}'` does."""
    await fleet.admin.merge_patch(JOB, KEY, {"spec": {"parallelism": pods}})


class TestWhatDoesNotMatchItsWorkload:
    """The manager's Kueue suspends it and deletes its Workload; the next one waits until the job shows no run."""

    async def test_it_is_stopped_on_its_worker_and_runs_again_as_it_is_now(self) -> None:
        """Two writers fought over its startTime, and it ran to its end on the worker."""
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            before = await fleet.running_on()
            await resize(fleet, 2)

            async def runs_anew() -> bool:
                found = await fleet.running_on()
                return bool(found) and found != before

            await until(runs_anew, within=20)
            await anyio.sleep(5)
            assert (await status(fleet))["active"] == 2
            assert len((await fleet.admin.list(WORKLOAD)).items) == 1

    async def test_it_shows_that_it_has_stopped_though_the_daemon_is_started_anew(self) -> None:
        """Neither a Workload nor a copy is left to wake it."""
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues():
            async with fleet.dispatching():
                await fleet.submit()
                await until(fleet.running_on)
                await anyio.sleep(5)
            await resize(fleet, 2)
            there = DirectClient(fleet.workers["worker1"])
            for resource in (JOB, WORKLOAD):
                for one in (await there.list(resource)).items:
                    await there.delete(resource, ObjectKey.of(one))
            await anyio.sleep(10)
            assert (await fleet.admin.list(WORKLOAD)).items == []
            assert (await status(fleet))["active"] == 1
            async with fleet.dispatching():
                await until(fleet.running_on, within=20)
            assert [dig(one, "spec", "podSets")[0]["count"] for one in (await fleet.admin.list(WORKLOAD)).items] == [2]


class TestASettledEnd:
    """Somebody makes FailureTarget true on the manager's Job, as Argo CD's menu does."""

    TARGET = {"type": "FailureTarget", "status": "True", "reason": "ManuallyTerminated", "message": "by hand"}

    async def settle(self, fleet: Fleet) -> None:
        known = (await status(fleet)).get("conditions") or []
        await fleet.admin.merge_patch(JOB, KEY, {"status": {"conditions": [*known, self.TARGET]}}, subresource="status")

    async def has_failed(self, fleet: Fleet) -> bool:
        found = (await status(fleet)).get("conditions") or []
        return any(one["type"] == "Failed" and one.get("reason") == "ManuallyTerminated" for one in found)

    async def test_the_copy_is_stopped_and_the_job_fails_with_these_words(self) -> None:
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            await anyio.sleep(5)
            await self.settle(fleet)
            await until(fleet.finished, within=20)
            assert await self.has_failed(fleet)
            assert await fleet.idle()
            assert not (await status(fleet)).get("active")

    async def test_a_job_that_waits_fails_without_having_started(self) -> None:
        fleet = await Fleet.connected("worker1", cpu=0, on_manager=4)
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit()
            await anyio.sleep(5)
            await self.settle(fleet)
            await until(fleet.finished, within=20)
            assert await self.has_failed(fleet)
