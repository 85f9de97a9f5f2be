"""What becomes of the pods of a group, with virtual time: Kueue's finalizer keeps them, and lets them go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, EVENT, POD, WORKLOAD
from multikueue.core.model.labels import (
    GROUP_WORKLOAD_ANNOTATION,
    MANAGED_LABEL,
    ORIGIN_LABEL,
    POD_GROUP_NAME,
    PREBUILT_WORKLOAD,
    RETRIABLE_ANNOTATION,
    WORKLOAD_FINALIZER,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import has_quota, is_evicted, is_finished
from multikueue.protocols import ApiClient, Propagation
from multikueue.sandbox.kinds.pods import POD_GROUP
from multikueue.sandbox.kueue.building import unit_workload
from multikueue.sandbox.kueue.units import Unit
from multikueue.testing import InMemoryCluster, until
from tests.sandbox.kueue.objects import cluster_queue, condition, flavor, local_queue

pytestmark = pytest.mark.looptime

GROUP = ObjectKey("default", "g")
CONTAINER: Json = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}
TEMPLATE: Json = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 40, "containers": [CONTAINER]}}


@attrs.frozen
class Ground:
    """A cluster with a group of two pods, and a while to wait for what it becomes."""

    cluster: InMemoryCluster
    client: ApiClient

    async def phases(self) -> list[str]:
        """Of the pods that are there."""
        return [pod["status"]["phase"] for pod in (await self.client.list(POD)).items]

    async def workload(self) -> Json:
        """Of the group."""
        return await self.client.get(WORKLOAD, GROUP)

    async def used(self) -> int:
        """How many Workloads hold quota."""
        (queue,) = (await self.client.list(CLUSTER_QUEUE)).items
        return int(queue["status"]["reservingWorkloads"])

    async def delete_pods(self, propagation: Propagation = "Background") -> None:
        """All of them."""
        for pod in (await self.client.list(POD)).items:
            await self.client.delete(POD, ObjectKey.of(pod), propagation=propagation)
        await anyio.sleep(1)

    async def deactivate(self) -> None:
        """Stop the group."""
        await self.client.merge_patch(WORKLOAD, GROUP, {"spec": {"active": False}})
        await anyio.sleep(1)

    async def delete_workload(self) -> None:
        """End the group."""
        await self.client.delete(WORKLOAD, GROUP)
        await anyio.sleep(1)


@asynccontextmanager
async def ground(*finalizers: str, copied: bool = True, cpu: str = "1", **noted: str) -> AsyncIterator[Ground]:
    """Such a group, which runs if there is room; its pods end 25 s after SIGTERM.

    Args:
        finalizers: of the Workload, if a dispatcher made it.
        copied: whether a dispatcher made the pods and the Workload.
        cpu: the quota.
        noted: annotations of the pods for the job runner.
    """
    cluster = InMemoryCluster(kinds=(POD_GROUP,))
    annotations = {
        f"sandbox.multikueue.dev/{name}": word for name, word in {"duration": "1h", "trap": "25s", **noted}.items()
    }
    pods = POD_GROUP.examples("g", TEMPLATE, queue="lq")
    for pod in pods:
        del pod["metadata"]["annotations"][RETRIABLE_ANNOTATION]
        pod["metadata"]["annotations"] |= annotations
    workload = unit_workload(Unit(GROUP, tuple({**pod, "metadata": {**pod["metadata"], "uid": "u"}} for pod in pods)))
    workload["metadata"] |= {"ownerReferences": [], "finalizers": list(finalizers)}
    for pod in pods if copied else ():
        del pod["metadata"]["finalizers"]  # the worker's own Kueue puts it on
        pod["metadata"]["labels"] |= {PREBUILT_WORKLOAD: "g", ORIGIN_LABEL: "multikueue"}
    for obj in (flavor(), cluster_queue(cpu=cpu), local_queue(), *([workload] if copied else ()), *pods):
        cluster.registry.create_object(obj)
    async with cluster.kueue():
        await anyio.sleep(1)
        yield Ground(cluster, cluster.client())


async def test_kueue_keeps_the_pods_of_a_group_and_no_workload_that_somebody_else_made() -> None:
    async with ground() as group:
        assert await group.phases() == ["Running", "Running"]
        for pod in (await group.client.list(POD)).items:
            assert pod["metadata"]["finalizers"] == [MANAGED_LABEL]
        assert "finalizers" not in (await group.workload())["metadata"]


@pytest.mark.parametrize("first", ["deactivated", "pods deleted", "nothing"])
async def test_a_deleted_workload_with_kueues_finalizer_lets_its_pods_go(first: str) -> None:
    async with ground(WORKLOAD_FINALIZER) as group:
        if first == "deactivated":
            await group.deactivate()
        elif first == "pods deleted":
            await group.delete_pods()
        await group.delete_workload()
        assert not (await group.client.list(WORKLOAD)).items
        assert await group.phases() == ["Running", "Running"], "they have a grace period"
        await anyio.sleep(25)
        assert await group.phases() == []


@pytest.mark.parametrize("first", ["deactivated", "pods deleted"])
async def test_one_without_it_strands_them_until_it_is_made_again_with_it_and_deleted(first: str) -> None:
    """Nobody is left who would take their finalizer off. One that belongs to no pod goes at once."""
    async with ground() as group:
        await (group.deactivate() if first == "deactivated" else group.delete_pods())
        await anyio.sleep(25)
        made = await group.workload()
        await group.delete_workload()
        await anyio.sleep(1000)
        assert await group.phases() == ["Failed", "Failed"]
        kept = {name: made["metadata"][name] for name in ("name", "namespace", "annotations", "ownerReferences")}
        await group.client.create(WORKLOAD, {**made, "metadata": {**kept, "finalizers": [WORKLOAD_FINALIZER]}})
        await group.delete_workload()
        assert await group.phases() == []
        assert not (await group.client.list(WORKLOAD)).items


async def test_pods_deleted_in_the_foreground_take_their_workload_along() -> None:
    """It belongs to them: the garbage collector deletes it, and whether they are let go depends on its finalizer."""
    for finalizers, left in (((WORKLOAD_FINALIZER,), []), ((), ["Failed", "Failed"])):
        async with ground(*finalizers) as group:
            await group.delete_pods("Foreground")
            assert not (await group.client.list(WORKLOAD)).items
            await anyio.sleep(1000)
            assert await group.phases() == left


@pytest.mark.parametrize(("noted", "told_after"), [(True, 1), (False, 15)])
async def test_only_the_annotation_of_groups_has_kueue_see_an_eviction_at_once(noted: bool, told_after: int) -> None:
    """Without it the quota is gone at once, and the pods get their SIGTERM when one of them happens to change."""
    async with ground(WORKLOAD_FINALIZER) as group:
        if not noted:
            patch = {"metadata": {"annotations": {GROUP_WORKLOAD_ANNOTATION: None}}}
            await group.client.merge_patch(WORKLOAD, GROUP, patch)
        began = anyio.current_time()
        await group.deactivate()
        assert await group.used() == 0

        async def is_told() -> bool:
            return all(is_terminating(pod) for pod in (await group.client.list(POD)).items)

        await until(is_told)
        assert told_after <= anyio.current_time() - began <= told_after + 1


async def test_pods_that_end_well_on_sigterm_finish_an_evicted_workload() -> None:
    """`Finished` is not the run's end where `Evicted=True` stands beside it."""
    async with ground(WORKLOAD_FINALIZER, outcome="complete") as group:
        await group.deactivate()
        finished = await group.cluster.when(WORKLOAD, is_finished)
        assert condition(finished, "Finished") == ("True", "Succeeded", "Pods succeeded: 2/2.")
        assert is_evicted(finished)
        await anyio.sleep(1)
        assert await group.phases() == [], "it has finished, so they are let go"


