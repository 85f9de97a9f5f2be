"""The small Kueue on a cluster in memory, with virtual time."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

from multikueue.core.conditions import timestamp
from multikueue.core.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, EVENT, JOB, LOCAL_QUEUE, NAMESPACE, WORKLOAD
from multikueue.core.names import Json, ObjectKey, Resource
from multikueue.errors import Conflict
from multikueue.sandbox.apiserver.listing import ListOptions
from multikueue.sandbox.apiserver.resources import ResourceType
from multikueue.sandbox.apiserver.selectors import Selector
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from multikueue.sandbox.kueue import SmallKueue, evict
from multikueue.sandbox.kueue.ledger import holds_quota
from multikueue.sandbox.kueue.quota import used_by
from tests.sandbox.kueue_objects import (
    admission_check,
    cluster_queue,
    condition,
    flavor,
    is_true,
    job,
    local_queue,
    priority_class,
)
from tests.sandbox.kueue_world import World, wall_clock, world

pytestmark = pytest.mark.looptime

PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"


def lasting(name: str = "j1", duration: str = "1h", outcome: str = "complete", **more: Any) -> Json:
    """A Job that runs so long."""
    return job(name, annotations={DURATION_ANNOTATION: duration, OUTCOME_ANNOTATION: outcome}, **more)


def admitted(workload: Json) -> bool:
    return is_true(workload, "Admitted")


def waits(workload: Json) -> bool:
    return (condition(workload, "QuotaReserved") or ("", ""))[:2] == ("False", "Pending")


def runs(found: Json) -> bool:
    return bool((found.get("status") or {}).get("active"))


async def activate(cluster: World, name: str = "mk", status: str = "True") -> None:
    """Say that an admission check can be used, as its controller would."""
    check = await cluster.get(ADMISSION_CHECK, name) or {}
    found = {"type": "Active", "status": status, "reason": "Active", "message": "The admission check is active"}
    conditions = [{**found, "lastTransitionTime": timestamp(wall_clock())}]
    await cluster.client.replace(ADMISSION_CHECK, {**check, "status": {"conditions": conditions}}, subresource="status")


async def answer(cluster: World, state: str, message: str = "") -> None:
    """Answer for the check `mk` of the Workload of j1, as its controller would."""
    entry = {"name": "mk", "state": state, "message": message, "lastTransitionTime": timestamp(wall_clock())}
    await apply(cluster, {"admissionChecks": [entry]}, "checker")


async def apply(cluster: World, status: Json, manager: str) -> None:
    """Apply a part of the status of the Workload of j1; again if Kueue wrote in between."""
    while True:
        workload = await cluster.workload()
        identity = {field: workload["metadata"][field] for field in ("name", "namespace", "uid", "resourceVersion")}
        body = {"apiVersion": workload["apiVersion"], "kind": "Workload", "metadata": identity, "status": status}
        try:
            await cluster.client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
        except Conflict:
            continue
        return


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


async def test_a_job_without_a_queue_just_runs() -> None:
    async with world(cpu="0") as cluster:
        await cluster.create(lasting(queue=None))
        await cluster.job_when(runs)
        assert (await cluster.client.list(WORKLOAD)).items == []


async def test_a_smaller_job_overtakes_unless_order_is_strict() -> None:
    strict = cluster_queue("strict", cpu="2", queueingStrategy="StrictFIFO")
    async with world(strict, local_queue("strict", queue="strict"), cpu="2") as cluster:
        for queue in ("lq", "strict"):
            await cluster.create(lasting(f"{queue}-first", queue=queue))
            await cluster.job_when(runs, f"{queue}-first")
            await cluster.create(lasting(f"{queue}-big", queue=queue, cpu="2"))
            await cluster.workload_when(waits, f"{queue}-big")
            await cluster.create(lasting(f"{queue}-small", queue=queue))
        await cluster.job_when(runs, "lq-small")
        await cluster.settle()
        assert not runs(await cluster.job("strict-small"))


async def test_priority_goes_before_age() -> None:
    async with world(priority_class("high", 100)) as cluster:
        await cluster.create(lasting("first", "10s"))
        await cluster.job_when(runs, "first")
        await cluster.create(lasting("old"))
        await cluster.workload_when(waits, "old")
        await cluster.create(lasting("urgent", labels={"kueue.x-k8s.io/priority-class": "high"}))
        await cluster.job_when(runs, "urgent")
        assert not runs(await cluster.job("old"))
        assert (await cluster.workload("urgent"))["spec"]["priority"] == 100


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
        off = await cluster.workload_when(lambda found: "admission" not in found["status"])
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
        await cluster.job_when(lambda found: found["status"].get("active") == 2)
        old = await cluster.workload()
        await cluster.patch(JOB, "j1", {"spec": {"parallelism": 1}})
        fresh = await cluster.workload_when(
            lambda workload: workload["metadata"]["uid"] != old["metadata"]["uid"] and admitted(workload)
        )
        assert fresh["spec"]["podSets"][0]["count"] == 1
        await cluster.job_when(lambda found: found["status"].get("active") == 1)


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
        queue = await cluster.when(LOCAL_QUEUE, lambda found: condition(found, "Active") is not None)
        assert (condition(queue, "Active") or ("", ""))[:2] == ("False", "ClusterQueueDoesNotExist")


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


async def test_queues_report_their_numbers() -> None:
    async with world(cpu="2") as cluster:
        await cluster.create(lasting("j1"), lasting("j2", cpu="1500m"))
        await cluster.job_when(runs, "j1")
        queue = await cluster.when(CLUSTER_QUEUE, lambda found: found.get("status", {}).get("pendingWorkloads") == 1)
        assert (queue["status"]["reservingWorkloads"], queue["status"]["admittedWorkloads"]) == (1, 1)
        used = [{"name": "default", "resources": [{"name": "cpu", "total": "1", "borrowed": "0"}]}]
        assert queue["status"]["flavorsReservation"] == queue["status"]["flavorsUsage"] == used
        local = await cluster.when(LOCAL_QUEUE, lambda found: found.get("status", {}).get("pendingWorkloads") == 1)
        assert local["status"]["flavorsUsage"] == [{"name": "default", "resources": [{"name": "cpu", "total": "1"}]}]


async def test_another_kueue_goes_on_where_the_first_stopped() -> None:
    """All state is on the server."""
    async with world(queues=True, runner=True) as cluster:
        await cluster.create(lasting("j1", "20s"), lasting("j2", "20s"))
        await cluster.job_when(runs, "j1")
        async with anyio.create_task_group() as second:
            await second.start(SmallKueue(cluster.client, clock=wall_clock).run)
            await cluster.workload_when(lambda workload: is_true(workload, "Finished"), "j2")
            await cluster.settle()
            second.cancel_scope.cancel()
        held = [item for item in (await cluster.client.list(WORKLOAD)).items if not is_true(item, "Finished")]
        assert held == []


async def test_two_at_work_get_everything_done() -> None:
    """A standby that believes it is the leader: their writes conflict, and each tries again."""
    async with world(cpu="3") as cluster, anyio.create_task_group() as second:
        await second.start(SmallKueue(cluster.client, clock=wall_clock).run)
        await cluster.create(*[lasting(f"j{number}", "5s") for number in range(9)])
        for number in range(9):
            await cluster.workload_when(lambda workload: is_true(workload, "Finished"), f"j{number}")
        second.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(3))
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
                found = cluster.registry.list(row, None, ListOptions(Selector())).entries
                held = (entry.obj for entry in found if holds_quota(entry.obj))
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
        told = [event["note"] for event in events if event["reason"] == "UpdatedAdmissionCheck"]
        assert sorted(told) == ["mk: found", "mk: looking"]
