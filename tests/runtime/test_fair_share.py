"""docs/fair-share.md: tenants share all workers by the manager's quotas; workers have one large queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs
import pytest
import yaml

from multikueue.core.dispatchers.scored.job_annotations import FLAVORS
from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    RESOURCE_FLAVOR,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import cluster_name, has_quota
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import (
    connect_workers,
    local_queue,
    namespace,
    resource_flavor,
)
from tests.runtime.fleet import LONG, Fleet, kubeconfig, until

pytestmark = pytest.mark.looptime

TENANTS = ("early", "late")
HALF = 8
"""Jobs of half a CPU that each tenant is entitled to, and that each worker has room for."""


PAGE = (Path(__file__).parents[2] / "docs" / "fair-share.md").read_text()
KINDS = {resource.gvk.kind: resource for resource in (CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR)}


def shown(section: str) -> list[Json]:
    """The objects that a section of the page shows."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [
        document for document in yaml.safe_load_all(text.split("```yaml")[1].split("```")[0]) if document is not None
    ]


async def connect(fleet: Fleet, *, by_place: bool) -> None:
    """Create what the page shows; by place also with a flavor for each worker."""
    for server in (fleet.manager, *fleet.workers.values()):
        client = DirectClient(server)
        await client.create(RESOURCE_FLAVOR, resource_flavor())
        for tenant in TENANTS:
            await client.create(NAMESPACE, namespace(tenant))
        for obj in shown("On the manager" if server is fleet.manager else "On each worker"):
            await client.create(KINDS[obj["kind"]], obj)
    for tenant in TENANTS:
        await fleet.admin.create(LOCAL_QUEUE, local_queue(tenant, of=tenant))
    await connect_workers(fleet.admin, {name: kubeconfig(name) for name in fleet.workers})
    if not by_place:
        return
    *flavors, queue = shown("By place: a flavor for each worker")
    for flavor in flavors:
        await fleet.admin.create(RESOURCE_FLAVOR, flavor)
    for tenant in TENANTS:
        await fleet.admin.merge_patch(CLUSTER_QUEUE, ObjectKey("", tenant), {"spec": queue["spec"]})
    for name in fleet.workers:
        patch = {"metadata": {"annotations": {FLAVORS: name}}}
        await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), patch)


@asynccontextmanager
async def shared(fleet: Fleet, *, by_place: bool = False) -> AsyncIterator[None]:
    """Run a fleet that tenants share."""
    await connect(fleet, by_place=by_place)
    manager = attrs.evolve(fleet.build(), dispatcher=ScoredDispatcher({"default": Profile()}))
    async with fleet.kueues(LONG), fleet.running(manager):
        await anyio.sleep(5)
        yield


async def workloads(fleet: Fleet) -> list[Json]:
    return (await fleet.admin.list(WORKLOAD)).items


async def running(fleet: Fleet) -> dict[str, int]:
    """How many jobs of each tenant a worker has admitted."""
    copies = [
        workload for worker in fleet.workers.values() for workload in (await DirectClient(worker).list(WORKLOAD)).items
    ]
    return dict(Counter(copy["metadata"]["namespace"] for copy in copies if is_true(copy, "Admitted")))


@pytest.mark.gate
async def test_a_tenant_that_comes_late_gets_its_half() -> None:
    fleet = Fleet.of("oslo", "bergen")
    async with shared(fleet):
        for number in range(3 * HALF):
            await fleet.submit(f"early-{number}", namespace="early")
        await until(lambda: _runs(fleet, early=2 * HALF))

        for number in range(HALF + 2):
            await fleet.submit(f"late-{number}", namespace="late")
        await until(lambda: _runs(fleet, early=HALF, late=HALF))

        await anyio.sleep(120)
        assert await running(fleet) == {"early": HALF, "late": HALF}, "it does not swing"
        listed = await workloads(fleet)
        assert (
            sum(has_quota(workload) for workload in listed)
            == sum(cluster_name(workload) is not None for workload in listed)
            == 2 * HALF
        )
        assert evicted(listed) == {"early"}, "nobody is evicted for more than its half"
        copies = [
            workload
            for worker in fleet.workers.values()
            for workload in (await DirectClient(worker).list(WORKLOAD)).items
        ]
        assert len(copies) == 2 * HALF, "no worker's queue has a job that waits"


async def test_who_has_quota_and_no_room_yet_is_held_and_nobody_on_a_worker_is_preempted() -> None:
    """A worker is full with a job that the manager does not count: the sum is right, the place is not."""
    fleet = Fleet.of("oslo", "bergen")
    async with shared(fleet):
        for number in range(HALF):
            await fleet.submit(f"own-{number}", worker="oslo", namespace="early")
        await anyio.sleep(10)
        for number in range(HALF):
            await fleet.submit(f"late-{number}", namespace="late")
            await fleet.submit(f"early-{number}", namespace="early")
        await anyio.sleep(60)
        listed = await workloads(fleet)
        assert sum(map(has_quota, listed)) == 2 * HALF
        assert Counter(cluster_name(workload) for workload in listed) == {"bergen": HALF, None: HALF}


@pytest.mark.gate
async def test_a_gang_gets_its_room_on_one_worker_by_a_flavor_for_each() -> None:
    """By sum alone, those that give way may be on different workers."""
    fleet = Fleet.of("oslo", "bergen")
    async with shared(fleet, by_place=True):
        for number in range(2 * HALF):
            await fleet.submit(f"early-{number}", namespace="early")
        await until(lambda: _runs(fleet, early=2 * HALF))
        await fleet.submit("gang", namespace="late", pods=2)
        await until(lambda: _runs(fleet, early=2 * HALF - 2, late=1))
        await anyio.sleep(30)
        (gang,) = (workload for workload in await workloads(fleet) if workload["metadata"]["namespace"] == "late")
        given = gang["status"]["admission"]["podSetAssignments"][0]["flavors"]["cpu"]
        assert cluster_name(gang) == given
        here = [
            workload for workload in await workloads(fleet) if has_quota(workload) and cluster_name(workload) == given
        ]
        assert len(here) == HALF - 2 + 1


def evicted(listed: list[Json]) -> set[str]:
    """The tenants of which jobs were evicted."""
    return {workload["metadata"]["namespace"] for workload in listed if condition(workload, "Evicted") is not None}


def _runs(fleet: Fleet, **wanted: int) -> object:
    async def holds() -> bool:
        return await running(fleet) == wanted

    return holds()
