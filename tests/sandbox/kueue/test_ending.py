"""How jobs of the small Kueue stop, end and start over, with virtual time."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import has_quota
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kinds import AVAILABLE
from multikueue.sandbox.kueue import evict
from multikueue.testing import InMemoryCluster
from tests.sandbox.kueue.doings import admitted, apply, lasting, runs
from tests.sandbox.kueue.objects import (
    cluster_queue,
    condition,
    flavor,
    is_true,
    local_queue,
)
from tests.sandbox.kueue.world import wall_clock, world

pytestmark = pytest.mark.looptime


async def test_switching_off_stops_the_job_and_switching_on_starts_it_again() -> None:
    async with world() as cluster:
        await cluster.create(lasting())
        name = (await cluster.workload_when(admitted))["metadata"]["name"]
        await cluster.job_when(runs)
        await cluster.patch(WORKLOAD, name, {"spec": {"active": False}})
        await cluster.workload_when(lambda workload: "admission" not in workload["status"])
        stopped = await cluster.job()
        assert (stopped["spec"]["suspend"], runs(stopped), "startTime" in stopped["status"]) == (True, False, False)
        await cluster.create(lasting("next"))
        await cluster.job_when(runs, "next")
        await cluster.patch(JOB, "next", {"metadata": {"annotations": None}})
        await cluster.client.delete(JOB, ObjectKey("default", "next"), propagation="Background")
        await cluster.patch(WORKLOAD, name, {"spec": {"active": True}})
        await cluster.job_when(runs)


async def test_a_manager_can_stop_a_copy_through_its_deactivation_target() -> None:
    async with world() as cluster:
        await cluster.create(lasting())
        await cluster.job_when(runs)
        target = {"type": "DeactivationTarget", "status": "True", "reason": "EvictedOnManagerCluster", "message": "m"}
        await apply(cluster, {"conditions": [{**target, "lastTransitionTime": timestamp(wall_clock())}]}, "tester")
        off = await cluster.workload_when(lambda workload: "admission" not in workload["status"])
        reason = "DeactivatedDueToEvictedOnManagerCluster"
        assert condition(off, "Evicted") == ("True", reason, "The workload is deactivated due to m")
        assert not runs(await cluster.job())


async def test_a_tester_can_evict() -> None:
    """The public way to make a worker's Kueue take a workload's quota."""
    async with world() as cluster:
        await cluster.create(lasting())
        key = ObjectKey.of(await cluster.workload_when(admitted))
        await cluster.job_when(runs)
        await evict(cluster.client, key, reason="PodsReadyTimeout", message="too slow", clock=wall_clock)
        back = await cluster.workload_when(lambda workload: admitted(workload) and not is_true(workload, "Evicted"))
        assert back["status"]["schedulingStats"]["evictions"] == [
            {"reason": "PodsReadyTimeout", "underlyingCause": "", "count": 1}
        ]
        await cluster.job_when(runs)


async def test_a_failed_job_is_a_failed_workload() -> None:
    async with world() as cluster:
        await cluster.create(lasting(duration="2s", outcome="fail"))
        done = await cluster.workload_when(lambda workload: is_true(workload, "Finished"))
        message = "Job has reached the specified backoff limit"
        assert condition(done, "Finished") == ("True", "Failed", message)
        assert condition(await cluster.job(), "Failed") == ("True", "BackoffLimitExceeded", message)


async def test_deleting_a_job_frees_its_quota() -> None:
    async with world() as cluster:
        await cluster.create(lasting("j1"), lasting("j2"))
        await cluster.job_when(runs, "j1")
        name = (await cluster.workload("j1"))["metadata"]["name"]
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Background")
        await cluster.gone(WORKLOAD, name)
        await cluster.job_when(runs, "j2")


async def test_a_job_deleted_in_the_foreground_goes_with_its_workload() -> None:
    async with world() as cluster:
        await cluster.create(lasting("j1"), lasting("j2"))
        await cluster.job_when(runs, "j1")
        name = (await cluster.workload("j1"))["metadata"]["name"]
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Foreground")
        await cluster.gone(JOB, "j1")
        await cluster.gone(WORKLOAD, name)
        await cluster.job_when(runs, "j2")


async def test_a_job_that_a_finalizer_holds_runs_on_without_quota() -> None:
    """Deleted in the background: Kueue sees an owner on its way out and has done with it; nobody ends its pods."""
    async with world() as cluster:
        await cluster.create(lasting("j1"), lasting("j2"))
        await cluster.job_when(runs, "j1")
        await cluster.patch(JOB, "j1", {"metadata": {"finalizers": ["example.com/slow"]}})
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Background")
        done = await cluster.workload_when(lambda workload: is_true(workload, "Finished"))
        assert condition(done, "Finished") == ("True", "OwnerNotFound", "The workload's owner no longer exists")
        await cluster.job_when(runs, "j2")
        assert "finalizers" not in (await cluster.workload("j1"))["metadata"]
        held = await cluster.job("j1")
        assert (runs(held), held["spec"]["suspend"]) == (True, False)


async def test_deleting_a_workload_stops_its_job_which_then_gets_another() -> None:
    async with world() as cluster:
        await cluster.create(lasting())
        await cluster.job_when(runs)
        old = await cluster.workload()
        await cluster.client.delete(WORKLOAD, ObjectKey.of(old))
        await cluster.workload_when(lambda workload: workload["metadata"]["uid"] != old["metadata"]["uid"])
        await cluster.job_when(runs)


async def test_a_running_job_that_changes_its_size_starts_over_with_another_workload() -> None:
    async with world(cpu="2") as cluster:
        await cluster.create(lasting(parallelism=2, completions=4))
        await cluster.job_when(lambda job: job["status"].get("active") == 2)
        old = await cluster.workload()
        await cluster.patch(JOB, "j1", {"spec": {"parallelism": 1}})
        fresh = await cluster.workload_when(
            lambda workload: workload["metadata"]["uid"] != old["metadata"]["uid"] and admitted(workload)
        )
        assert fresh["spec"]["podSets"][0]["count"] == 1
        await cluster.job_when(lambda job: job["status"].get("active") == 1)


async def test_a_jobs_quota_is_free_long_before_its_pods_have_ended() -> None:
    """Kueue looks at `active`, not at `terminating`. The job copy alone tells how long the run lasts."""
    async with world(options=RunnerOptions(trap=25)) as cluster:
        await cluster.create(lasting("j1"), lasting("next"))
        await cluster.job_when(runs, "j1")
        await cluster.settle()
        begin, key = anyio.current_time(), ObjectKey.of(await cluster.workload("j1"))
        await cluster.client.merge_patch(WORKLOAD, key, {"spec": {"active": False}})
        await cluster.workload_when(lambda workload: "admission" not in workload["status"], "j1")
        await cluster.job_when(runs, "next")
        await cluster.client.delete(JOB, ObjectKey("default", "j1"), propagation="Foreground")
        assert anyio.current_time() == begin
        await cluster.gone(WORKLOAD, key.name)
        assert (await cluster.job("j1"))["status"]["terminating"] == 1
        await cluster.gone(JOB, "j1")
        assert anyio.current_time() - begin == 25


async def test_an_evicted_raycluster_holds_its_quota_until_its_pods_have_ended() -> None:
    """And it is not admitted anew meanwhile, though it is active and the first in the queue."""
    (kind,) = [kind for kind in AVAILABLE if kind.name == "raycluster"]
    cluster = InMemoryCluster(kinds=(kind,))
    for obj in (flavor(), cluster_queue(cpu="1"), local_queue()):
        cluster.registry.create_object(obj)
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    await cluster.put(kind.example("r", template, queue="lq", delegated=False))
    async with cluster.kueue(runner=RunnerOptions(mean=1000, minimum=1000, maximum=1000, trap=25)):
        await cluster.when(kind.resource, kind.course.is_active)
        (workload,) = (await cluster.client().list(WORKLOAD)).items
        await anyio.sleep(1)
        begin = anyio.current_time()
        await evict(cluster.client(), ObjectKey.of(workload), reason="Preempted", clock=cluster.clock)
        await anyio.sleep(24)
        held = await cluster.client().get(WORKLOAD, ObjectKey.of(workload))
        assert (has_quota(held), is_true(held, "Evicted")) == (True, True)
        await cluster.when(WORKLOAD, lambda workload: has_quota(workload) and not is_true(workload, "Evicted"))
        assert 25 <= anyio.current_time() - begin < 26
