"""Which waiting Workloads count against the room on workers, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import ResourceRequest
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.runtime.workers.queue_room import SHOWN_AFTER, WorkerRooms
from tests.runtime.fleet import Fleet, now

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "wl")
AT = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM = Entry(KEY, "uid", "cq", 0, AT, AT, ResourceRequest(()), ((ClusterName("worker1"), "queue"),))


def rooms() -> WorkerRooms:
    """Of a manager without workers."""
    manager = Fleet.of().build()
    return WorkerRooms(manager.cluster, manager.workers, lambda _: None, now)


async def test_what_a_workload_got_counts_until_figures_show_it() -> None:
    found = rooms()
    found.planned(KEY, CLAIM)
    found.planned(KEY, None)
    await anyio.sleep(SHOWN_AFTER - 0.1)
    found.look()
    assert KEY in found.ledger
    await anyio.sleep(0.2)
    found.look()
    assert KEY not in found.ledger


async def test_it_counts_no_longer_because_it_is_planned_again() -> None:
    """Each change of a running job plans its Workload."""
    found = rooms()
    found.planned(KEY, CLAIM)
    for _ in range(3):
        found.planned(KEY, None)
        await anyio.sleep(SHOWN_AFTER / 2)
    found.look()
    assert KEY not in found.ledger


async def test_a_workload_that_waits_again_keeps_its_claim() -> None:
    found = rooms()
    for claim in (CLAIM, None, attrs.evolve(CLAIM, priority=1)):
        found.planned(KEY, claim)
    await anyio.sleep(SHOWN_AFTER + 0.1)
    found.look()
    assert KEY in found.ledger
