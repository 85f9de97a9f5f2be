"""What a change on a cluster does beside enqueueing keys."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.workload.snapshot import Unanswered
from multikueue.runtime.manager import Manager
from multikueue.sandbox.apiserver import Match, Reset
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = pytest.mark.looptime

KEY, WORKER = ObjectKey("default", "wl"), ClusterName("worker1")


def doubted_for(manager: Manager) -> timedelta:
    """How long a creation on the worker has had no answer, as decisions see it."""
    creation = manager._from_workers.memory.creation(WORKER, KEY, "this attempt")
    assert isinstance(creation, Unanswered)
    return creation.ago


async def test_doubts_about_a_creation_are_renewed_when_the_worker_is_back_and_only_then() -> None:
    """What a worker shows first may be older than the job; a connection that holds is no news."""
    fleet = Fleet.of("worker1")
    await fleet.connect()
    async with fleet.running() as manager:
        await until(is_active(fleet))
        memory = manager._from_workers.memory
        memory.sending(WORKER, KEY, "train")
        memory.unanswered(WORKER, KEY, "train")
        worker = manager.workers.get(WORKER)
        assert worker is not None
        await anyio.sleep(10)
        manager._from_workers.cluster_changed(worker, True)
        assert doubted_for(manager) == timedelta(seconds=10)

        lost = fleet.workers["worker1"].faults.add(Reset(), on=Match(user="multikueue"))
        fleet.workers["worker1"].faults.connections.drop()
        await until(lambda: not worker.connection.connected, within=300)
        await anyio.sleep(60)
        fleet.workers["worker1"].faults.remove(lost)
        await until(lambda: worker.connection.connected, within=120)
        assert doubted_for(manager) < timedelta(seconds=2)
