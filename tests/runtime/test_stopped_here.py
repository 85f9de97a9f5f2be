"""What is stopped on the manager without an eviction: the worker's copy stops, and the manager's job shows that."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import ClassVar

import anyio
import pytest

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import uid
from multikueue.core.model.workloads import evictions, has_quota
from multikueue.errors import NotFound
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Match, Reset
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.testing.waiting import background
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "job")


async def status(fleet: Fleet) -> Json:
    """That of the manager's job."""
    return (await fleet.admin.get(JOB, KEY)).get("status") or {}


async def resize(fleet: Fleet, pods: int) -> None:
    """What `kubectl patch job job -p '{"spec":{"parallelism":1}}'` does."""
    await fleet.admin.merge_patch(JOB, KEY, {"spec": {"parallelism": pods}})


async def remove_all(client: DirectClient, resource: Resource) -> None:
    """Delete all objects of a kind, whatever holds them."""
    for obj in (await client.list(resource)).items:
        await client.merge_patch(resource, ObjectKey.of(obj), {"metadata": {"finalizers": None}})
        await client.delete(resource, ObjectKey.of(obj), propagation="Background")


class TestWhatDoesNotMatchItsWorkload:
    """The manager's Kueue suspends it and deletes its Workload; the next one waits until the job shows no run."""

    async def test_it_is_stopped_on_its_worker_and_runs_again_as_it_is_now(self) -> None:
        """Two writers fought over its startTime, and it ran to its end on the worker."""
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit(pods=2)
            await until(fleet.running_on)
            before = await fleet.running_on()
            await resize(fleet, 1)

            async def runs_anew() -> bool:
                running = await fleet.running_on()
                return bool(running) and running != before

            await until(runs_anew, within=20)
            await anyio.sleep(5)
            assert (await status(fleet))["active"] == 1
            assert len((await fleet.admin.list(WORKLOAD)).items) == 1

    @pytest.mark.parametrize("left_over", [True, False], ids=["with its copies", "alone"])
    async def test_it_shows_that_it_has_stopped_though_the_daemon_is_started_anew(self, left_over: bool) -> None:
        """No Workload is left, and perhaps no copy, to wake it."""
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            await anyio.sleep(5)
        await fleet.admin.merge_patch(JOB, KEY, {"spec": {"suspend": True}})
        await remove_all(fleet.admin, WORKLOAD)
        there = DirectClient(fleet.workers["worker1"])
        if not left_over:
            await remove_all(there, JOB)
            await remove_all(there, WORKLOAD)
        assert (await status(fleet))["active"] == 1

        async def shown() -> bool:
            return not (await status(fleet)).get("active")

        async with background() as tasks, fleet.dispatching():
            tasks.start_soon(fleet.workers["worker1"].registry.run_collector)
            await until(shown, within=10)
            assert await fleet.idle()

    async def test_one_that_has_ended_before_it_was_stopped_ends_so_and_does_not_run_again(self) -> None:
        """No daemon ran meanwhile, and its Workload is gone: only the job copy tells it."""
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues(RunnerOptions(minimum=20.0, maximum=20.0)):
            async with fleet.dispatching():
                await fleet.submit()
                await until(fleet.running_on)
                await anyio.sleep(5)
            await fleet.admin.merge_patch(JOB, KEY, {"spec": {"suspend": True}})
            await remove_all(fleet.admin, WORKLOAD)
            await until(fleet.idle)
            async with fleet.dispatching():
                await until(self.has_succeeded(fleet))
                await anyio.sleep(30)
                assert fleet.requests("worker1", "create", JOB) == 1

    async def test_it_is_waited_for_on_a_lost_worker_though_no_status_says_that_it_ran(self) -> None:
        """No daemon ran while Kueue made its Workload again, and none had shown a status before: it ran twice."""
        fleet = await Fleet.connected("worker1", "worker2")
        async with fleet.kueues():
            async with fleet.dispatching():
                await fleet.submit(pods=2)
                await until(fleet.running_on)
                await until(fleet.ready)
            former, (where,) = await fleet.workload(), await fleet.running_on()
            await resize(fleet, 1)

            async def is_suspended() -> bool:
                return bool((await fleet.admin.get(JOB, KEY))["spec"]["suspend"])

            await until(is_suspended)
            await fleet.admin.merge_patch(JOB, KEY, {"status": None}, subresource="status")

            async def is_made_anew() -> bool:
                workloads = (await fleet.admin.list(WORKLOAD)).items
                return bool(workloads) and uid(workloads[0]) != uid(former) and has_quota(workloads[0])

            await until(is_made_anew)
            assert evictions(await fleet.workload()) == 0
            fleet.workers[where].faults.add(Reset(), on=Match(user="multikueue"))
            async with fleet.running():
                await anyio.sleep(600)
                assert list(await fleet.running_on()) == [where]
                await anyio.sleep(600)
                assert len(await fleet.running_on()) == 2, "the worker counts as lost"

    def has_succeeded(self, fleet: Fleet) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            return is_true({"status": await status(fleet)}, "Complete")

        return holds


class TestASuspensionByHand:
    """Its Workload is admitted and stays, so the manager's Kueue starts it again at once, as on one cluster."""

    async def test_the_run_goes_on(self) -> None:
        """A sync of Argo CD that sets `suspend: true` back cost the run all that it had done."""
        fleet = await Fleet.connected("worker1")
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit()
            await until(fleet.running_on)
            await anyio.sleep(5)
            before = await fleet.running_on()
            for _ in range(3):
                await fleet.admin.merge_patch(JOB, KEY, {"spec": {"suspend": True}})
                await anyio.sleep(10)
            assert not (await fleet.admin.get(JOB, KEY))["spec"]["suspend"]
            assert await fleet.running_on() == before
            assert fleet.requests("worker1", "create", JOB) == 1
            assert (await status(fleet))["active"] == 1

    async def test_what_its_kueue_does_not_take_back_is_stopped_though_its_copy_changes_all_the_time(self) -> None:
        """A Kueue that is down, or kept from it: a job whose counters move was never stopped, and its status froze."""
        fleet = await Fleet.connected("worker1")
        async with fleet.dispatching():
            async with fleet.kueues():
                await fleet.submit()
                await until(fleet.running_on)
                await anyio.sleep(5)
            await fleet.admin.merge_patch(JOB, KEY, {"spec": {"suspend": True}})
            there = DirectClient(fleet.workers["worker1"])
            for second in range(20):
                with contextlib.suppress(NotFound):
                    await there.merge_patch(JOB, KEY, {"metadata": {"annotations": {"seen": str(second)}}})
                await anyio.sleep(1)
            assert not any(copy["spec"]["active"] for copy in (await there.list(WORKLOAD)).items)


class TestASettledEnd:
    """Somebody makes FailureTarget true on the manager's Job, as Argo CD's menu does."""

    TARGET: ClassVar[Json] = {
        "type": "FailureTarget",
        "status": "True",
        "reason": "ManuallyTerminated",
        "message": "by hand",
    }

    async def settle(self, fleet: Fleet) -> None:
        known = (await status(fleet)).get("conditions") or []
        await fleet.admin.merge_patch(JOB, KEY, {"status": {"conditions": [*known, self.TARGET]}}, subresource="status")

    async def has_failed(self, fleet: Fleet) -> bool:
        conditions = (await status(fleet)).get("conditions") or []
        return any(
            condition["type"] == "Failed" and condition.get("reason") == "ManuallyTerminated"
            for condition in conditions
        )

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
