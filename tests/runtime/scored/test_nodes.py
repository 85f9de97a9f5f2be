"""Quota is not nodes."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import conditions, new_condition, updated
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Match, Refuse
from tests.runtime.fleet import Fleet, now
from tests.runtime.test_scored import placed, scored

pytestmark = pytest.mark.looptime


async def no_nodes(fleet: Fleet, worker: str) -> None:
    """The worker's Kueue has no place for the pods of what waits there."""
    client = DirectClient(fleet.workers[worker])
    for copy in (await client.list(WORKLOAD)).items:
        failed = new_condition("QuotaReserved", False, "TopologyPlacementFailed", "no nodes", now=now())
        told = {"status": {"conditions": updated(conditions(copy), failed)}}
        await client.merge_patch(WORKLOAD, ObjectKey.of(copy), told, subresource="status")


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
