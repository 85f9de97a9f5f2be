"""One tenant's large or many jobs take no worker from the others: issue of two tenants, one of whom means harm."""

from __future__ import annotations

import anyio
import orjson
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, LOCAL_QUEUE, NAMESPACE, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL, ORIGIN_NAMESPACE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workloads import check, check_state
from multikueue.kube.http.response_limits import AnswerLimits
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, cluster_queue, local_queue, namespace
from tests.examples import shared
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime

LIMITS = AnswerLimits(list_bytes=400_000, list_objects=1_000)
CONTAINER = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
BULK = {"containers": [{**CONTAINER, "env": [{"name": "BULK", "value": "x" * 20_000}]}]}
FLOOD = 28
"""Of these, more bytes as the list of a worker may have."""


async def two_tenants(there: str = "0") -> Fleet:
    """Each has a queue: the attacker's has quota for everything on the manager, and for so much on the workers."""
    fleet = await Fleet.connected("worker1", "worker2", cpu=4)
    for cluster in (fleet.manager, *fleet.workers.values()):
        client, on_manager = DirectClient(cluster), cluster is fleet.manager
        quota = {"cpu": "1000" if on_manager else there}
        await client.create(CLUSTER_QUEUE, cluster_queue(quota, [CHECK] if on_manager else [], "attack"))
        for tenant, queue in (("attacker", "attack"), ("victim", CLUSTER_QUEUE_NAME)):
            await client.create(NAMESPACE, namespace(tenant))
            await client.create(LOCAL_QUEUE, local_queue(tenant, of=queue))
    return fleet


async def flood(fleet: Fleet) -> None:
    for number in range(FLOOD):
        await fleet.submit(f"bulk-{number}", namespace="attacker", template=BULK)


async def copies(fleet: Fleet, worker: str, tenant: str, resource: Resource = WORKLOAD) -> list[Json]:
    return (await DirectClient(fleet.workers[worker]).list(resource, namespace=tenant)).items


async def word(fleet: Fleet, tenant: str) -> list[str]:
    """What our check says on the tenant's Workloads."""
    workloads = (await fleet.admin.list(WORKLOAD, namespace=tenant)).items
    return [str((check(workload, CHECK) or {}).get("message", "")) for workload in workloads]


async def sizes(fleet: Fleet, tenant: str) -> list[int]:
    """How many bytes of a tenant's Workloads each worker has."""
    numbers = [await copies(fleet, worker, tenant) for worker in fleet.workers]
    return [sum(len(orjson.dumps(copy)) for copy in of_worker) for of_worker in numbers]


async def ready(fleet: Fleet, tenant: str = "victim") -> bool:
    workloads = (await fleet.admin.list(WORKLOAD, namespace=tenant)).items
    return bool(workloads) and all(check_state(workload, CHECK) == "Ready" for workload in workloads)


async def none_left(fleet: Fleet) -> bool:
    return not any([await copies(fleet, worker, "attacker") for worker in fleet.workers])


async def remove(fleet: Fleet) -> None:
    """The attacker deletes all jobs."""
    for job in (await fleet.admin.list(JOB, namespace="attacker")).items:
        await fleet.admin.delete(JOB, ObjectKey.of(job), propagation="Background")


