"""Who gets quota of the small Kueue and when, with virtual time."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, WORKLOAD
from multikueue.core.model.names import Json, Resource
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.storage.selectors import Selector
from multikueue.sandbox.apiserver.verbs.listing import ListOptions
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.kueue.scheduling.ledger import holds_quota
from multikueue.sandbox.kueue.scheduling.quota import used_by
from multikueue.testing.waiting import background
from tests.examples import shared
from tests.sandbox.kueue.doings import admitted, lasting, runs, waits
from tests.sandbox.kueue.objects import (
    cluster_queue,
    condition,
    flavor,
    is_true,
    local_queue,
    priority_class,
)
from tests.sandbox.kueue.world import wall_clock, world

pytestmark = pytest.mark.looptime
SAME = "kueue.x-k8s.io/job-completions-equal-parallelism"


def sizes(job: Json) -> tuple[int, int]:
    """How many pods run at a time, and in all."""
    return job["spec"]["parallelism"], job["spec"]["completions"]


async def test_jobs_run_one_after_the_other_when_there_is_room_for_one() -> None:
    """First come, first served; and every end makes room for the next."""
    async with world() as cluster:
        await cluster.create(lasting("j1", "10s"))
        await cluster.job_when(runs, "j1")
        await cluster.create(lasting("j2", "10s"))
        assert "1 more needed" in (condition(await cluster.workload_when(waits, "j2"), "QuotaReserved") or ("",) * 3)[2]
        await cluster.job_when(runs, "j2")
        assert is_true(await cluster.job("j1"), "Complete")
        await cluster.workload_when(lambda workload: is_true(workload, "Finished"), "j2")


async def test_a_job_created_running_does_not_run_before_its_turn() -> None:
    """There is no webhook to suspend it; neither Kueue's word nor the runner's haste may let it slip through."""
    async with world(cpu="0") as cluster:
        started: list[Json] = []
        cluster.registry.cluster.listeners.append(
            lambda row, _old, new: started.append(new or {}) if row.kind == "Job" and runs(new or {}) else None
        )
        await cluster.create(lasting(suspend=False))
        await cluster.workload_when(waits)
        await cluster.settle(60)
        assert (await cluster.job())["spec"]["suspend"] is True
        assert started == []


async def test_what_does_not_get_its_pods_ready_waits_for_another_try() -> None:
    """Its quota is free meanwhile; the waits grow, and nothing is evicted whose pods are ready."""
    broken = RunnerOptions(startup=3600)
    async with world(options=broken, pods_ready_timeout=timedelta(minutes=2)) as cluster:
        begun = wall_clock()
        await cluster.create(lasting("j1"))
        evicted = await cluster.workload_when(lambda workload: is_true(workload, "Evicted"))
        assert (condition(evicted, "Evicted") or ("",) * 3)[1:] == (
            "PodsReadyTimeout",
            f"Exceeded the PodsReady timeout default/{evicted['metadata']['name']}",
        )
        assert wall_clock() - begun >= timedelta(minutes=2)
        again = await cluster.workload_when(
            lambda workload: workload["status"].get("requeueState", {}).get("count") == 2
        )
        assert again["status"]["schedulingStats"]["evictions"] == [
            {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 2}
        ]
    async with world(pods_ready_timeout=timedelta(minutes=2)) as cluster:
        await cluster.create(lasting("j1", "1h"))
        await cluster.settle(1800)
        assert is_true(await cluster.workload(), "PodsReady")
        assert not is_true(await cluster.workload(), "Evicted")


async def test_a_job_without_a_queue_just_runs() -> None:
    async with world(cpu="0") as cluster:
        await cluster.create(lasting(queue=None))
        await cluster.job_when(runs)
        assert (await cluster.client.list(WORKLOAD)).items == []


async def test_a_job_waits_for_its_priority_class() -> None:
    async with world() as cluster:
        await cluster.create(lasting(labels={"kueue.x-k8s.io/priority-class": "later"}))
        await cluster.settle(5)
        assert (await cluster.client.list(WORKLOAD)).items == []
        await cluster.create(priority_class("later", 3))
        await cluster.job_when(runs)


async def test_the_weaker_is_preempted_and_comes_back() -> None:
    queue = cluster_queue(cpu="1", preemption={"withinClusterQueue": "LowerPriority"})
    objects = (flavor(), queue, local_queue(), priority_class("high", 100))
    async with world(*objects, queues=False) as cluster:
        await cluster.create(lasting("weak", "30s"))
        await cluster.job_when(runs, "weak")
        await cluster.create(lasting("strong", "10s", labels={"kueue.x-k8s.io/priority-class": "high"}))
        evicted = await cluster.workload_when(lambda workload: is_true(workload, "Preempted"), "weak")
        strong = await cluster.workload("strong")
        message = (
            f"Preempted to accommodate a workload (UID: {strong['metadata']['uid']}, "
            f"JobUID: {strong['metadata']['labels']['kueue.x-k8s.io/job-uid']}) due to prioritization in the "
            "ClusterQueue; preemptor path: /cq; preemptee path: /cq"
        )
        assert condition(evicted, "Evicted") == ("True", "Preempted", message)
        await cluster.job_when(runs, "strong")
        assert (await cluster.job("weak"))["spec"]["suspend"] is True
        back = await cluster.workload_when(admitted, "weak")
        assert is_true(await cluster.job("strong"), "Complete")
        assert condition(back, "Evicted") == ("False", "QuotaReserved", f"Previously: {message}")


@pytest.mark.parametrize("same", [True, False])
async def test_a_job_runs_with_fewer_pods_if_it_says_so_and_has_all_again_when_it_is_stopped(same: bool) -> None:
    """Kueue's partial admission: 20 pods, at least 5. It waited for ever with `insufficient quota`."""
    noted = {"kueue.x-k8s.io/job-min-parallelism": "5", SAME: str(same).lower()}
    queue = cluster_queue(cpu="9", preemption={"withinClusterQueue": "LowerPriority"})
    async with world(flavor(), queue, local_queue(), priority_class("high", 100), queues=False) as cluster:
        made = lasting("weak", "30s", annotations=noted, parallelism=20, completions=20, completionMode="Indexed")
        await cluster.create(made)
        running = await cluster.job_when(runs, "weak")
        assert sizes(running) == (9, 9 if same else 20)
        workload = await cluster.workload("weak")
        (asked,), (given,) = workload["spec"]["podSets"], workload["status"]["admission"]["podSetAssignments"]
        assert (asked["count"], asked["minCount"], given["count"], given["resourceUsage"]["cpu"]) == (20, 5, 9, "9")
        await cluster.settle(20)
        assert (await cluster.workload("weak"))["metadata"]["uid"] == workload["metadata"]["uid"]

        strong = lasting("strong", "10s", labels={"kueue.x-k8s.io/priority-class": "high"}, cpu="6")
        await cluster.create(strong)
        await cluster.job_when(runs, "strong")
        assert sizes(await cluster.job("weak")) == (20, 20)
        await cluster.workload_when(lambda workload: is_true(workload, "Finished"), "weak")


