"""The pool of worker clusters. A cluster is a unit of failure: its own task, connections, caches and back-off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TypeAlias

import anyio
import anyio.abc
import attrs
import structlog

from multikueue.adapters import AdapterRegistry, JobKind
from multikueue.core.connection import Connection
from multikueue.core.copies import prebuilt_workload
from multikueue.core.kinds import WORKLOAD
from multikueue.core.labels import ORIGIN_LABEL
from multikueue.core.names import GVK, ClusterName, Json, ObjectKey
from multikueue.errors import MultiKueueError
from multikueue.kube.caching import CacheState, ObjectCache
from multikueue.kube.config import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.mirror import Mirror
from multikueue.runtime.obstacles import Obstacles

Connect: TypeAlias = Callable[[ClusterName, ClusterConfig], AbstractAsyncContextManager[ApiClient]]
"""Makes the client for a cluster. Building it does no I/O; using it does."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class Session:
    """One configuration's clients and caches of a worker. A new configuration gets a new session."""

    client: ApiClient
    workloads: Mirror
    jobs: Mapping[GVK, Mirror]
    obstacles: Obstacles = attrs.field(factory=Obstacles)

    def mirror(self, gvk: GVK) -> Mirror | None:
        """The jobs of one kind; None if the kind is not registered."""
        return self.jobs.get(gvk)

    def synced(self, gvk: GVK) -> bool:
        """Whether the jobs of that kind are known there."""
        mirror = self.mirror(gvk)
        return mirror is not None and mirror.cache.state.synced and mirror.cache.state.failures == 0

    @property
    def settled(self) -> bool:
        """Whether the first answer is in for every kind: a list, or that there will be none."""
        mirrors = [self.workloads, *self.jobs.values()]
        return all(mirror.cache.state.synced or mirror.cache.state.failures for mirror in mirrors)


@attrs.define(eq=False)
class RemoteCluster:
    """One worker."""

    name: ClusterName
    connection: Connection = attrs.field(factory=Connection)
    session: Session | None = None
    config: ClusterConfig | None = attrs.field(default=None, repr=False)
    scope: anyio.CancelScope | None = attrs.field(default=None, repr=False)

    @property
    def reachable(self) -> bool:
        """Whether what its caches show is what is there."""
        return self.known and self.connection.connected

    @property
    def known(self) -> bool:
        """Whether its caches have been complete under the present configuration."""
        return self.session is not None and self.session.workloads.cache.state.synced

    def keys(self) -> Iterator[ObjectKey]:
        """The Workloads of which something lies there."""
        if self.session is None:
            return
        yield from self.session.workloads.cache.keys()
        for mirror in self.session.jobs.values():
            for job in mirror.cache.values():
                yield from _keys(job)


