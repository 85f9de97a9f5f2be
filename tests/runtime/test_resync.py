"""What the collection of garbage plans, and how often: see `core/machinery/resync.py`."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest

from multikueue.core.machinery.resync import PERIOD
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.workloads import cluster_name, is_admitted
from multikueue.runtime.reconcilers import snapshot_reader
from tests.core.door import Snapshot
from tests.runtime.fleet import Fleet

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(300)]

RUNNING, WAITING = 8, 3
MINUTE = 60.0


@pytest.mark.gate
async def test_running_jobs_take_turns_and_waiting_ones_are_planned_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight jobs fill the worker, three wait there: for twice as long as a turn takes."""
    planned: Counter[ObjectKey] = Counter()

    def counted(reader: snapshot_reader.SnapshotReader, key: ObjectKey) -> Snapshot:
        planned[key] += 1
        return read(reader, key)

    read = snapshot_reader.SnapshotReader.read
    monkeypatch.setattr(snapshot_reader.SnapshotReader, "read", counted)
    fleet = await Fleet.connected("worker1", cpu=RUNNING // 2, on_manager=RUNNING + WAITING)
    async with fleet.kueues(), fleet.dispatching():
        for number in range(RUNNING + WAITING):
            await fleet.submit(f"job-{number}")
        await anyio.sleep(MINUTE)
        workloads = (await fleet.admin.list(WORKLOAD)).items
        running = {
            ObjectKey.of(workload)
            for workload in workloads
            if is_admitted(workload) and cluster_name(workload) == "worker1"
        }
        planned.clear()
        await anyio.sleep(2 * PERIOD)

    assert len(running) == RUNNING
    assert {key: planned[key] for key in running} == dict.fromkeys(running, 2)
    waiting = [ObjectKey.of(workload) for workload in workloads if ObjectKey.of(workload) not in running]
    assert len(waiting) == WAITING
    assert all(planned[key] >= 2 * PERIOD / MINUTE - 1 for key in waiting)
