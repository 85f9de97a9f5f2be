"""What a worker's queue costs while many Workloads are held: decisions, counted on the virtual clock."""

from __future__ import annotations

from typing import Any

import anyio
import attrs
import pytest

from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import CLUSTER_QUEUE, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import nominated
from multikueue.runtime.reconcilers.quota import QuotaReconciler
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.scored.dispatcher import ScoredDispatcher
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME, cluster_queue
from tests.core.door import Snapshot
from tests.runtime.fleet import Fleet
from tests.runtime.held import CPU, hold, use

pytestmark = pytest.mark.looptime

HELD = 100


@pytest.mark.gate
async def test_a_status_of_a_queue_plans_whom_it_can_wake_and_no_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    planned, sums = list[ObjectKey](), list[ObjectKey]()
    read, reconcile = SnapshotReader.read, QuotaReconciler.reconcile

    def counted_read(reader: SnapshotReader, key: ObjectKey) -> Snapshot:
        planned.append(key)
        return read(reader, key)

    async def counted_sum(reconciler: QuotaReconciler, key: ObjectKey) -> Action:
        sums.append(key)
        return await reconcile(reconciler, key)

    monkeypatch.setattr(SnapshotReader, "read", counted_read)
    monkeypatch.setattr(QuotaReconciler, "reconcile", counted_sum)
    fleet = Fleet.of("w1", "w2", "w3")
    keys = await hold(fleet, HELD)
    async with fleet.running(attrs.evolve(fleet.build(quota_automation=True), dispatcher=ScoredDispatcher())):
        await anyio.sleep(60)  # a round that looks for garbage is over
        assert set(planned) == set(keys)
        assert sums

        async def after(*statuses: tuple[str, int, int]) -> tuple[set[ObjectKey], list[ObjectKey]]:
            planned.clear()
            sums.clear()
            for status in statuses:
                await use(fleet, *status)
                await anyio.sleep(5)
            return set(planned), list(sums)

        full = 1000 * CPU
        assert await after(*((name, full - used, 0) for name in ("w1", "w2", "w3") for used in (500, 200, 999, 0))) == (
            set(),
            [],
        )
        assert await after(("w2", full, 7), ("w2", full - 5000, 7), ("w2", full, 0)) == (set(), [])
        assert await after(("w3", full - 1000, 0)) == ({keys[0]}, [])
        assert nominated(await fleet.admin.get(WORKLOAD, keys[0])) == ("w3",)
        assert await after(("w1", full - 2100, 0)) == ({keys[1], keys[40]}, [])
        sums.clear()
        await _spec(fleet, "w1")
        assert sums


async def _spec(fleet: Fleet, worker: str) -> None:
    """A new quota is what sums are made of."""
    spec: Any = {"spec": {"resourceGroups": cluster_queue({"cpu": "9"})["spec"]["resourceGroups"]}}
    await DirectClient(fleet.workers[worker]).merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), spec)
    await anyio.sleep(5)