async def test_one_tenants_large_jobs_leave_room_for_the_other() -> None:
    """Both workers were unreadable in the same second, and the check was inactive for every queue."""
    fleet = await two_tenants()
    async with fleet.kueues(), fleet.dispatching(manager := fleet.build(worker_limits=LIMITS)):
        await flood(fleet)
        await anyio.sleep(60)
        for worker in fleet.workers:
            assert (await fleet.active(worker))["status"] == "True"
        assert (await fleet.check())[0] == "True"
        assert all(100_000 < size < LIMITS.list_bytes * 9 // 16 for size in await sizes(fleet, "attacker"))
        waiting = [message for message in await word(fleet, "attacker") if "workerLimits.listSize" in message]
        assert len(waiting) > FLOOD // 4
        for there in manager.workers:
            assert there.known is not None
            used = there.known.shares.used_up()
            assert used is not None
            assert (used.namespace, used.waiting) == ("attacker", len(waiting))
            assert used.bytes > 100_000
        began = anyio.current_time()
        await fleet.submit("small", namespace="victim")
        await until(lambda: ready(fleet))
        assert anyio.current_time() - began < 5


async def test_what_waits_follows_when_something_has_gone() -> None:
    fleet = await two_tenants()
    async with fleet.kueues(), fleet.dispatching(fleet.build(worker_limits=LIMITS)):
        await flood(fleet)
        await anyio.sleep(60)
        there = {copy["metadata"]["name"] for copy in await copies(fleet, "worker1", "attacker")}
        (first, *_) = sorted(there)
        workload = await fleet.admin.get(WORKLOAD, ObjectKey("attacker", first))
        await fleet.admin.delete(
            JOB, ObjectKey("attacker", workload["metadata"]["ownerReferences"][0]["name"]), propagation="Background"
        )
        await anyio.sleep(10)
        now = {copy["metadata"]["name"] for copy in await copies(fleet, "worker1", "attacker")}
        assert first not in now
        assert len(now) == len(there)


async def test_all_is_gone_within_a_minute_also_after_a_restart_in_the_full_state() -> None:
    fleet = await two_tenants()
    async with fleet.kueues():
        async with fleet.dispatching(fleet.build(worker_limits=LIMITS)):
            await flood(fleet)
            await anyio.sleep(60)
        async with fleet.dispatching(fleet.build(worker_limits=LIMITS)):
            await anyio.sleep(20)
            assert all(size < LIMITS.list_bytes * 9 // 16 for size in await sizes(fleet, "attacker"))
            await fleet.submit("small", namespace="victim")
            await until(lambda: ready(fleet))
            await remove(fleet)
            await anyio.sleep(60)
            assert await none_left(fleet)


async def test_a_namespace_has_a_share_of_the_objects_too() -> None:
    fleet = await two_tenants()
    limits = AnswerLimits(list_objects=20)
    async with fleet.kueues(), fleet.dispatching(fleet.build(worker_limits=limits)):
        for number in range(30):
            await fleet.submit(f"small-{number}", namespace="attacker", template={"containers": [CONTAINER]})
        await anyio.sleep(60)
        assert [len(await copies(fleet, worker, "attacker")) for worker in fleet.workers] == [15, 15]
        assert any("workerLimits.listObjects" in message for message in await word(fleet, "attacker"))
        await fleet.submit("small", namespace="victim")
        await until(lambda: ready(fleet))


async def overfull(fleet: Fleet) -> None:
    """More of the attacker's copies on each worker than may be read of it: a daemon with wider bounds made them."""
    await flood(fleet)
    async with fleet.dispatching(fleet.build()):
        await anyio.sleep(60)
    assert all(size > LIMITS.list_bytes for size in await sizes(fleet, "attacker"))


@pytest.mark.gate
@pytest.mark.parametrize("there", shared("04", {"0": "none runs", "4": "some run"}.__getitem__))
async def test_what_was_deleted_goes_from_workers_that_have_too_much_to_be_listed(there: str) -> None:
    """Nothing was removed there until it could be listed, which was never. A restart knows no names either."""
    fleet = await two_tenants(there)
    async with fleet.kueues():
        await overfull(fleet)
        async with fleet.dispatching(fleet.build(worker_limits=LIMITS)):
            await anyio.sleep(60)
            assert [(await fleet.active(worker))["reason"] for worker in fleet.workers] == ["AnswersUnreadable"] * 2
            await remove(fleet)
            await anyio.sleep(60)
            assert await none_left(fleet)
            assert not any([await copies(fleet, worker, "attacker", JOB) for worker in fleet.workers])
            await anyio.sleep(60)
            assert [(await fleet.active(worker))["status"] for worker in fleet.workers] == ["True"] * 2


async def test_so_it_does_where_all_was_deleted_while_nobody_watched() -> None:
    fleet = await two_tenants()
    async with fleet.kueues():
        await overfull(fleet)
        await remove(fleet)
        await anyio.sleep(10)
        async with fleet.dispatching(fleet.build(worker_limits=LIMITS)):
            await anyio.sleep(60)
            assert await none_left(fleet)


@pytest.mark.gate
async def test_what_grows_behind_its_offer_has_its_share_as_well() -> None:
    """Small jobs were offered, got annotations of a megabyte in all, and then quota: the Jobs there were unreadable."""
    fleet = await two_tenants()
    async with fleet.kueues(), fleet.dispatching(fleet.build(worker_limits=LIMITS)):
        for number in range(FLOOD):
            await fleet.submit(f"grows-{number}", namespace="attacker", template={"containers": [CONTAINER]})
        await anyio.sleep(30)
        assert [len(await copies(fleet, worker, "attacker")) for worker in fleet.workers] == [FLOOD, FLOOD]
        for number in range(FLOOD):
            bulk = {"metadata": {"annotations": {"bulk": "x" * 40_000}}}
            await fleet.admin.merge_patch(JOB, ObjectKey("attacker", f"grows-{number}"), bulk)
        roomy = {"spec": cluster_queue({"cpu": "1000"}, [], "attack")["spec"]}
        for server in fleet.workers.values():
            await DirectClient(server).merge_patch(CLUSTER_QUEUE, ObjectKey("", "attack"), roomy)
        await anyio.sleep(60)
        for worker in fleet.workers:
            jobs = await copies(fleet, worker, "attacker", JOB)
            assert 100_000 < sum(len(orjson.dumps(job)) for job in jobs) < LIMITS.list_bytes * 3 // 4
            assert (await fleet.active(worker))["status"] == "True"
        assert any("workerLimits.listSize" in message for message in await word(fleet, "attacker"))
        await fleet.submit("small", namespace="victim")
        await until(lambda: ready(fleet))


async def test_nothing_stays_of_refusals_once_their_workloads_are_gone() -> None:
    """Each was remembered for an hour: whoever made and deleted jobs that a worker refuses chose how many."""
    fleet = await Fleet.connected("worker1")
    refused = Match(verbs=("create",), resource=WORKLOAD.plural, user="multikueue")
    fleet.workers["worker1"].faults.add(Refuse(403), on=refused)
    async with fleet.kueues(), fleet.dispatching() as manager:
        for number in range(4):
            await fleet.submit(f"job-{number}")
        await anyio.sleep(30)
        (worker,) = manager.workers
        assert worker.known is not None
        assert len(worker.known.create_conflicts) == 4
        for job in (await fleet.admin.list(JOB)).items:
            await fleet.admin.delete(JOB, ObjectKey.of(job), propagation="Background")
        await anyio.sleep(30)
        assert len(worker.known.create_conflicts) == 0


async def test_nobody_on_a_worker_uses_up_the_share_of_another_namespace() -> None:
    """Workloads in any namespace there said that they were the victim's: none of its jobs was offered."""
    fleet = await two_tenants()
    async with fleet.kueues(), fleet.dispatching(fleet.build(worker_limits=LIMITS)):
        for server in fleet.workers.values():
            for number in range(12):
                claims = {ORIGIN_NAMESPACE_ANNOTATION: "victim", "bulk": "x" * 20_000}
                server.registry.create_object(
                    {
                        "apiVersion": WORKLOAD.gvk.api_version,
                        "kind": WORKLOAD.gvk.kind,
                        "metadata": {
                            "name": f"claim-{number}",
                            "namespace": "attacker",
                            "labels": {ORIGIN_LABEL: "multikueue"},
                            "annotations": claims,
                            "finalizers": ["example.com/stays"],
                        },
                        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]},
                    }
                )
        await anyio.sleep(5)
        await fleet.submit("small", namespace="victim")
        await until(lambda: ready(fleet))
