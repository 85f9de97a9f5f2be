"""A Workload is read without changing anything: what follows from a reading is noted behind it."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import SLICE_REPLACEMENT_ANNOTATION
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.core.model.workloads import SLICE_REPLACED
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from tests.core.door import Snapshot
from tests.runtime.fleet import Fleet, now, until
from tests.runtime.test_shares import LIMITS, flood, ready, two_tenants

pytestmark = [pytest.mark.looptime, pytest.mark.timeout(300)]


def remembered(reader: SnapshotReader) -> list[object]:
    """All that this process keeps between two readings, as text: of Workloads, refusals, shares and watches."""
    kept: list[object] = [repr(reader.memory), reader.workers.names]
    for informers in (worker.known for worker in reader.workers):
        if informers is not None:
            shares, watches = informers.shares, informers.watches.by_kind.values()
            kept += [repr(informers.create_conflicts), repr(shares._waiting), dict(shares._until)]
            kept += [(watch._used_at, watch._wanted.is_set()) for watch in watches]
    return kept


@pytest.fixture(autouse=True)
def readings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ObjectKey]]:
    """What was read, each twice; that nothing has changed by it is asserted at the end."""
    keys, changes = list[ObjectKey](), list[ObjectKey]()  # a reconciler that raises is only logged
    read = SnapshotReader.read

    def read_twice(reader: SnapshotReader, key: ObjectKey) -> Snapshot:
        keys.append(key)
        before = remembered(reader)
        snapshot = read(reader, key)
        if remembered(reader) != before or read(reader, key) != snapshot:
            changes.append(key)
        return snapshot

    monkeypatch.setattr(SnapshotReader, "read", read_twice)
    yield keys
    assert not changes


async def test_nothing_changes_by_reading_what_runs_is_refused_and_goes(readings: list[ObjectKey]) -> None:
    """A job that runs and is deleted, and one whose name is taken on the worker."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues(), fleet.dispatching(manager := fleet.build()):
        await fleet.submit("runs")
        await anyio.sleep(10)
        assert await fleet.ready()
        await fleet.submit("taken", worker="worker1")
        await fleet.submit("taken")
        await anyio.sleep(60)
        (worker,) = manager.workers
        assert worker.known is not None
        assert worker.known.create_conflicts
        for name in ("runs", "taken"):
            await fleet.admin.delete(JOB, ObjectKey("default", name), propagation="Background")
        await anyio.sleep(400)
    assert len(readings) > 20


@pytest.mark.gate
async def test_nothing_changes_by_reading_what_waits_for_its_share(readings: list[ObjectKey]) -> None:
    """What waits for room on a worker waits from when that was planned, not from when it was read."""
    fleet = await two_tenants()
    async with fleet.kueues(), fleet.dispatching(fleet.build(worker_limits=LIMITS)):
        await flood(fleet)
        await anyio.sleep(60)
        await fleet.submit("small", namespace="victim")
        await until(lambda: ready(fleet))
    assert len(readings) > 100


@pytest.mark.parametrize("over", [True, False])
async def test_a_slice_shows_the_copies_of_those_that_are_over(over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """That worker's Kueue may be dead: the copy tells that the job of the replaced slice may run there."""
    shown, read = dict[ObjectKey, Snapshot](), SnapshotReader.read

    def noted(reader: SnapshotReader, key: ObjectKey) -> Snapshot:
        shown[key] = read(reader, key)
        return shown[key]

    monkeypatch.setattr(SnapshotReader, "read", noted)
    fleet = await Fleet.connected("worker1")
    async with fleet.dispatching():
        async with fleet.kueues():
            await fleet.elastic()
            await anyio.sleep(10)
            assert await fleet.ready()
        first = await fleet.workload()
        metadata = {name: first["metadata"][name] for name in ("namespace", "annotations", "ownerReferences")}
        metadata["annotations"][SLICE_REPLACEMENT_ANNOTATION] = str(ObjectKey.of(first))
        await fleet.admin.create(WORKLOAD, {**first, "metadata": {**metadata, "name": "next"}, "status": {}})
        if over:
            ended = new_condition("Finished", True, SLICE_REPLACED, "replaced", now=now())
            status = {"conditions": [*first["status"]["conditions"], ended]}
            await fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(first), {"status": status}, subresource="status")
        await anyio.sleep(10)
    (worker,) = shown[ObjectKey("default", "next")].workers
    assert [name_of(copy) for copy in worker.slices] == [name_of(first)] * over
