"""A kind is watched on a worker while something of it is there, or may be."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.workers.kind_watch import LATE_LOOK, LOOK_INTERVAL, SERVED_INTERVAL, UNUSED_AFTER
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.faults import Delay, Match, Refuse, Reset
from multikueue.testing.waiting import until
from tests.runtime.fleet import Fleet, is_active

pytestmark = pytest.mark.looptime

LEFTOVER: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "left",
        "namespace": "default",
        "labels": {ORIGIN_LABEL: "multikueue", "kueue.x-k8s.io/prebuilt-workload-name": "gone"},
    },
    "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app"}], "restartPolicy": "Never"}}},
}


def watches(fleet: Fleet) -> int:
    """How many watches of Jobs the worker has been asked for."""
    return fleet.requests("worker1", "watch", JOB)


async def test_a_kind_without_jobs_is_listed_once_and_not_watched_until_one_comes() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching():
        await anyio.sleep(60)
        assert (watches(fleet), fleet.requests("worker1", "list", JOB)) == (0, 1)

        await fleet.submit("job")
        await until(lambda: _runs(fleet))
        assert watches(fleet) == 1


async def test_the_watch_ends_half_an_hour_after_the_last_job() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching() as manager:
        await fleet.submit("job")
        await until(lambda: _runs(fleet))
        [informers] = [worker.known for worker in manager.workers]
        assert informers is not None
        watch = informers.watches.by_kind[JOB.gvk]
        await anyio.sleep(3 * UNUSED_AFTER)
        assert not watch.is_unwatched, "it has a job"
        for job in (await fleet.admin.list(JOB)).items:
            await fleet.admin.delete(JOB, ObjectKey.of(job))
        await anyio.sleep(UNUSED_AFTER - 60)
        assert not watch.is_unwatched
        await anyio.sleep(UNUSED_AFTER + 120)
        assert watch.is_unwatched

        await fleet.submit("next")
        await until(lambda: _runs(fleet))
        assert not watch.is_unwatched


async def test_what_another_process_has_left_is_found_and_removed() -> None:
    """Two minutes after the first list: what an old leader sends at its end is there by then. Then each hour."""
    fleet = await Fleet.connected("worker1")
    there = DirectClient(fleet.workers["worker1"])
    async with fleet.dispatching():
        for wait in (LATE_LOOK, UNUSED_AFTER + LATE_LOOK + LOOK_INTERVAL):
            await there.create(JOB, LEFTOVER)
            await anyio.sleep(wait + 180)
            assert not (await there.list(JOB)).items


async def test_a_kind_that_is_not_served_any_more_is_known_before_a_job_is_offered() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching() as manager:
        serves_no_jobs(fleet, "worker1")
        await anyio.sleep(SERVED_INTERVAL + 60)
        await fleet.submit("job")
        await anyio.sleep(60)
        assert not (await DirectClient(fleet.workers["worker1"]).list(WORKLOAD)).items
        [worker] = manager.workers
        assert worker.known is not None
        assert [*worker.known.unusable] == [JOB.gvk.dotted]


async def test_a_job_without_an_answer_is_not_missed_while_its_kind_is_listed_again() -> None:
    """The store is from before it was sent: nothing was there then."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.kueues(), fleet.running():
        await until(is_active(fleet))
        await anyio.sleep(60)
        for worker in fleet.workers.values():
            worker.faults.add(Delay(28), on=Match(("list",), "jobs", user="multikueue"))
            worker.faults.add(Reset(), on=Match(("create",), "jobs", user="multikueue"), at="reply", times=1)
        await fleet.submit("job")
        await until(lambda: _runs(fleet))
        before = await fleet.running_on()
        await anyio.sleep(90)
        assert await fleet.running_on() == before
        job = await fleet.admin.get(JOB, ObjectKey("default", "job"))
        assert job["status"]["active"] == 1


@pytest.mark.parametrize("there", [True, False])
async def test_a_kind_is_asked_for_each_minute_while_something_of_it_may_be_there(there: bool) -> None:
    """What must not run there any more is seen a minute later at most, as on a lost worker."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        async with fleet.kueues():
            if there:
                await fleet.submit("job")
                await until(lambda: _runs(fleet))
        fleet.workers["worker1"].faults.add(Refuse(403), on=Match(("list", "watch"), "jobs", user="multikueue"))
        fleet.workers["worker1"].faults.connections.drop()
        await anyio.sleep(3600)
        before = fleet.requests("worker1", "list", JOB)
        await anyio.sleep(600)
        assert (fleet.requests("worker1", "list", JOB) - before >= 9) is there


async def test_a_kind_is_asked_for_once_its_worker_is_back() -> None:
    """Its own back-off went on for up to a minute, in which nothing was seen of the jobs of a worker that was back."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching() as manager:
        await fleet.submit("job")
        await until(lambda: _runs(fleet))
        [informers] = [worker.known for worker in manager.workers]
        assert informers is not None
        faults = fleet.workers["worker1"].faults
        faults.add(Refuse(403), on=Match(("list", "watch"), "jobs", user="multikueue"))
        faults.partition("reset")
        faults.heal()
        await anyio.sleep(600)
        before = fleet.requests("worker1", "list", JOB)
        await until(lambda: _asks(fleet, before))
        faults.clear()
        faults.partition("reset")
        await anyio.sleep(1)
        faults.heal()
        await anyio.sleep(20)
        assert not informers.jobs[JOB.gvk].informer.status.failures


async def _asks(fleet: Fleet, before: int) -> bool:
    return fleet.requests("worker1", "list", JOB) > before


def serves_no_jobs(fleet: Fleet, worker: str) -> None:
    """The worker's Jobs are not served any more, and its connections break."""
    del fleet.workers[worker].registry.cluster.types["batch", "v1", "jobs"]
    fleet.workers[worker].faults.connections.drop()


async def _runs(fleet: Fleet) -> bool:
    jobs = (await DirectClient(fleet.workers["worker1"]).list(JOB)).items
    return any((job.get("status") or {}).get("active") for job in jobs)


async def test_a_server_that_says_when_it_may_be_asked_again_is_waited_for() -> None:
    """Also where something of the kind may be there: only our own back-off is shortened for that."""
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        async with fleet.kueues():
            await fleet.submit("job")
            await until(lambda: _runs(fleet))
        wants = Refuse(503, retry_after=300)
        fleet.workers["worker1"].faults.add(wants, on=Match(("list", "watch"), "jobs", user="multikueue"))
        fleet.workers["worker1"].faults.connections.drop()
        await anyio.sleep(3600)
        before = fleet.requests("worker1", "list", JOB)
        await anyio.sleep(900)
        assert fleet.requests("worker1", "list", JOB) - before <= 4
