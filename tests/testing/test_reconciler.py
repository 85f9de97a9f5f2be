"""How an author of a controller tests it: with `multikueue.testing` and nothing else of ours."""

from __future__ import annotations

import anyio
import attrs
import pytest

from multikueue import ApiClient, Json, ObjectKey, WatchEvent
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.runtime.controller import Controller
from multikueue.testing import Hang, InMemoryCluster, Match, Refuse, job, queues, running, until, workload

pytestmark = pytest.mark.looptime

WRITES = Match(verbs=("patch",), resource="workloads")


@attrs.define(eq=False)
class Nominator:
    """A dispatcher of one's own: nominates one worker for each Workload that has quota."""

    client: ApiClient
    worker: str

    async def run(self) -> None:
        controller = Controller("nominator", self)

        def note(event: WatchEvent) -> None:
            if event.type in ("ADDED", "MODIFIED"):
                controller.enqueue(ObjectKey.of(event.object))

        listed = await self.client.list(WORKLOAD)
        for item in listed.items:
            controller.enqueue(ObjectKey.of(item))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(controller.run)
            await self.client.watch(WORKLOAD, note, resource_version=listed.resource_version)

    async def reconcile(self, key: ObjectKey) -> Action:
        workload = await self.client.get(WORKLOAD, key)
        status = workload.get("status") or {}
        if "admission" in status and not status.get("nominatedClusterNames"):
            patch = {"status": {"nominatedClusterNames": [self.worker]}}
            await self.client.merge_patch(WORKLOAD, key, patch, subresource="status")
        return Action.done()


def is_nominated(workload: Json) -> bool:
    return bool(workload["status"].get("nominatedClusterNames") == ["worker1"])


async def test_a_workload_with_quota_is_nominated_once() -> None:
    cluster = InMemoryCluster()
    (train,) = await cluster.put(job())
    (waiting,) = await cluster.put(workload(train, quota=False))
    async with running(Nominator(cluster.client("nominator"), "worker1").run):
        reserved = {**workload(train), "metadata": waiting["metadata"]}
        await cluster.client().replace(WORKLOAD, reserved, subresource="status")
        nominated = await cluster.when(WORKLOAD, is_nominated)
        await anyio.sleep(60)
    last = await cluster.get(WORKLOAD, nominated["metadata"]["name"])

    assert last == nominated


@pytest.mark.parametrize("effect", [Refuse(503), Hang()])
async def test_a_write_that_fails_is_tried_again(effect: Refuse | Hang) -> None:
    cluster = InMemoryCluster()
    (train,) = await cluster.put(job())
    await cluster.put(workload(train))
    fault = cluster.faults.add(effect, on=WRITES, times=1)
    async with running(Nominator(cluster.client("nominator", deadline=10), "worker1").run):
        await cluster.when(WORKLOAD, is_nominated)

    assert fault.hits == 1


async def test_kueue_and_the_controller_work_side_by_side() -> None:
    """On a manager: Kueue reserves quota, and the job waits for the check."""
    cluster = InMemoryCluster()
    await cluster.put(*queues(checked=True), job())
    async with cluster.kueue(), running(Nominator(cluster.client("nominator"), "worker1").run):
        await cluster.when(WORKLOAD, is_nominated)
    job_there = await cluster.get(JOB, "train")

    assert job_there is not None
    assert job_there["spec"]["suspend"]


async def test_waiting_for_what_does_not_come_fails() -> None:
    cluster = InMemoryCluster()
    await cluster.put(job())

    with pytest.raises(AssertionError, match="no object of"):
        await cluster.when(WORKLOAD, is_nominated, within=5)
    with pytest.raises(AssertionError, match="is still there"):
        await cluster.gone(JOB, "train", within=5)
    with pytest.raises(AssertionError, match="still not so after 5"):
        await until(lambda: False, within=5)
    with pytest.raises(LookupError, match="does not serve"):
        cluster.resource_of({"apiVersion": "example.com/v1", "kind": "Unknown"})


async def test_what_lost_its_owner_goes_while_a_test_waits() -> None:
    cluster = InMemoryCluster()
    (train,) = await cluster.put(job())
    owned = workload(train)
    del owned["metadata"]["finalizers"]
    (stored,) = await cluster.put(owned)
    await cluster.client().delete(JOB, ObjectKey.of(train), propagation="Background")

    await cluster.gone(WORKLOAD, stored["metadata"]["name"])
    assert await until(lambda: True) == 0


async def test_a_service_that_fails_ends_the_test() -> None:
    """And a test that fails meanwhile shows its own error, not a group of them."""

    async def failing() -> None:
        raise ValueError("broken")

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        async with running(failing):
            await anyio.sleep_forever()
    with pytest.raises(KeyError):
        async with running(anyio.sleep_forever):
            raise KeyError("mine")


async def test_what_is_deleted_in_the_foreground_goes_though_nothing_runs() -> None:
    """The cluster's own collector takes the finalizer off that the server puts on."""
    cluster = InMemoryCluster()
    (train,) = await cluster.put(job())
    client = cluster.client("mine")
    await client.delete(JOB, ObjectKey.of(train), propagation="Foreground")

    async def gone() -> bool:
        return not (await client.list(JOB)).items

    await until(gone, within=1.0)
