"""A short soak among the other tests, and that it can fail; `nox -s soak` runs weeks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from multikueue.core.model.names import ObjectKey
from multikueue.runtime.cluster_pool import ClusterPool
from multikueue.runtime.event_handlers import WorkerHandlers
from multikueue.runtime.workers.pool import WorkerCluster
from multikueued.metrics.hooks import Metrics
from tests.soak.sampling import MEASURES
from tests.soak.slopes import growths
from tests.soak.soaking import soak

HOURS = 14
SHORT_LIMIT = 0.05
"""How much may grow over seven hours. What happens for the first time, a rare answer for one, adds a series."""

pytestmark = pytest.mark.timeout(300)


def test_nothing_grows() -> None:
    run = soak(HOURS, jobs_per_hour=2)

    assert [str(growth) for growth in growths(run.samples, MEASURES) if growth.exceeds(SHORT_LIMIT)] == []
    assert run.left_over == ()
    assert run.errors == ()


def test_planted_leaks_are_found_in_each_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removed workers keep their connections and their series, and keys and a timer for a day that never comes."""
    noted = WorkerHandlers.status_changed

    def forget(self: ClusterPool[Any], name: str) -> None:
        self._clusters.pop(name, None)

    def status_changed(self: WorkerHandlers, worker: WorkerCluster) -> None:
        noted(self, worker)
        for number in range(40):
            self.work.clusters.enqueue(ObjectKey("gone" * 500, f"{worker.name}-{number}"), 1e9)
        asyncio.get_running_loop().call_later(1e9, str)

    monkeypatch.setattr(ClusterPool, "forget", forget)
    monkeypatch.setattr(Metrics, "cluster_removed", lambda _metrics, _cluster: None)
    monkeypatch.setattr(WorkerHandlers, "status_changed", status_changed)

    run = soak(HOURS, jobs_per_hour=0)
    grown = {growth.name for growth in growths(run.samples, MEASURES) if growth.exceeds(SHORT_LIMIT)}
    assert grown == set(MEASURES)
