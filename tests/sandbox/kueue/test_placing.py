"""Where the scheduler puts the next slice of an elastic job, when writes meet those of others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs

from multikueue.core.model.eviction import PREEMPTED, evicted
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import cluster_name, has_quota, is_finished, is_replaced, nominated
from multikueue.sandbox.apiserver import DirectClient, Registry
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.kinds import BATCH_JOB
from multikueue.sandbox.kueue.assigning import Scheduler
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.kueue.deciding_workloads import admission
from multikueue.sandbox.kueue.performing import Performer, Recorder
from multikueue.sandbox.kueue.statuses import released
from multikueue.sandbox.kueue.stores import Stores
from tests.sandbox.kueue.objects import cluster_queue, flavor, job, local_queue

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def elastic(parallelism: int, generation: int) -> Json:
    """An elastic job after so many changes."""
    elastic_job = job(annotations={"kueue.x-k8s.io/elastic-job": "true"}, parallelism=parallelism, completions=9)
    elastic_job["metadata"].update(uid="u", generation=generation)
    return elastic_job


@attrs.define(eq=False)
class Growth:
    """An elastic job that has grown: its small slice has quota and a worker, the big one waits for both."""

    client: DirectClient
    scheduler: Scheduler
    small: ObjectKey
    big: ObjectKey

    async def get(self, key: ObjectKey) -> Json:
        """A slice as the server has it."""
        return await self.client.get(WORKLOAD, key)

    async def write(self, key: ObjectKey, **status: Any) -> None:
        """Change a slice's status; the scheduler has not seen that yet."""
        await self.client.merge_patch(WORKLOAD, key, {"status": status}, subresource="status")

    async def annotate(self, key: ObjectKey) -> None:
        """Change something else of a slice; the scheduler has not seen that yet."""
        await self.client.merge_patch(WORKLOAD, key, {"metadata": {"annotations": {"note": "somebody's"}}})

    async def see(self, *keys: ObjectKey) -> None:
        """Let the scheduler see slices as they are."""
        for key in keys:
            self.scheduler.stores.ledger.observe(await self.get(key))

    async def one_pass(self) -> None:
        """Let the scheduler go over the queue once."""
        await self.scheduler.reconcile("cq")


async def grown() -> Growth:
    """The big slice is already told where it will go."""
    client = DirectClient(Registry(clock=lambda: NOW))
    for crd in load_crds():
        client.registry.create_object(crd)
    stores = Stores([BATCH_JOB])
    for resource, obj in (
        (RESOURCE_FLAVOR, flavor()),
        (CLUSTER_QUEUE, cluster_queue(cpu="9")),
        (LOCAL_QUEUE, local_queue()),
    ):
        stores.objects[resource].observe(client.registry.create_object(obj))
    stores.objects[NAMESPACE].observe(await client.get(NAMESPACE, ObjectKey("", "default")))
    small = build_workload(BATCH_JOB, elastic(1, 1), 0)
    big = build_workload(BATCH_JOB, elastic(3, 2), 0, replaces=small)
    performer = Performer(client, Recorder(client, lambda: NOW), lambda _, obj: stores.ledger.observe(obj))
    made = Growth(client, Scheduler(stores, performer, lambda: NOW), ObjectKey.of(small), ObjectKey.of(big))
    await client.create(WORKLOAD, small)
    await made.write(made.small, nominatedClusterNames=["worker1"])
    await made.see(made.small)
    await made.one_pass()
    await made.write(made.small, nominatedClusterNames=None, clusterName="worker1")
    await client.create(WORKLOAD, big)
    await made.see(made.small, made.big)
    await made.one_pass()
    assert nominated(await made.get(made.big)) == ("worker1",)
    return made


async def test_a_slice_gets_quota_where_its_job_runs_and_the_one_before_is_over() -> None:
    growth = await grown()
    await growth.one_pass()
    small, big = await growth.get(growth.small), await growth.get(growth.big)
    assert is_replaced(small)
    assert (has_quota(big), cluster_name(big)) == (True, "worker1")


async def test_a_slice_whose_write_meets_anothers_still_goes_where_its_job_runs() -> None:
    """The slice before it was finished all the same: nobody may dispatch the new one as if it ran nowhere."""
    growth = await grown()
    await growth.annotate(growth.big)
    await growth.one_pass()
    assert is_replaced(await growth.get(growth.small))
    assert not has_quota(await growth.get(growth.big))

    await growth.see(growth.small, growth.big)
    before = await growth.get(growth.small)
    await growth.one_pass()
    big = await growth.get(growth.big)
    assert (has_quota(big), cluster_name(big)) == (True, "worker1")
    assert await growth.get(growth.small) == before, "it is finished once"


async def test_a_slice_gets_no_quota_before_the_one_before_it_is_over() -> None:
    """That one would be left with quota of its own for ever."""
    growth = await grown()
    await growth.annotate(growth.small)
    await growth.one_pass()
    assert not is_finished(await growth.get(growth.small))
    assert not has_quota(await growth.get(growth.big))

    await growth.see(growth.small, growth.big)
    await growth.one_pass()
    assert is_replaced(await growth.get(growth.small))
    assert cluster_name(await growth.get(growth.big)) == "worker1"


async def test_a_slice_that_was_evicted_may_go_elsewhere() -> None:
    """Its worker may be lost: where the slice before it ran counts once."""
    growth = await grown()
    await growth.one_pass()
    stopped = released(evicted(await growth.get(growth.big), PREEMPTED, "make room", NOW), NOW)
    await growth.scheduler.performer.perform(admission(stopped))
    await growth.one_pass()
    big = await growth.get(growth.big)
    assert has_quota(big)
    assert cluster_name(big) is None
