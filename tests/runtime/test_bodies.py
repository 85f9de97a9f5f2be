"""Large bodies of the manager's objects are not kept: they are read again where they are sent."""

from __future__ import annotations

from typing import Any
from unittest import mock

import anyio
import pytest

from multikueue.core.model.kinds import EVENT, JOB, WORKLOAD
from multikueue.core.model.labels import FINDING_LABEL, ToldFinding
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, labels_of, uid
from multikueue.core.model.slimmed import LARGE, is_slimmed
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.kube.informers.list_pages import size_of
from multikueue.runtime.caches import manager_cluster
from multikueue.runtime.manager import Manager
from multikueue.runtime.reconcilers.bodies import PLACES, SHARE, SHARE_OF_LARGE, TELL_AFTER, Bodies
from multikueue.sandbox.apiserver import DirectClient
from tests.examples import shared
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

TEXT = "x" * 50_000
KEY = ObjectKey("default", "job")


def template(text: str = TEXT) -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
    return {"containers": [{**container, "env": [{"name": "BULK", "value": text}]}]}


def kept(manager: Manager) -> list[Json]:
    caches = manager.cluster.workloads, manager.cluster.jobs[JOB.gvk]
    return [obj for cache in caches for obj in cache.informer.values()]


def text_in(obj: Json, *path: str) -> Any:
    (container,) = dig(obj, *path, "spec", "containers")
    return container["env"][0]["value"]


async def test_a_large_job_is_copied_whole_and_not_kept() -> None:
    fleet = await Fleet.connected("worker1")
    worker = DirectClient(fleet.workers["worker1"])
    async with fleet.kueues():
        async with fleet.dispatching() as manager:
            await fleet.submit("job", template=template())
            await until(lambda: all_run(fleet, 1))
            await anyio.sleep(5)
            (copy,), (job,) = (await worker.list(WORKLOAD)).items, (await worker.list(JOB)).items
            assert text_in(copy["spec"]["podSets"][0], "template") == TEXT
            assert text_in(job, "spec", "template") == TEXT
            assert all(is_slimmed(obj) and size_of(obj) < LARGE for obj in kept(manager))
            assert len(kept(manager)) == 2
        async with fleet.dispatching() as manager:
            await anyio.sleep(30)
            assert all(is_slimmed(obj) for obj in kept(manager))
            uids = [(await worker.list(kind)).items[0]["metadata"]["uid"] for kind in (WORKLOAD, JOB)]
            assert uids == [copy["metadata"]["uid"], job["metadata"]["uid"]], "nothing was made anew"


async def test_a_small_job_is_kept_and_read_no_second_time() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching() as manager:
        with mock.patch.object(Bodies, "take", side_effect=AssertionError("read again")):
            await fleet.submit("job", template=template("short"))
            await until(lambda: all_run(fleet, 1))
        assert not any(map(is_slimmed, kept(manager)))


@pytest.mark.parametrize("times", shared([1, 6], lambda times: f"{50 * times} kB"))
async def test_a_few_are_in_memory_at_a_time_and_few_of_a_namespace(times: int) -> None:
    most, take = [0], Bodies.take

    async def counted(self: Bodies, *given: Any) -> Any:
        answer = await take(self, *given)
        most.append(len(self._read))
        return answer

    fleet = await Fleet.connected("worker1", cpu=40)
    with mock.patch.object(Bodies, "take", counted):
        async with fleet.kueues(), fleet.dispatching():
            for number in range(12):
                await fleet.submit(f"job-{number}", template=template(TEXT * times))
            await until(lambda: all_run(fleet, 12))
    assert max(most) == (SHARE if times == 1 else SHARE_OF_LARGE) < PLACES


async def test_what_has_gone_meanwhile_is_not_made() -> None:
    """It is deleted between the plan that lacks its body and the one that has it."""
    take = Bodies.take

    async def deleted(self: Bodies, *given: Any) -> Any:
        await fleet.admin.delete(JOB, KEY, propagation="Background")
        await anyio.sleep(1)
        return await take(self, *given)

    fleet = await Fleet.connected("worker1")
    with mock.patch.object(Bodies, "take", deleted):
        async with fleet.kueues(), fleet.dispatching():
            await fleet.submit("job", template=template())
            await anyio.sleep(30)
    assert not (await DirectClient(fleet.workers["worker1"]).list(WORKLOAD)).items