async def test_a_missing_queue_is_named_and_waited_for() -> None:
    async with world(flavor(), cluster_queue(), queues=False) as cluster:
        await cluster.create(lasting())
        refused = ("False", "Inadmissible", "LocalQueue lq doesn't exist")
        await cluster.workload_when(lambda workload: condition(workload, "QuotaReserved") == refused)
        await cluster.create(local_queue())
        await cluster.job_when(runs)


async def test_a_namespace_the_queue_does_not_select_has_to_wait() -> None:
    queue = cluster_queue(namespaceSelector={"matchLabels": {"team": "a"}})
    async with world(flavor(), queue, local_queue(), queues=False) as cluster:
        await cluster.create(lasting())
        shut = await cluster.workload_when(waits)
        message = "Workload namespace doesn't match ClusterQueue selector"
        assert (condition(shut, "QuotaReserved") or ("",) * 3)[2] == message
        await cluster.patch(NAMESPACE, "default", {"metadata": {"labels": {"team": "a"}}})
        await cluster.job_when(runs)


@pytest.mark.parametrize(("resource", "name"), [(LOCAL_QUEUE, "lq"), (CLUSTER_QUEUE, "cq")])
async def test_a_queue_on_hold_takes_nobody_and_goes_on_afterwards(resource: Resource, name: str) -> None:
    async with world() as cluster:
        await cluster.patch(resource, name, {"spec": {"stopPolicy": "Hold"}})
        await cluster.create(lasting())
        kind = "LocalQueue" if resource == LOCAL_QUEUE else "ClusterQueue"
        refused = ("False", "Inadmissible", f"{kind} {name} is inactive")
        await cluster.workload_when(lambda workload: condition(workload, "QuotaReserved") == refused)
        await cluster.when(resource, lambda queue: (condition(queue, "Active") or ("", ""))[:2] == ("False", "Stopped"))
        await cluster.patch(resource, name, {"spec": {"stopPolicy": "None"}})
        await cluster.job_when(runs)