@attrs.define(eq=False)
class RemotePool:
    """All workers the manager knows, each served by a task of its own.

    `assign`, `refuse` and `forget` only start and stop tasks: they never wait.
    """

    connect: Connect
    adapters: AdapterRegistry
    origin: str
    clock: Callable[[], datetime]
    on_workload: Callable[[ObjectKey], None]
    """Something of this Workload changed on some worker."""
    on_cluster: Callable[[RemoteCluster], None]
    """A worker's connection changed, or what it serves."""
    _clusters: dict[str, RemoteCluster] = attrs.field(factory=dict, init=False)
    _forgotten: dict[str, datetime] = attrs.field(factory=dict, init=False)
    _started: datetime | None = attrs.field(default=None, init=False)
    _tasks: anyio.abc.TaskGroup | None = attrs.field(default=None, init=False)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve the clusters until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._started = self.clock()
            task_status.started()
            await anyio.sleep_forever()

    def __iter__(self) -> Iterator[RemoteCluster]:
        return iter(self._clusters.values())

    def get(self, name: str) -> RemoteCluster | None:
        """The worker of that name."""
        return self._clusters.get(name)

    def lost_since(self, name: str) -> datetime | None:
        """Since when a cluster that is not known is not: as far as this process can tell."""
        return self._forgotten.get(name, self._started)

    def assign(self, name: ClusterName, config: ClusterConfig, lost_since: datetime | None) -> None:
        """Connect to a worker with this configuration; nothing happens if it is the one in use.

        Args:
            name: of the MultiKueueCluster.
            config: how to reach it.
            lost_since: since when it has been lost, if an earlier process noted that.
        """
        cluster = self._clusters.get(name) or RemoteCluster(name, Connection(lost_since=lost_since))
        if cluster.session is not None and cluster.config == config:
            return
        self._stop(cluster)
        self._clusters[name] = cluster
        self._forgotten.pop(name, None)
        cluster.config = config
        cluster.scope = anyio.CancelScope()
        assert self._tasks is not None, "the pool is not running"
        self._tasks.start_soon(self._serve, cluster, config, cluster.scope, name=f"cluster {name}")

    def refuse(self, name: ClusterName, reason: str, error: str, lost_since: datetime | None) -> None:
        """Stop using a worker whose configuration cannot be used. What was assigned to it stays so for a while."""
        cluster = self._clusters.setdefault(name, RemoteCluster(name, Connection(lost_since=lost_since)))
        self._stop(cluster)
        cluster.connection = cluster.connection.failed(
            error, self.clock(), failures=0, next_attempt=None, reason=reason
        )
        self.on_cluster(cluster)

    def forget(self, name: str) -> None:
        """Stop serving a worker that the manager does not know any more."""
        cluster = self._clusters.pop(name, None)
        if cluster is not None:
            self._stop(cluster)
            cluster.connection = cluster.connection.failed("removed", self.clock(), failures=0, next_attempt=None)
            self._forgotten[name] = cluster.connection.lost_since or self.clock()
            self.on_cluster(cluster)

    def _stop(self, cluster: RemoteCluster) -> None:
        if cluster.scope is not None:
            cluster.scope.cancel()
        cluster.scope = cluster.session = cluster.config = None

    async def _serve(self, cluster: RemoteCluster, config: ClusterConfig, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                async with self.connect(cluster.name, config) as client:
                    cluster.session = session = self._open(cluster, client)
                    async with anyio.create_task_group() as watches:
                        for mirror in (session.workloads, *session.jobs.values()):
                            watches.start_soon(mirror.cache.run)
            except MultiKueueError as error:  # a configuration from which no client can be built
                if not scope.cancel_called:
                    self.refuse(cluster.name, "BadKubeConfig", str(error), None)

    def _open(self, cluster: RemoteCluster, client: ApiClient) -> Session:
        selector = f"{ORIGIN_LABEL}={self.origin}"

        def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
            del old, new
            self.on_workload(key)

        def job_changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
            del key
            for workload in {*_keys(old), *_keys(new)}:
                self.on_workload(workload)

        def job_mirror(kind: JobKind) -> Mirror:
            cache = ObjectCache(
                client,
                kind.resource,
                label_selector=selector,
                indexes={"workload": _index},
                on_change=job_changed,
                on_state=lambda _: self.on_cluster(cluster),
            )
            return Mirror(cache, _index)

        workloads = ObjectCache(
            client,
            WORKLOAD,
            label_selector=selector,
            on_change=changed,
            on_state=lambda state: self._heard(cluster, session, state),
        )
        session = Session(client, Mirror(workloads), {kind.resource.gvk: job_mirror(kind) for kind in self.adapters})
        return session

    def _heard(self, cluster: RemoteCluster, session: Session, state: CacheState) -> None:
        """The Workload watch decides whether a cluster is connected."""
        if cluster.session is not session:
            return  # the last words of a session that has been replaced
        before = cluster.connection
        if state.failures:
            wait = timedelta(seconds=state.retry_in or 0.0)
            now = self.clock()
            cluster.connection = before.failed(
                str(state.last_error), now, failures=state.failures, next_attempt=now + wait
            )
        elif state.synced:
            cluster.connection = before.succeeded()
        if before.connected != cluster.connection.connected:
            log.info("worker", cluster=cluster.name, connected=cluster.connection.connected, error=state.last_error)
        if before != cluster.connection:
            self.on_cluster(cluster)


def _keys(job: Json | None) -> list[ObjectKey]:
    """The Workloads a job copy belongs to."""
    if job is None:
        return []
    workload = prebuilt_workload(job)
    return [ObjectKey(job["metadata"].get("namespace", ""), workload)] if workload else []


def _index(job: Json) -> list[str]:
    return [str(key) for key in _keys(job)]
