"""The manager as one of its own workers: told by its UID, refused without names of its own, and then like any other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored.profile import Hold, Profile, Weights
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    WORKLOAD,
)
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of
from multikueue.core.model.workloads import check, checks, cluster_name, has_quota, is_finished, nominated
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.runtime.workers.cluster_identity import DEADLINE
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Delay, Match, Refuse
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    LOCAL_QUEUE_NAME,
    admission_check,
    cluster_queue,
    connect_workers,
    local_queue,
    namespace,
    set_up_queues,
)
from multikueued.exits import CommandError
from multikueued.queues.mirror import Twin, planned
from tests.core.building import condition
from tests.examples import shared
from tests.runtime.fleet import Fleet, is_active, kubeconfig, until
from tests.runtime.test_scored import quota

pytestmark = pytest.mark.looptime

APART = {"default": "local-default"}
POOL = "local-pool"


@asynccontextmanager
async def fleet_of(mapping: object, *remote: str, pool: Json | None = None) -> AsyncIterator[Fleet]:
    """A manager that is the worker `local`, too, and others.

    Args:
        mapping: what the MultiKueueCluster says of namespaces; None: nothing.
        remote: the other workers.
        pool: the ClusterQueue for copies on the manager.
    """
    fleet = Fleet.of(*remote)
    assert fleet.manager.tokens is not None
    fleet.manager.tokens["local-token"] = "multikueue:local"
    for worker in fleet.workers.values():
        await set_up_queues(DirectClient(worker), {"cpu": "4"})
    fleet.workers["local"] = fleet.manager
    await set_up_queues(fleet.admin, {"cpu": "4"}, [CHECK])
    await fleet.admin.create(NAMESPACE, namespace("local-default"))
    await fleet.admin.create(CLUSTER_QUEUE, pool or cluster_queue({"cpu": "1"}, name=POOL))
    await fleet.admin.create(LOCAL_QUEUE, local_queue("local-default", LOCAL_QUEUE_NAME, POOL))
    await connect_workers(fleet.admin, {name: kubeconfig(name) for name in fleet.workers})
    await say(fleet, mapping)
    async with fleet.kueues(RunnerOptions(minimum=40.0, maximum=40.0)):
        yield fleet


async def say(fleet: Fleet, mapping: object) -> None:
    patch = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: None if mapping is None else json.dumps(mapping)}}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "local"), patch)


async def local_copies(fleet: Fleet) -> list[Json]:
    listed = [obj for kind in (WORKLOAD, JOB) for obj in (await fleet.admin.list(kind)).items]
    return [obj for obj in listed if ORIGIN_LABEL in labels_of(obj)]


async def original(fleet: Fleet, name: str = "job") -> Json:
    workloads = (await fleet.admin.list(WORKLOAD, namespace="default")).items
    return next((workload for workload in workloads if workload["metadata"]["ownerReferences"][0]["name"] == name), {})


async def test_without_names_of_its_own_it_is_refused_and_nothing_is_offered() -> None:
    async with fleet_of(None) as fleet, fleet.running():
        await until(is_active(fleet, "local", "False"))
        active = await fleet.active("local")
        assert (active["reason"], NAMESPACES_ANNOTATION in active["message"]) == ("UnusableNames", True)
        await fleet.submit()
        await anyio.sleep(60)
        assert not await local_copies(fleet)
        await say(fleet, APART)
        await until(is_active(fleet, "local"))
        await until(lambda: _ended(fleet))


async def _ended(fleet: Fleet, name: str = "job") -> bool:
    return is_finished(await original(fleet, name))


async def test_a_job_runs_on_the_manager_and_its_copy_is_nobodys_job() -> None:
    async with fleet_of(APART) as fleet, fleet.running() as manager:
        await fleet.submit()
        await until(lambda: _runs(fleet))
        copies = await local_copies(fleet)
        assert {copy["metadata"]["namespace"] for copy in copies} == {"local-default"}
        assert fleet.requests("local", "get", NAMESPACE) == 2  # one for each side
        assert {name for name, _, _ in manager.cluster.counts()} == {"local"}
        await until(lambda: _ended(fleet))
        await until(lambda: _is_clean(fleet))
        assert fleet.requests("local", "create", JOB) == 1


async def test_what_runs_there_is_followed_to_its_end_though_the_names_are_gone() -> None:
    async with fleet_of(APART) as fleet, fleet.running():
        await fleet.submit()
        await until(lambda: _runs(fleet))
        await say(fleet, None)
        await until(is_active(fleet, "local", "False"))
        await until(lambda: _ended(fleet))
        await until(lambda: _is_clean(fleet))
        assert fleet.requests("local", "create", JOB) == 1


async def _runs(fleet: Fleet, name: str = "job", worker: str = "local") -> bool:
    workload = await original(fleet, name)
    return cluster_name(workload) == worker and (check(workload, CHECK) or {}).get("state") == "Ready"


async def _is_clean(fleet: Fleet) -> bool:
    return not await local_copies(fleet)


LOCAL_FIRST = Profile(preference="place=local:100", weights=Weights(preference=500))


@asynccontextmanager
async def local_first(**kinds: Json) -> AsyncIterator[Fleet]:
    """A manager with room for two jobs, and one worker; the scored dispatcher prefers the manager."""
    async with fleet_of(APART, "remote", **kinds) as fleet:
        labels = {"metadata": {"labels": {"place": "local"}}}
        await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "local"), labels)
        manager = attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher({"default": LOCAL_FIRST}))
        async with fleet.running(manager):
            await anyio.sleep(5)
            yield fleet


async def placed(fleet: Fleet) -> dict[str, str]:
    workloads = (await fleet.admin.list(WORKLOAD, namespace="default")).items
    return {workload["metadata"]["ownerReferences"][0]["name"]: cluster_name(workload) or "-" for workload in workloads}


async def test_local_first_overflow_to_a_worker_and_local_again() -> None:
    async with local_first() as fleet:
        for number in range(4):
            await fleet.submit(f"j{number}")
            await anyio.sleep(10)  # until what the one before got is counted once
        assert await placed(fleet) == {"j0": "local", "j1": "local", "j2": "remote", "j3": "remote"}
        await until(lambda: _all_ended(fleet))
        await fleet.submit("later")
        await until(lambda: _runs(fleet, "later", "local"))


async def _all_ended(fleet: Fleet) -> bool:
    return all(map(is_finished, (await fleet.admin.list(WORKLOAD, namespace="default")).items))


@pytest.mark.parametrize("flaw", ["check", "cohort"])
async def test_a_queue_in_which_copies_would_fight_their_originals_is_offered_nothing(flaw: str) -> None:
    pool = cluster_queue({"cpu": "1"}, [CHECK] if flaw == "check" else [], name=POOL)
    pool["spec"]["cohortName"] = "together"
    async with local_first(pool=pool) as fleet:
        cohort = {"spec": {"cohortName": "together"}}
        await fleet.admin.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), cohort)
        await anyio.sleep(5)
        await fleet.submit()
        await until(lambda: _runs(fleet, "job", "remote"))
        assert not await local_copies(fleet)


@pytest.mark.parametrize("hold", shared([Hold.AUTO, Hold.NEVER]))
@pytest.mark.parametrize("becomes_known", [True, False])
async def test_while_nobody_knows_that_it_is_the_manager_a_queue_with_our_check_is_offered_nothing(
    becomes_known: bool, hold: Hold
) -> None:
    async with fleet_of(APART, "remote", pool=cluster_queue({"cpu": "1"}, [CHECK], name=POOL)) as fleet:
        await quota(fleet, "remote", "500m")
        fault = fleet.manager.faults.add(Delay(3600), on=Match(("get",), "namespaces"))
        manager = attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher({"default": Profile(hold=hold)}))
        async with fleet.running(manager):
            await until(is_active(fleet, "local"))
            for number in range(3):
                await fleet.submit(f"j{number}")
            await until(lambda: _runs(fleet, "j0", "remote"))
            await anyio.sleep(10)
            assert not await local_copies(fleet)
            fleet.manager.faults.remove(fault)
            if becomes_known:
                await until(lambda: _all_ended(fleet), within=180)
                assert not fleet.requests("local", "create", JOB)
            else:  # whether it is another cluster must not be known for it to be offered jobs
                forbidden = fleet.manager.faults.add(Refuse(403), on=Match(("get",), "namespaces"))
                await until(lambda: _is_offered_locally(fleet, "j2"), within=90)
                await until(lambda: _has_quota_locally(fleet))
                fleet.manager.faults.remove(forbidden)
                await fleet.rotate("local", "another-token")
                await until(lambda: _is_clean(fleet))


async def test_a_copy_whose_queue_leads_to_workers_is_taken_back_though_it_has_quota() -> None:
    """Somebody has put our check on the queue, beside one that the copy waits for."""
    pool = cluster_queue({"cpu": "1"}, ["theirs"], name=POOL)
    async with local_first(pool=pool) as fleet:
        await fleet.admin.create(ADMISSION_CHECK, admission_check("example.com/other", "theirs"))
        status = {"status": {"conditions": [condition("Active")]}}
        await fleet.admin.merge_patch(ADMISSION_CHECK, ObjectKey("", "theirs"), status, subresource="status")
        await quota(fleet, "remote", "0")
        await fleet.submit()
        await until(lambda: _has_quota_locally(fleet))
        both = cluster_queue({"cpu": "1"}, ["theirs", CHECK], name=POOL)
        await fleet.admin.merge_patch(CLUSTER_QUEUE, ObjectKey("", POOL), {"spec": both["spec"]})
        await until(lambda: _is_clean(fleet))
        await quota(fleet, "remote", "4")
        await until(lambda: _runs(fleet, "job", "remote"))


async def _has_quota_locally(fleet: Fleet) -> bool:
    return any(map(has_quota, await local_copies(fleet)))


async def _is_offered_locally(fleet: Fleet, name: str) -> bool:
    return "local" in nominated(await original(fleet, name))


async def test_copies_are_not_dispatched_once_more_though_their_queue_leads_to_workers() -> None:
    """Somebody has put our check on it, and the dispatcher reads no queues."""
    async with fleet_of({"*": "local-*"}, "remote", pool=cluster_queue({"cpu": "9"}, [CHECK], name=POOL)) as fleet:
        await DirectClient(fleet.workers["remote"]).create(NAMESPACE, namespace("local-default"))
        await DirectClient(fleet.workers["remote"]).create(LOCAL_QUEUE, local_queue("local-default"))
        await quota(fleet, "remote", "0")
        async with fleet.running():
            await fleet.submit()
            await anyio.sleep(60)
            (copy,) = await local_copies(fleet)
            assert [check["name"] for check in checks(copy)] == [CHECK]
            assert (nominated(copy), cluster_name(copy)) == ((), None)
            assert await there(fleet, "remote") == ["default"]
            await quota(fleet, "remote", "9")
            await until(lambda: _runs(fleet, "job", "remote"))


async def there(fleet: Fleet, worker: str) -> list[str]:
    """The namespaces of the Workloads on a worker."""
    return [
        workload["metadata"]["namespace"]
        for workload in (await DirectClient(fleet.workers[worker]).list(WORKLOAD)).items
    ]


async def test_where_it_cannot_be_told_nothing_is_refused_and_nothing_runs_twice() -> None:
    """Who may not get `kube-system` sees any other worker: there the name of each copy is taken."""
    async with fleet_of(None, "remote") as fleet:
        fleet.manager.faults.add(Refuse(403), on=Match(("get",), "namespaces"))
        async with fleet.running():
            await until(is_active(fleet, "local"))
            await fleet.submit()
            await until(lambda: _runs(fleet, "job", "remote"))
            assert not await local_copies(fleet)


async def test_a_cluster_that_does_not_say_who_it_is_is_connected_all_the_same() -> None:
    async with fleet_of(APART, "remote") as fleet:
        fleet.workers["remote"].faults.add(Delay(3600), on=Match(("get",), "namespaces"))
        async with fleet.running():
            await anyio.sleep(DEADLINE / 2)
            assert not (await fleet.active("remote")).get("status")
            await until(is_active(fleet, "remote"))
            await until(is_active(fleet, "local"))


@pytest.mark.parametrize(("leads_to", "sum_of_all"), [(POOL, "5"), (CLUSTER_QUEUE_NAME, "4")])
async def test_a_sum_of_quotas_has_the_pool_in_it_and_never_itself(leads_to: str, sum_of_all: str) -> None:
    """A LocalQueue for copies that leads to the very queue would have its quota grow without end."""
    async with fleet_of(APART, "remote") as fleet:
        key = ObjectKey("local-default", LOCAL_QUEUE_NAME)
        await fleet.admin.delete(LOCAL_QUEUE, key)
        await fleet.admin.create(LOCAL_QUEUE, local_queue(key.namespace, key.name, leads_to))
        automated = {"spec": {"quotaManagement": "Automated"}}
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), automated)
        async with fleet.running(fleet.build(quota_automation=True)):
            await anyio.sleep(60)
            (group,) = (await fleet.quota())["spec"]["resourceGroups"]
            assert group["flavors"][0]["resources"][0]["nominalQuota"] == sum_of_all


@pytest.mark.parametrize(("queue", "refused"), [("", f'"{CLUSTER_QUEUE_NAME}" cannot hold copies'), (POOL, "")])
async def test_a_mirrored_queue_leads_to_one_that_can_hold_copies(queue: str, refused: str) -> None:
    async with fleet_of(APART) as fleet, fleet.running():
        await until(is_active(fleet, "local"))
        await fleet.admin.create(LOCAL_QUEUE, local_queue(name="other"))
        twin = Twin(ObjectKey("default", "other"), queue, "local")
        if refused:
            with pytest.raises(CommandError, match=refused):
                await planned(fleet.admin, fleet.admin, twin)
            return
        (made,) = await planned(fleet.admin, fleet.admin, twin)
        assert (ObjectKey.of(made), made["spec"]) == (ObjectKey("local-default", "other"), {"clusterQueue": POOL})
