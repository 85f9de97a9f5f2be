"""The pool of worker clusters. A cluster is a unit of failure: its own task, connections, caches and back-off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import anyio
import anyio.abc
import attrs

from multikueue.core.machinery.connection import Connection
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.errors import MultiKueueError
from multikueue.kube.config import ClusterConfig
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.clock import loop_time
from multikueue.runtime.remote import Line, RemoteCluster
from multikueue.runtime.session import Session, SessionSettings

Connect: TypeAlias = Callable[[ClusterName, ClusterConfig], AbstractAsyncContextManager[ApiClient]]
"""Makes the client for a cluster. Building it does no I/O; using it does."""

TRIAL_FAILURES: Final = 3
"""Failures in a row after which a new configuration takes the place of one that works: one may be chance, and whoever
changed it must see that it does not work."""
REPAIR: Final = 60.0
"""Seconds until a worker is connected to anew whose line ended with an error that nobody thought of."""
LINGER: Final = 30.0
"""Seconds for which a replaced client stays open: what is under way there ends by then, for that is its deadline."""

log = get_logger(__name__)


@attrs.define(eq=False)
class RemotePool:
    """All workers the manager knows, each served by a task of its own.

    `assign`, `refuse` and `forget` only start and stop tasks: they never wait.
    """

    connect: Connect
    settings: SessionSettings
    clock: Callable[[], datetime]
    on_cluster: Callable[[RemoteCluster], None]
    """A worker's connection came or went, or what it serves changed."""
    on_status: Callable[[RemoteCluster], None]
    """Only what its status says changed: one more attempt failed."""
    _clusters: dict[str, RemoteCluster] = attrs.field(factory=dict, init=False)
    _forgotten: dict[str, datetime] = attrs.field(factory=dict, init=False)
    _with_queues: set[str] = attrs.field(factory=set, init=False)
    _started: datetime | None = attrs.field(default=None, init=False)
    _listening_since: float | None = attrs.field(default=None, init=False)
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

    def listen(self) -> None:
        """From now on workers are assigned: count how long they have had to answer."""
        self._listening_since = loop_time()

    @property
    def running_for(self) -> timedelta:
        """How long workers have been listened to."""
        since = self._listening_since
        return timedelta(seconds=loop_time() - since) if since is not None else timedelta(0)

    def lost_since(self, name: str) -> datetime | None:
        """Since when a cluster that is not known is not: as far as this process can tell."""
        return self._forgotten.get(name, self._started)

    def follow_queues(self, name: str) -> None:
        """Keep the queues of a worker, too, now and under later configurations."""
        self._with_queues.add(name)
        cluster = self._clusters.get(name)
        for line in (cluster.line, cluster.trial) if cluster is not None else ():
            if line is not None and line.session is not None:
                line.session.follow_queues()

    def assign(self, name: ClusterName, config: ClusterConfig, lost_since: datetime | None) -> None:
        """Connect to a worker with this configuration; nothing happens if it is the one that is wanted already.

        A configuration for another server takes effect at once. One for the same server is tried beside the present
        one, and takes its place once everything has been read, or once it has failed.

        Args:
            name: of the MultiKueueCluster.
            config: how to reach it.
            lost_since: since when it has been lost, if an earlier process noted that.
        """
        cluster = self._clusters.setdefault(name, RemoteCluster(name, Connection(lost_since=lost_since)))
        if cluster.config == config:
            return
        self._forgotten.pop(name, None)
        cluster.config = config
        _stop(cluster.trial)
        cluster.trial = None
        if cluster.line is not None and cluster.line.config == config:
            return  # back to the one that still works
        if cluster.session is not None and cluster.server != config.server:
            self._forget_server(cluster)
        line = Line(config)
        if cluster.line is not None and cluster.session is not None:
            cluster.trial = line
        else:
            _stop(cluster.line)
            cluster.line = line
        assert self._tasks is not None, "the pool is not running"
        self._tasks.start_soon(self._serve, cluster, line, name=f"cluster {name}")

    def refuse(self, name: ClusterName, reason: str, error: str, lost_since: datetime | None) -> None:
        """Stop using a worker whose configuration cannot be used. What was assigned to it stays so for a while."""
        cluster = self._clusters.setdefault(name, RemoteCluster(name, Connection(lost_since=lost_since)))
        told = (cluster.connection.reason, cluster.connection.error)
        if cluster.config is None and told == (reason, error):
            return
        cluster.config = None
        self._fail(cluster, reason, error)

    def forget(self, name: str) -> None:
        """Stop serving a worker that the manager does not know any more."""
        cluster = self._clusters.pop(name, None)
        if cluster is not None:
            self._fail(cluster, "ClientConnectionFailed", "removed")
            self._forgotten[name] = cluster.connection.lost_since or self.clock()

    def _fail(
        self, cluster: RemoteCluster, reason: str, error: str, *, failures: int = 0, retry_in: float | None = None
    ) -> None:
        """Nothing can be done until the configuration is another one, or for a while. What is known stays."""
        _stop(cluster.line)
        _stop(cluster.trial)
        cluster.line = cluster.trial = None
        now = self.clock()
        if cluster.connection.connected:
            log.info("worker", cluster=cluster.name, connected=False, error=error)
        retry_at = now + timedelta(seconds=retry_in) if retry_in is not None else None
        cluster.connection = cluster.connection.failed(
            error, now, failures=failures, next_attempt=retry_at, reason=reason
        )
        self.on_cluster(cluster)

    def _forget_server(self, cluster: RemoteCluster) -> None:
        """Another server is another cluster: what the earlier one had says nothing about it."""
        left = list(cluster.keys())
        _stop(cluster.line)
        cluster.line = cluster.session = None
        cluster.server = ""
        cluster.connection = Connection(lost_since=cluster.connection.lost_since)
        self.on_cluster(cluster)
        self._look_again(left)

    async def _serve(self, cluster: RemoteCluster, line: Line) -> None:
        while True:
            try:
                await self._follow(cluster, line)
            except Exception as error:  # a bug, or an answer nobody thought of: this worker's alone
                log.error("cannot serve a worker", cluster=cluster.name, exc_info=error)
            else:
                return
            if line not in (cluster.line, cluster.trial):
                return
            problem = "internal error: see the log of multikueue"
            self._fail(cluster, "ClientConnectionFailed", problem, failures=1, retry_in=REPAIR)
            await anyio.sleep(REPAIR)
            if cluster is not self._clusters.get(cluster.name) or cluster.config != line.config or cluster.line:
                return
            line = cluster.line = Line(line.config)

    async def _follow(self, cluster: RemoteCluster, line: Line) -> None:
        with line.scope:
            try:
                async with self.connect(cluster.name, line.config) as client:
                    heard = functools.partial(self._heard, cluster, line)
                    session = line.session = Session.build(client, self.settings, heard, cluster.session)
                    if cluster.line is line and cluster.session is None:
                        cluster.session, cluster.server = session, line.config.server
                    with line.watching:
                        await session.run(follow_queues=cluster.name in self._with_queues)
                    await anyio.sleep(LINGER)
            except MultiKueueError as error:  # a configuration from which no client can be built
                if line in (cluster.line, cluster.trial):
                    self._fail(cluster, "ClientConnectionFailed", str(error))

    def _heard(self, cluster: RemoteCluster, line: Line) -> None:
        """Something changed about the caches of a line."""
        session = line.session
        assert session is not None, "a line without a session has no caches"
        complete = session.state.synced and session.settled
        if line is cluster.trial:
            limit = TRIAL_FAILURES if cluster.connection.connected else 1
            if not complete and session.state.failures < limit:
                return
            if cluster.line is not None:
                cluster.line.retire()
            cluster.line, cluster.trial = line, None
        if line is not cluster.line:
            return  # the last words of one that has been replaced
        if complete and cluster.session is not session:
            self._adopt(cluster, session)
        self._tell(cluster, line, session)

    def _adopt(self, cluster: RemoteCluster, session: Session) -> None:
        """From now on this is what is known."""
        earlier, cluster.session = cluster.session, session
        if earlier is not None:
            session.inherit(earlier)
            self._look_again(list(earlier.keys()))

    def _tell(self, cluster: RemoteCluster, line: Line, session: Session) -> None:
        """The Workload watch decides whether a cluster is connected."""
        before, state = cluster.connection, session.state
        if state is not line.seen and state.failures and state.retry_in is not None:
            now = self.clock()
            retry_at = now + timedelta(seconds=state.retry_in)
            cluster.connection = before.failed(state.last_error, now, failures=state.failures, next_attempt=retry_at)
        elif cluster.session is session and state.synced and not state.failures:
            cluster.connection = before.succeeded()
        line.seen, after = state, cluster.connection
        if before.connected != after.connected:
            log.info("worker", cluster=cluster.name, connected=after.connected, error=state.last_error)
        told: tuple[object, ...] = (
            after.connected,
            after.lost_since,
            cluster.session,
            session.usable,
            session.answered,
            frozenset(session.unusable),
        )
        if line.told != told:
            line.told = told
            self.on_cluster(cluster)
        else:
            self.on_status(cluster)

    def _look_again(self, keys: list[ObjectKey]) -> None:
        for key in keys:
            self.settings.on_workload(key, 0.0)


def _stop(line: Line | None) -> None:
    if line is not None:
        line.stop()
