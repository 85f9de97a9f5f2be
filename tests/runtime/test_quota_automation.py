"""The quota of the manager follows the workers', if a config asks for it and the operator allows it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from multikueue.core.config.quota import CONDITION
from multikueue.core.model.conditions import condition, conditions
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    SECRET,
)
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, QUEUES_ANNOTATION
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.errors import KubeconfigError
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager
from multikueue.runtime.reconcilers.quota import QuotaReconciler
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.setting_up import (
    CLUSTER_QUEUE_NAME,
    LOCAL_QUEUE_NAME,
    cluster,
    cluster_queue,
    kubeconfig_secret,
    local_queue,
    namespace,
)
from tests.runtime.fleet import CHECK, Fleet, is_active, kubeconfig

pytestmark = pytest.mark.looptime

QUEUE = ObjectKey("", CLUSTER_QUEUE_NAME)
AUTOMATED = {"spec": {"quotaManagement": "Automated"}}


async def a_fleet(*workers: str, automated: bool = True) -> Fleet:
    """Workers with 4 CPUs each; the manager begins with 1."""
    fleet = await Fleet.connected(*workers)
    await set_quota(fleet, "manager", "1")
    if automated:
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), AUTOMATED)
    return fleet


async def set_quota(fleet: Fleet, where: str, cpu: str) -> None:
    client = fleet.admin if where == "manager" else DirectClient(fleet.workers[where])
    spec = cluster_queue({"cpu": cpu})["spec"]
    await client.merge_patch(CLUSTER_QUEUE, QUEUE, {"spec": {"resourceGroups": spec["resourceGroups"]}})


def automatic(fleet: Fleet, **settings: Any) -> Manager:
    return fleet.build(quota_automation=True, **settings)


async def cpus(fleet: Fleet, after: float = 5.0) -> str:
    """The manager's quota, once changes had time to get there."""
    await anyio.sleep(after)
    (group,) = (await fleet.quota())["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


async def automated(fleet: Fleet) -> Json:
    return condition(await fleet.quota(), CONDITION) or {}


async def test_the_quota_is_the_sum_of_the_workers_and_follows_them() -> None:
    fleet = await a_fleet("worker1", "worker2")
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "8"
        assert ((await automated(fleet))["status"], (await automated(fleet))["reason"]) == ("True", "QuotaAutomated")
        await set_quota(fleet, "worker2", "2500m")
        assert await cpus(fleet) == "6500m"
        await DirectClient(fleet.workers["worker1"]).delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))
        assert await cpus(fleet) == "2500m"
        await set_quota(fleet, "manager", "100")
        assert await cpus(fleet) == "2500m"


async def test_it_is_off_unless_the_operator_turns_it_on() -> None:
    """No queue is watched anywhere, and none is written."""
    fleet = await a_fleet("worker1")
    async with fleet.running():
        assert await cpus(fleet) == "1"
        assert await automated(fleet) == {}
        assert fleet.requests("worker1", "list", CLUSTER_QUEUE) == 0
        assert fleet.manager.access.requests["multikueue", "list", str(CLUSTER_QUEUE)] == 0


async def test_workers_are_not_asked_for_queues_until_a_config_wants_it() -> None:
    fleet = await a_fleet("worker1", automated=False)
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "1"
        assert (await automated(fleet))["reason"] == "NotRequested"
        assert fleet.requests("worker1", "list", CLUSTER_QUEUE) == 0
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), AUTOMATED)
        assert await cpus(fleet) == "4"


async def test_a_worker_that_is_lost_keeps_its_quota() -> None:
    """Kueue takes it away at once, and evicts what runs on it."""
    fleet = await a_fleet("worker1", "worker2")
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "8"
        fleet.workers["worker1"].faults.partition("reset")
        await set_quota(fleet, "worker2", "5")
        assert await cpus(fleet, 3_600) == "9"
        assert await is_active(fleet, status="False")()


async def test_a_restart_takes_nothing_away_until_the_worker_is_given_up() -> None:
    """What a worker had is not known to a new process; after the grace it counts as nothing."""
    fleet = await a_fleet("worker1", "worker2")
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "8"
    fleet.workers["worker1"].faults.partition("reset")
    async with fleet.running(automatic(fleet, lost_timeout=600)):
        assert await cpus(fleet) == "8"
        await set_quota(fleet, "worker2", "6")
        assert await cpus(fleet, 500) == "8"
        assert await cpus(fleet, 200) == "6"
        fleet.workers["worker1"].faults.heal()
        assert await cpus(fleet, 120) == "10"


async def test_a_worker_that_never_shows_its_queues_counts_for_nothing_after_the_grace() -> None:
    """It forgot the permission. What the others lose must not be promised for ever because of it."""
    fleet = await a_fleet("worker1", "worker2")
    fleet.workers["worker2"].faults.add(Refuse(403), on=Match(resource="clusterqueues"))
    async with fleet.running(automatic(fleet, lost_timeout=600)):
        await set_quota(fleet, "manager", "4")
        await set_quota(fleet, "worker1", "2")
        assert await cpus(fleet, 500) == "4"
        assert await cpus(fleet, 200) == "2"


