"""The pool of workers, and what is known of each: a cluster pool with `WorkerInformers` as caches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import anyio.abc
import attrs

from multikueue.core.machinery.connection import Connection
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.model.workloads import Owner
from multikueue.core.workload.snapshot import Connected, Connecting, Lost, Reach, Served, Worker
from multikueue.protocols import ApiClient
from multikueue.runtime.cluster_pool import Cluster, ClusterPool, Connect
from multikueue.runtime.loop import loop_time
from multikueue.runtime.worker_informers import WorkerInformers, WorkerSettings


@attrs.frozen
class WorkerCluster:
    """One worker as it is now."""

    name: ClusterName
    connection: Connection
    """Whether its Workloads are followed, and if not, since when and why."""
    informers: WorkerInformers | None
    """What is known of it, now or from before it was lost; None if nothing is."""
    usable: WorkerInformers | None
    """The same, if requests can be sent through their client."""
    server: str
    """The address where this was read."""

    @classmethod
    def of(cls, cluster: Cluster[WorkerInformers]) -> WorkerCluster:
        """A cluster of the pool."""
        return cls(cluster.name, cluster.connection, cluster.known, cluster.usable, cluster.server)

    @property
    def reachable(self) -> bool:
        """Whether what its informers show is what is there."""
        return self.connection.connected

    def view(self, key: ObjectKey, owned_by: Owner | None, *, configured: bool, workload_only: bool) -> Worker:
        """What is known of the worker, and its copies and jobs of a Workload.

        Args:
            key: the Workload.
            owned_by: the job behind it.
            configured: whether the Workload's config lists the worker.
            workload_only: whether its jobs need not be seen.
        """
        gvk, informers = owned_by.gvk if owned_by is not None else None, self.informers
        if informers is None:
            return Worker(self.name, configured, reach=self._reach(seen=False))
        own, shared = informers.jobs_of(key, owned_by)
        workload = informers.workloads.get(key)
        return Worker(
            self.name,
            configured,
            reach=self._reach(seen=informers.have_read(gvk)),
            kind=Served() if workload_only else informers.kind(gvk),
            refusal=informers.refusal(key, gvk, workload, (*own, *shared)),
            workload=workload,
            jobs=own,
            shared=shared,
        )

    def _reach(self, *, seen: bool) -> Reach:
        if self.reachable:
            return Connected()
        return Connecting() if self.connection.unheard else Lost(self.connection.lost_since, seen)

    @property
    def unusable(self) -> dict[str, str]:
        """The kinds it refuses, and why."""
        return self.usable.unusable if self.usable is not None else {}

    def keys(self) -> Iterator[ObjectKey]:
        """The Workloads with copies there, or with jobs."""
        return self.informers.keys() if self.informers is not None else iter(())


@attrs.define(eq=False, repr=False)
class WorkerPool:
    """All workers the manager knows."""

    connect: Connect
    settings: WorkerSettings
    clock: Callable[[], datetime]
    on_cluster: Callable[[WorkerCluster, bool], None]
    """Called with a worker whose connection or kinds changed, and whether the manager still knows it."""
    on_status: Callable[[WorkerCluster], None]
    """Called when only the status of its MultiKueueCluster changes: one more connection failed."""
    clusters: ClusterPool[WorkerInformers] = attrs.field(init=False)
    _told: dict[str, object] = attrs.field(factory=dict, init=False)
    """By worker, what was known when `on_cluster` was called last."""
    _removed: dict[str, datetime | None] = attrs.field(factory=dict, init=False)
    """Since when the workers are lost that the manager does not know any more."""
    _with_queues: set[str] = attrs.field(factory=set, init=False)
    _started: float = attrs.field(default=math.inf, init=False)

    @clusters.default
    def _pool(self) -> ClusterPool[WorkerInformers]:
        return ClusterPool(self.connect, self._informers, self.clock, self._changed, self._replaced)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve the workers until cancelled; `running_for` counts from now."""
        self._started = loop_time()
        await self.clusters.run(task_status=task_status)

    def __iter__(self) -> Iterator[WorkerCluster]:
        return map(WorkerCluster.of, self.clusters)

    def get(self, name: str) -> WorkerCluster | None:
        """The worker of that name."""
        cluster = self.clusters.get(name)
        return WorkerCluster.of(cluster) if cluster is not None else None

    @property
    def running_for(self) -> timedelta:
        """How long workers have had time to answer."""
        return timedelta(seconds=max(0.0, loop_time() - self._started))

    def lost_since(self, name: str) -> datetime | None:
        """Since when a worker is lost that the manager does not know: as far as this process can tell."""
        return self._removed.get(name, self.clock() - self.running_for)

    def follow_queues(self, name: str) -> None:
        """Keep the queues of a worker, too, now and under later configurations."""
        self._with_queues.add(name)
        cluster = self.clusters.get(name)
        for informers in cluster.caches if cluster is not None else ():
            informers.follow_queues()

    def _informers(
        self, name: ClusterName, client: ApiClient, earlier: WorkerInformers | None, report: Callable[[], None]
    ) -> WorkerInformers:
        informers = WorkerInformers.build(client, self.settings, report, earlier)
        if name in self._with_queues:
            informers.follow_queues()
        return informers

    def _changed(self, cluster: Cluster[WorkerInformers]) -> None:
        worker, connection = WorkerCluster.of(cluster), cluster.connection
        known = self.clusters.get(cluster.name) is cluster
        if not known:
            self._removed[cluster.name] = connection.lost_since
        facts = (connection.connected, connection.unheard, connection.lost_since, known, worker.usable)
        shown = cluster.known.shown if cluster.known is not None else ()
        told, now = self._told.pop(cluster.name, None), (*facts, cluster.known, *shown)
        if known:
            self._told[cluster.name] = now
        if told == now:
            self.on_status(worker)
        else:
            self.on_cluster(worker, known)

    def _replaced(self, earlier: WorkerInformers, now: WorkerInformers | None) -> None:
        """Have Workloads reconciled whose copies may be gone with the caches."""
        if now is not None:
            now.inherit(earlier)
        for key in list(earlier.keys()):
            self.settings.on_workload(key, 0.0)

    def __repr__(self) -> str:
        return f"<WorkerPool of {self.clusters!r}>"