async def test_quota_is_free_before_the_status_says_so() -> None:
    """A deactivated group gives it back at once; what it shows goes by its pods, those on their way out included."""
    async with ground(WORKLOAD_FINALIZER) as group:
        assert await group.used() == 1
        await group.deactivate()
        assert (await group.used(), has_quota(await group.workload())) == (0, True)


async def test_a_group_that_is_deleted_while_it_waits_stays_and_takes_the_quota() -> None:
    """Kueue waits for other pods in their place. Once its Workload is deleted all of it goes."""
    async with ground(copied=False, cpu="100m") as group:
        await group.delete_pods()
        (queue,) = (await group.client.list(CLUSTER_QUEUE)).items
        await group.client.merge_patch(CLUSTER_QUEUE, ObjectKey.of(queue), {"spec": cluster_queue()["spec"]})
        await anyio.sleep(1000)
        assert (await group.phases(), await group.used()) == (["Pending", "Pending"], 1)
        await group.delete_workload()
        assert (await group.phases(), (await group.client.list(WORKLOAD)).items) == ([], [])


async def test_pods_that_a_group_does_not_count_are_deleted() -> None:
    """The newest of those that wait go first, then the newest."""
    async with ground(copied=False, cpu="1") as group:
        (surplus, _) = POD_GROUP.examples("a", TEMPLATE, queue="lq")
        surplus["metadata"]["labels"][POD_GROUP_NAME] = "g"
        group.cluster.registry.create_object(surplus)
        await anyio.sleep(5)
        assert [pod["metadata"]["name"] for pod in (await group.client.list(POD)).items] == ["g-0", "g-1"]
        assert await group.phases() == ["Running", "Running"]


async def test_a_group_that_has_too_many_from_the_start_gets_quota_for_what_it_counts() -> None:
    cluster = InMemoryCluster(kinds=(POD_GROUP,))
    (first, second) = POD_GROUP.examples("g", TEMPLATE, queue="lq")
    third = {**second, "metadata": {**second["metadata"], "name": "g-2"}}
    for obj in (flavor(), cluster_queue(cpu="1"), local_queue(), first, second, third):
        cluster.registry.create_object(obj)
    async with cluster.kueue():
        workload = await cluster.when(WORKLOAD, has_quota)
        assert [pod_set["count"] for pod_set in workload["spec"]["podSets"]] == [2]
        events = [event["reason"] for event in (await cluster.client().list(EVENT)).items]
        assert events.count("ExcessPodDeleted") == 1
