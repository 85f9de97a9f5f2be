"""The small Kueue of a worker and what a manager puts there, with virtual time."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.kueue import evict
from tests.sandbox.kueue.doings import admitted, lasting, runs, waits
from tests.sandbox.kueue.objects import (
    condition,
    is_true,
)
from tests.sandbox.kueue.world import wall_clock, world

pytestmark = pytest.mark.looptime

PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"


def copied(workload: Json) -> Json:
    """What MultiKueue creates on a worker."""
    metadata = {
        "name": workload["metadata"]["name"],
        "namespace": "default",
        "labels": {"kueue.x-k8s.io/multikueue-origin": "multikueue"},
    }
    return {"apiVersion": workload["apiVersion"], "kind": "Workload", "metadata": metadata, "spec": workload["spec"]}


async def some_workload() -> Json:
    """A Workload as another cluster made it."""
    async with world(cpu="0") as other:
        await other.create(lasting())
        return await other.workload_when(waits)


async def test_a_copy_is_admitted_before_its_job_comes_and_adopted_then() -> None:
    copy = copied(await some_workload())
    async with world() as cluster:
        await cluster.create(copy)
        await cluster.workload_when(admitted)
        await cluster.create(lasting(labels={PREBUILT: copy["metadata"]["name"]}))
        running = await cluster.job_when(runs)
        labels = running["spec"]["template"]["metadata"]["labels"]
        assert labels["kueue.x-k8s.io/multikueue-worker-workload-pod"] == "true"
        adopted = await cluster.workload()
        assert adopted["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == running["metadata"]["uid"]
        assert [item["metadata"]["name"] for item in (await cluster.client.list(WORKLOAD)).items] == [
            copy["metadata"]["name"]
        ]


async def test_a_job_copy_that_comes_first_waits_for_its_workload() -> None:
    copy = copied(await some_workload())
    async with world() as cluster:
        await cluster.create(lasting(labels={PREBUILT: copy["metadata"]["name"]}))
        await cluster.settle(30)
        assert not runs(await cluster.job())
        await cluster.create(copy)
        await cluster.job_when(runs)


async def test_a_job_copy_that_differs_is_out_of_sync_and_never_runs() -> None:
    copy = copied(await some_workload())
    async with world(cpu="9") as cluster:
        await cluster.create(copy)
        await cluster.workload_when(admitted)
        await cluster.create(lasting(cpu="2", labels={PREBUILT: copy["metadata"]["name"]}))
        ended = await cluster.workload_when(lambda workload: is_true(workload, "Finished"))
        message = "The prebuilt workload is out of sync with its user job"
        assert condition(ended, "Finished") == ("True", "OutOfSync", message)
        await cluster.settle(30)
        assert not runs(await cluster.job())


async def test_a_job_copy_with_a_managers_queue_name_in_its_template_fails_to_start() -> None:
    """A copy made from a started job carries what the manager's Kueue put in."""
    copy = copied(await some_workload())
    async with world() as cluster:
        await cluster.create(copy)
        tainted = lasting(labels={PREBUILT: copy["metadata"]["name"]})
        tainted["spec"]["template"]["metadata"] = {"labels": {"kueue.x-k8s.io/cluster-queue-name": "manager-cq"}}
        await cluster.create(tainted)
        ended = await cluster.workload_when(lambda workload: is_true(workload, "Finished"))
        status, reason, message = condition(ended, "Finished") or ("", "", "")
        assert (status, reason) == ("True", "FailedToStart")
        assert "conflict for key=kueue.x-k8s.io/cluster-queue-name, value1=manager-cq, value2=cq" in message


async def test_a_preempted_copy_without_a_job_makes_room() -> None:
    copy = copied(await some_workload())
    async with world() as cluster:
        await cluster.create(copy)
        key = ObjectKey.of(await cluster.workload_when(admitted))
        await cluster.create(lasting("j2"))
        await cluster.workload_when(waits, "j2")
        await cluster.settle()
        await evict(cluster.client, key, message="make room", clock=wall_clock)
        freed = await cluster.workload_when(lambda workload: bool(workload["status"].get("schedulingStats")))
        assert freed["status"]["schedulingStats"]["evictions"][0]["reason"] == "Preempted"
        await cluster.settle()
        held = [item for item in (await cluster.client.list(WORKLOAD)).items if is_true(item, "QuotaReserved")]
        assert len(held) == 1