async def test_a_queue_without_a_cluster_queue_says_so() -> None:
    async with world(local_queue(), queues=False) as cluster:
        queue = await cluster.when(LOCAL_QUEUE, lambda queue: condition(queue, "Active") is not None)
        assert (condition(queue, "Active") or ("", ""))[:2] == ("False", "ClusterQueueDoesNotExist")


async def test_queues_report_their_numbers() -> None:
    async with world(cpu="2") as cluster:
        await cluster.create(lasting("j1"), lasting("j2", cpu="1500m"))
        await cluster.job_when(runs, "j1")
        queue = await cluster.when(CLUSTER_QUEUE, lambda queue: queue.get("status", {}).get("pendingWorkloads") == 1)
        assert (queue["status"]["reservingWorkloads"], queue["status"]["admittedWorkloads"]) == (1, 1)
        used = [{"name": "default", "resources": [{"name": "cpu", "total": "1", "borrowed": "0"}]}]
        assert queue["status"]["flavorsReservation"] == queue["status"]["flavorsUsage"] == used
        local = await cluster.when(LOCAL_QUEUE, lambda queue: queue.get("status", {}).get("pendingWorkloads") == 1)
        assert local["status"]["flavorsUsage"] == [{"name": "default", "resources": [{"name": "cpu", "total": "1"}]}]


async def test_another_kueue_goes_on_where_the_first_stopped() -> None:
    """All state is on the server."""
    async with world(queues=True, runner=True) as cluster:
        await cluster.create(lasting("j1", "20s"), lasting("j2", "20s"))
        await cluster.job_when(runs, "j1")
        async with background() as second:
            await second.start(SmallKueue(cluster.client, clock=wall_clock).run)
            await cluster.workload_when(lambda workload: is_true(workload, "Finished"), "j2")
            await cluster.settle()
        held = [item for item in (await cluster.client.list(WORKLOAD)).items if not is_true(item, "Finished")]
        assert held == []


async def test_two_at_work_get_everything_done() -> None:
    """A standby that believes it is the leader: their writes conflict, and each tries again."""
    async with world(cpu="3") as cluster, background() as second:
        await second.start(SmallKueue(cluster.client, clock=wall_clock).run)
        await cluster.create(*[lasting(f"j{number}", "5s") for number in range(9)])
        for number in range(9):
            await cluster.workload_when(lambda workload: is_true(workload, "Finished"), f"j{number}")


@pytest.mark.parametrize("seed", shared(range(3)))
async def test_quota_is_not_exceeded_at_any_moment(seed: int) -> None:
    """Jobs of any size and priority come, run, are preempted and go; whatever the watch has not told yet."""
    dice = random.Random(seed)
    queue = cluster_queue(cpu="4", preemption={"withinClusterQueue": "LowerPriority"})
    objects = (flavor(), queue, local_queue(), priority_class("high", 100), priority_class("higher", 200))
    async with world(*objects, queues=False) as cluster:
        most = 0

        def count(row: ResourceType, _old: Json | None, _new: Json | None) -> None:
            nonlocal most
            if row.kind == "Workload":
                entries = cluster.registry.list(row, None, ListOptions(Selector())).entries
                held = (entry.obj for entry in entries if holds_quota(entry.obj))
                most = max(most, sum(sum(used_by(workload).values()) for workload in held))

        cluster.registry.cluster.listeners.append(count)
        for number in range(12):
            chosen = dice.choice(["", "high", "higher"])
            labels = {"kueue.x-k8s.io/priority-class": chosen} if chosen else {}
            size, seconds = str(dice.randint(1, 4)), f"{dice.randint(1, 20)}s"
            await cluster.create(lasting(f"j{number}", seconds, cpu=size, labels=labels))
            await cluster.settle(dice.choice([0, 0.5, 3]))
        for number in range(12):
            await cluster.workload_when(lambda workload: is_true(workload, "Finished"), f"j{number}")
        assert 0 < most <= 4_000