async def test_no_body_stays_that_is_read_while_something_ends_on_a_worker() -> None:
    """The end of what an earlier plan has begun gave back what the next plan was reading: nobody did so later, and what
    is noted of a thousand versions of Workloads kept them, of 1.2 MB each."""
    fleet, number = await Fleet.connected("worker1", "worker2", cpu=64), 12
    reading, get = DirectClient(fleet.manager, user="multikueue"), DirectClient.get

    async def slowly(self: DirectClient, resource: Resource, key: ObjectKey) -> Json:
        body = await get(self, resource, key)
        await anyio.sleep(0.5 if self is reading else 0)
        return body

    with mock.patch.object(DirectClient, "get", slowly):
        async with fleet.kueues(), fleet.dispatching(fleet.build(client=reading)):
            for index in range(number):
                await fleet.submit(f"job-{index}", template=template())
            await until(lambda: all_run_there(fleet, number))
            await anyio.sleep(5)
            here = {uid(workload) for workload in (await fleet.admin.list(WORKLOAD)).items}
    noted = [workload for workload, _ in WORKLOADS._known.values() if uid(workload) in here]
    assert noted
    assert max(map(size_of, noted)) < LARGE


async def test_who_waits_long_for_a_place_is_told_once() -> None:
    """Of a namespace two have a place, each for two slow reads."""
    fleet, number = await Fleet.connected("worker1", cpu=64), 8
    reading, get = DirectClient(fleet.manager, user="multikueue"), DirectClient.get

    async def slowly(self: DirectClient, resource: Resource, key: ObjectKey) -> Json:
        await anyio.sleep(20 if self is reading and resource in (WORKLOAD, JOB) else 0)
        return await get(self, resource, key)

    with mock.patch.object(DirectClient, "get", slowly):
        async with fleet.kueues(), fleet.dispatching(fleet.build(client=reading)):
            for index in range(number):
                await fleet.submit(f"job-{index}", template=template())
            await anyio.sleep(TELL_AFTER - 5)
            assert not await told_to_wait(fleet)
            await until(lambda: all_run(fleet, number), 600)
            await anyio.sleep(5)
    waiting = await told_to_wait(fleet)
    assert {about["kind"] for about in waiting} == {"Job", "Workload"}
    jobs = [about["name"] for about in waiting if about["kind"] == "Job"]
    assert number - SHARE <= len(jobs) == len(set(jobs))


async def told_to_wait(fleet: Fleet) -> list[Json]:
    """About what there are events that it waits for a place."""
    events = (await fleet.admin.list(EVENT)).items
    return [event["regarding"] for event in events if labels_of(event).get(FINDING_LABEL) == ToldFinding.COPY_WAITS]


async def all_run_there(fleet: Fleet, jobs: int) -> bool:
    listed = [job for server in fleet.workers.values() for job in (await DirectClient(server).list(JOB)).items]
    return sum(bool(dig(job, "status", "active")) for job in listed) == jobs


async def all_run(fleet: Fleet, jobs: int) -> bool:
    listed = (await DirectClient(fleet.workers["worker1"]).list(JOB)).items
    return sum(bool(dig(job, "status", "active")) for job in listed) == jobs


@pytest.mark.gate
async def test_a_namespace_has_a_share_of_what_is_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, too: whoever may create jobs decides how many there are. Those beyond the share run as well."""
    monkeypatch.setattr(manager_cluster, "WHOLE", 40_000)
    fleet, jobs = await Fleet.connected("worker1", cpu=64), 20
    worker = DirectClient(fleet.workers["worker1"])
    async with fleet.kueues(), fleet.dispatching() as manager:
        for number in range(jobs):
            await fleet.submit(f"job-{number}", template=template("y" * 2_000))
        await until(lambda: all_run(fleet, jobs))
        whole = [obj for obj in kept(manager) if not is_slimmed(obj)]
        assert 4 < len(whole) < 10
        assert sum(map(size_of, whole)) < 30_000
        assert all(size_of(obj) < 4_000 for obj in kept(manager) if is_slimmed(obj))
        for copy in (await worker.list(JOB)).items:
            assert text_in(copy, "spec", "template") == "y" * 2_000
        for job in (await fleet.admin.list(JOB)).items:
            await fleet.admin.delete(JOB, ObjectKey.of(job), propagation="Background")
        await until(lambda: none_kept(manager))
        await fleet.submit("later", template=template("y" * 2_000))
        await until(lambda: all_run(fleet, 1))
        assert not any(map(is_slimmed, kept(manager)))


async def none_kept(manager: Manager) -> bool:
    return not kept(manager)
