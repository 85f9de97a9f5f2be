"""The collection of garbage: what no event has shown, because of an error, is planned again after a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from multikueue.core.machinery.resync import has_turn
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.loop import loop_time
from multikueue.runtime.workers.pool import WorkerPool, workloads_on

BREATH: Final = 500
"""Workloads that the collection of garbage enqueues before others have a turn: less than ten milliseconds."""


@attrs.frozen
class GarbageCollection:
    """Has Workloads with copies planned without an event, those that run where they should by turns."""

    manager: ManagerCluster
    workers: WorkerPool
    enqueue: Callable[[ClusterName, ObjectKey], object]
    interval: timedelta
    """0: never."""

    async def run(self) -> None:
        """Collect until cancelled."""
        since = now = loop_time()
        while self.interval:
            await anyio.sleep(self.interval.total_seconds())
            since, now = now, loop_time()
            for worker in list(self.workers):
                workloads = list(dict.fromkeys(workloads_on(worker)))  # in an order that repeats
                for number, key in enumerate(workloads, 1):
                    if has_turn(key, since, now) or not self.manager.runs_on(key, worker.name):
                        for concerned in self.manager.with_successors(key):
                            self.enqueue(worker.name, concerned)
                    if number % BREATH == 0:
                        await anyio.lowlevel.checkpoint()
