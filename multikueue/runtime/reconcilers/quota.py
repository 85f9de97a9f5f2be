"""ClusterQueues of the manager: their quota, if it is to be the sum of the workers'."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.config import quota
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import CLUSTER_QUEUE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import is_terminating, name_of, resource_version
from multikueue.errors import NotFound
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.queue_informers import QueueInformers
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.workers.pool import WorkerCluster, WorkerPool, is_manager, names_on

BATCH: Final = 1.0
"""Seconds changes are collected for: an administrator who changes one queue changes others, too. Kueue's."""


def enqueue_all(work: KeyQueue[ObjectKey], queues: QueueInformers) -> None:
    """Have the quotas of all ClusterQueues computed again: there are few of them."""
    for queue in queues.cluster_queues.values():
        work.enqueue(ObjectKey.of(queue), BATCH)


@attrs.define(eq=False)
class QuotaReconciler:
    """Keeps the quota of ClusterQueues whose MultiKueueConfig asks for it equal to the sum of the workers'.

    A worker's queues are watched from when a config first asks for them. The last known queues of a worker that is lost
    still count. While a configured worker has not been read since the start, no quota is lowered, until it is read or
    has been lost for `worker_lost_timeout`: so a restart lowers no quota. The same holds for a worker that is connected
    and does not serve its queues.
    """

    manager: ManagerCluster
    workers: WorkerPool
    queues: QueueInformers
    """The manager's."""
    worker_lost_timeout: timedelta
    clock: Callable[[], datetime]
    _seen: dict[str, tuple[str, quota.WorkerQueues]] = attrs.field(factory=dict, init=False)
    """By worker: the address of its server, and its queues as last read."""
    _hidden_since: dict[str, datetime] = attrs.field(factory=dict, init=False)
    """By worker: since when it is connected and its queues have not been read."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        if not self.queues.known:
            return Action.after(BATCH)
        queue = self.queues.cluster_queues.get(key)
        if queue is None or is_terminating(queue):
            return Action.done()
        check, _ = self.manager.our_check(quota.check_names(queue))
        config = self.manager.config_of(check)
        local_queues = frozenset(local_queue for local_queue, target in self.queues.targets() if target == key.name)
        objects = {name_of(cluster): cluster for cluster in self.manager.clusters.values()}
        workers = [self._offer(name, local_queues) for name in quota.listed_workers(config, objects)]
        self._forget_removed()
        now = self.clock()
        await self._write(key, queue, quota.automate(queue, check, config, [amounts for amounts, _ in workers], now))
        return Action.earliest(*(left for _, left in workers))

    def _offer(self, name: str, local_queues: frozenset[ObjectKey]) -> tuple[quota.Amounts | None, float | None]:
        """What a worker offers, None if that is not known; and for how many seconds at most to wait for it."""
        self.workers.follow_queues(name)
        worker = self.workers.get(name)
        queues = self._queues_of(worker) if worker is not None else None
        if queues is not None:
            self._hidden_since.pop(name, None)
            source = self.manager.clusters.get(ObjectKey("", name)) or {}
            names = names_on(worker, source)
            return quota.offered(frozenset(map(names.local_queue, local_queues)), queues), None
        lost_since = self._lost_since(name, worker)
        if lost_since is None:
            return None, None
        left = (lost_since + self.worker_lost_timeout - self.clock()).total_seconds()
        return (None, left) if left > 0 else ({}, None)

    def _queues_of(self, worker: WorkerCluster) -> quota.WorkerQueues | None:
        """A worker's queues; as last read, if its newest credentials may not read them."""
        informers, server = worker.known, worker.server
        if informers is not None and informers.queues.known:
            cluster_queues = {name_of(queue): queue for queue in informers.queues.cluster_queues.values()}
            if is_manager(worker):  # there a sum would count itself
                cluster_queues = {
                    name: queue for name, queue in cluster_queues.items() if not self._leads_to_workers(name)
                }
            queues = quota.WorkerQueues(tuple(informers.queues.targets()), cluster_queues)
            self._seen[worker.name] = (server, queues)
            return queues
        seen_on, seen = self._seen.get(worker.name, ("", None))
        return seen if seen_on == server else None

    def _leads_to_workers(self, name: str) -> bool:
        queue = self.queues.cluster_queues.get(ObjectKey("", name))
        return queue is None or self.manager.our_check(quota.check_names(queue))[0] is not None

    def _lost_since(self, name: str, worker: WorkerCluster | None) -> datetime | None:
        """Since when the queues of a worker cannot be read; None while it is only being connected."""
        if worker is None:
            self._seen.pop(name, None)
            self._hidden_since.pop(name, None)
            return self.workers.lost_since(name)
        if worker.connection.connected:
            times = self.workers.clusters.times
            return self._hidden_since.setdefault(name, times.now()) + times.step()
        self._hidden_since.pop(name, None)
        # Without an error it is only being connected: what an earlier process noted may be over.
        return worker.connection.lost_since if worker.connection.error else None

    def _forget_removed(self) -> None:
        """Forget what was seen on workers that are gone."""
        for noted in (self._seen, self._hidden_since):
            for name in [name for name in noted if self.workers.get(name) is None]:
                del noted[name]

    async def _write(self, key: ObjectKey, queue: Json, wanted: quota.Automation) -> None:
        if wanted.resource_groups is not None:
            patch: Json = {
                "metadata": {"resourceVersion": resource_version(queue)},
                "spec": {"resourceGroups": wanted.resource_groups},
            }
            try:
                queue = await self.manager.client.merge_patch(CLUSTER_QUEUE, key, patch)
            except NotFound:
                return  # deleted meanwhile
        if wanted.conditions is not None:
            await self.manager.write_conditions(CLUSTER_QUEUE, queue, wanted.conditions)
