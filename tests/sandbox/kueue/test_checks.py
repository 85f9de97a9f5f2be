"""The small Kueue and admission checks, with virtual time."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, EVENT, LOCAL_QUEUE
from tests.sandbox.kueue.doings import activate, answer, lasting, runs
from tests.sandbox.kueue.objects import (
    admission_check,
    cluster_queue,
    condition,
    flavor,
    is_true,
    job,
    local_queue,
)
from tests.sandbox.kueue.world import world

pytestmark = pytest.mark.looptime


async def test_an_inactive_check_closes_the_queue_until_it_is_active() -> None:
    """So it is with MultiKueue's check while no worker is connected."""
    objects = (flavor(), cluster_queue(checks=("mk",)), local_queue(), admission_check())
    async with world(*objects, queues=False) as cluster:
        closed = await cluster.when(CLUSTER_QUEUE, lambda queue: condition(queue, "Active") is not None)
        message = "Can't admit new workloads: references inactive AdmissionCheck(s): mk."
        assert condition(closed, "Active") == ("False", "AdmissionCheckInactive", message)
        inactive = ("False", "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
        await cluster.when(LOCAL_QUEUE, lambda queue: condition(queue, "Active") == inactive)
        await cluster.create(job())
        refused = ("False", "Inadmissible", "ClusterQueue cq is inactive")
        await cluster.workload_when(lambda workload: condition(workload, "QuotaReserved") == refused)
        await activate(cluster)
        await cluster.workload_when(lambda workload: is_true(workload, "QuotaReserved"))
        opened = await cluster.when(CLUSTER_QUEUE, lambda queue: is_true(queue, "Active"))
        assert condition(opened, "Active") == ("True", "Ready", "Can admit new workloads")


async def test_a_check_that_says_retry_sends_it_through_the_queue_again() -> None:
    objects = (flavor(), cluster_queue(checks=("mk",)), local_queue(), admission_check())
    async with world(*objects, queues=False) as cluster:
        await activate(cluster)
        await cluster.create(lasting())
        await cluster.workload_when(lambda workload: is_true(workload, "QuotaReserved"))
        await answer(cluster, "Ready")
        await cluster.job_when(runs)
        await answer(cluster, "Retry", "try elsewhere")
        again = await cluster.workload_when(
            lambda workload: (
                bool(workload["status"].get("schedulingStats"))
                and is_true(workload, "QuotaReserved")
                and not is_true(workload, "Evicted")
            )
        )
        assert again["status"]["admissionChecks"][0]["retryCount"] == 1
        assert not runs(await cluster.job())
        await answer(cluster, "Ready")
        await cluster.job_when(runs)


async def test_a_check_that_rejects_switches_it_off() -> None:
    objects = (flavor(), cluster_queue(checks=("mk",)), local_queue(), admission_check())
    async with world(*objects, queues=False) as cluster:
        await activate(cluster)
        await cluster.create(job())
        await cluster.workload_when(lambda workload: is_true(workload, "QuotaReserved"))
        await answer(cluster, "Rejected", "never")
        off = await cluster.workload_when(lambda workload: "admission" not in workload["status"])
        assert off["spec"]["active"] is False
        assert (condition(off, "Evicted") or ("", ""))[1] == "DeactivatedDueToAdmissionCheck"
        await cluster.settle(60)
        assert not is_true(await cluster.workload(), "QuotaReserved")


async def test_a_check_message_is_told_once_on_the_job() -> None:
    objects = (flavor(), cluster_queue(checks=("mk",)), local_queue(), admission_check())
    async with world(*objects, queues=False) as cluster:
        await activate(cluster)
        await cluster.create(job())
        await cluster.workload_when(lambda workload: is_true(workload, "QuotaReserved"))
        for message in ("looking", "looking", "found"):
            await answer(cluster, "Pending", message)
            await cluster.settle()
        events = (await cluster.client.list(EVENT)).items
        notes = [event["note"] for event in events if event["reason"] == "UpdatedAdmissionCheck"]
        assert sorted(notes) == ["mk: found", "mk: looking"]