async def test_what_others_lose_counts_while_one_hides_what_it_showed_before() -> None:
    fleet = await a_fleet("worker1", "worker2")
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "8"
        fleet.workers["worker1"].faults.add(Refuse(403), on=Match(resource="clusterqueues", user="multikueue:new"))
        await fleet.rotate("worker1", "new")
        await set_quota(fleet, "worker2", "1")
        assert await cpus(fleet, 3_600) == "5"
        assert "not usable for: ClusterQueue.v1beta2.kueue.x-k8s.io (" in (await fleet.active())["message"]


async def test_what_another_server_showed_says_nothing_about_this_one() -> None:
    """The kubeconfig names another server, and no client of it can be made."""
    fleet = await a_fleet("worker1", "worker2")

    def refuses(name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        if "elsewhere" in config.server:
            raise KubeconfigError("ClientConnectionFailed", "the certificate is none")
        return fleet.client(name, config)

    async with fleet.running(automatic(fleet, lost_timeout=600, connect=refuses)):
        assert await cpus(fleet) == "8"
        await fleet.write_secret("worker1", kubeconfig("worker1", server="https://elsewhere:6443"))
        await set_quota(fleet, "worker2", "3")
        assert await cpus(fleet, 500) == "8"
        assert await cpus(fleet, 200) == "3"


async def test_a_worker_whose_object_is_deleted_counts_until_the_grace_is_over() -> None:
    """It is in the config still, so it is expected back."""
    fleet = await a_fleet("worker1", "worker2")
    async with fleet.running(automatic(fleet, lost_timeout=600)):
        assert await cpus(fleet) == "8"
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        assert await cpus(fleet, 500) == "8"
        assert await cpus(fleet, 200) == "4"


async def test_nothing_is_remembered_of_the_queues_of_workers_that_are_gone() -> None:
    """Names that never come back were kept, with their queues, for as long as the process ran."""
    fleet = await a_fleet("worker1", "worker2")
    manager = automatic(fleet, lost_timeout=600)
    (reconciler,) = [
        controller.reconciler
        for controller in manager._controllers
        if isinstance(controller.reconciler, QuotaReconciler)
    ]
    async with fleet.running(manager):
        assert await cpus(fleet) == "8"
        assert set(reconciler._seen) == {"worker1", "worker2"}
        key = ObjectKey("", CHECK)
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, key, {"spec": {"clusters": ["worker2"]}})
        assert await cpus(fleet) == "4"
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        assert await cpus(fleet, 700) == "4"
        manager._from_workers.work.quotas.enqueue(ObjectKey("", "cluster-queue"))
        assert await cpus(fleet) == "4"
        assert set(reconciler._seen) == {"worker2"}


async def test_without_our_check_the_condition_goes_and_the_quota_stays() -> None:
    fleet = await a_fleet("worker1")
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "4"
        await fleet.admin.delete(ADMISSION_CHECK, ObjectKey("", CHECK))
        assert await cpus(fleet) == "4"
        assert await automated(fleet) == {}


async def test_conditions_of_kueue_stay_and_nothing_is_written_twice() -> None:
    fleet = await a_fleet("worker1")
    async with fleet.kueues(), fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "4"
        quota = await fleet.quota()
        assert {entry["type"] for entry in conditions(quota)} == {"Active", CONDITION}
        await anyio.sleep(600)
        assert await fleet.quota() == quota


async def test_queues_that_are_called_otherwise_on_a_worker_count_by_that_name() -> None:
    """And a change of the names is a change of the sum."""
    fleet = await a_fleet("worker1")
    worker = DirectClient(fleet.workers["worker1"])
    await worker.delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))
    await worker.create(NAMESPACE, namespace("mk-default"))
    await worker.create(LOCAL_QUEUE, local_queue("mk-default", "theirs"))
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "0"
        said = {
            NAMESPACES_ANNOTATION: '{"default": "mk-default"}',
            QUEUES_ANNOTATION: f'{{"{LOCAL_QUEUE_NAME}": "theirs"}}',
        }
        patch = {"metadata": {"annotations": said}}
        await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), patch)
        assert await cpus(fleet) == "4"


async def test_a_cluster_with_two_names_counts_once() -> None:
    fleet = await a_fleet("worker1")
    tokens = fleet.workers["worker1"].tokens
    assert tokens is not None
    tokens["again-token"] = "multikueue:again"
    async with fleet.running(automatic(fleet)):
        assert await cpus(fleet) == "4"
        await fleet.admin.create(SECRET, kubeconfig_secret("again", kubeconfig("worker1", "again-token")))
        await fleet.admin.create(MULTIKUEUE_CLUSTER, cluster("again"))
        listed = {"spec": {"clusters": ["again", "worker1"]}}
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), listed)
        assert await cpus(fleet, 60) == "4"
