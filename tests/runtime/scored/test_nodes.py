"""Quota is not nodes: a worker whose Kueue finds no nodes for a job gets no more of that shape."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import conditions, new_condition, updated
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.runtime.scored.queue_room import SHOWN_AFTER
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Match, Refuse
from tests.runtime.fleet import Fleet, now
from tests.runtime.test_scored import placed, quota, scored

pytestmark = pytest.mark.looptime


async def no_nodes(fleet: Fleet, worker: str) -> None:
    """The worker's Kueue has no place for the pods of what waits there."""
    client = DirectClient(fleet.workers[worker])
    for copy in (await client.list(WORKLOAD)).items:
        failed = new_condition("QuotaReserved", False, "TopologyPlacementFailed", "no nodes", now=now())
        status = {"status": {"conditions": updated(conditions(copy), failed)}}
        await client.merge_patch(WORKLOAD, ObjectKey.of(copy), status, subresource="status")


async def test_a_worker_without_nodes_for_a_job_gets_no_more_of_that_shape_until_more_is_free() -> None:
    fleet = Fleet.of("w1", "w2")
    writes = Match(verbs=("patch", "update"), subresource="status", user="kueue")  # it would admit
    async with scored(fleet):
        await quota(fleet, "w1", "2")
        await quota(fleet, "w2", "2")
        await anyio.sleep(5)
        fleet.workers["w1"].faults.add(Refuse(500), on=writes)

        async def offered(name: str, pods: int) -> bool:
            """Whether the first worker is."""
            before = fleet.requests("w1", "create", WORKLOAD)
            await fleet.submit(name, pods=pods)
            await anyio.sleep(3)
            return fleet.requests("w1", "create", WORKLOAD) > before

        assert await offered("first", 2)
        await no_nodes(fleet, "w1")
        await anyio.sleep(2 * SHOWN_AFTER)
        assert await placed(fleet) == {"first": "w2"}
        assert not await offered("same", 2)
        assert (await placed(fleet))["same"] == "w2"
        assert await offered("smaller", 1)
        await quota(fleet, "w1", "4")  # as if something had ended there
        await anyio.sleep(3)
        assert await offered("next", 2)


@pytest.mark.gate
async def test_the_only_worker_keeps_what_has_no_nodes_there() -> None:
    fleet = Fleet.of("w1")
    admits = Match(verbs=("patch",), resource="workloads", subresource="status", user="kueue")
    async with scored(fleet):
        refused = fleet.workers["w1"].faults.add(Refuse(500), on=admits)
        await fleet.submit()
        await anyio.sleep(1)
        await no_nodes(fleet, "w1")
        await anyio.sleep(60)
        assert fleet.requests("w1", "delete", WORKLOAD) == 0
        fleet.workers["w1"].faults.remove(refused)
        await anyio.sleep(60)
        assert await placed(fleet) == {"job": "w1"}
