"""A pool of clusters, for any controller that works on several: configurations in; clients, caches and health out.

A cluster is a unit of failure: it has its own tasks, client, caches and back-off. What is kept of a cluster is the
user's choice: see `Caches` and `health_of`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

import anyio.abc
import attrs

from multikueue.core.machinery import cluster_state
from multikueue.core.machinery.cluster_state import ClusterState
from multikueue.core.machinery.connection import CONNECTION_FAILED, Connection, Failing, Health, OpeningWatch, OpenWatch
from multikueue.core.model.names import ClusterName
from multikueue.errors import MultiKueueError
from multikueue.kube.informers.informer_status import InformerStatus
from multikueue.kube.kubeconfigs.client_configuration import Given, cluster_config
from multikueue.kube.kubeconfigs.config import ClusterConfig
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient, Caches
from multikueue.runtime.loop import BackgroundTasks, SteadyClock, own_cancellation

Connect: TypeAlias = Callable[[ClusterName, ClusterConfig], AbstractAsyncContextManager[ApiClient]]
"""Makes the client for a cluster. Building it does no I/O; using it does."""

LINGER: Final = 60.0
"""Seconds for which a replaced client stays open: a call may wait for a connection for 30 s and then take 30 s, so what
is under way ends by then."""

log = get_logger(__name__)


S = TypeVar("S", bound=Caches)


def health_of(deciding: InformerStatus, others: Iterable[InformerStatus] = ()) -> Health:
    """The health of a connection whose caches are informers.

    Args:
        deciding: the cluster is connected while this one follows.
        others: must have been read, or have failed, before this connection takes the place of another one.
    """
    complete = deciding.synced and all(status.synced or status.failures for status in others)
    if deciding.failures and deciding.retry_in is not None:
        failing = Failing(
            deciding.failures,
            deciding.last_error,
            deciding.retry_in,
            deciding.silent_for,
            deciding.unreadable,
            deciding.cause or "",
        )
        return Health(failing, complete)
    return Health(OpenWatch() if deciding.synced and not deciding.failures else OpeningWatch(), complete)


@attrs.define(eq=False)
class _OpenLink(Generic[S]):
    """An open connection: its tasks, and what is read through it once there is a client."""

    everything: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    watching: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    caches: S | None = None


@attrs.define(eq=False, repr=False)
class Cluster(Generic[S]):
    """One cluster of a pool."""

    name: ClusterName
    state: ClusterState[ClusterConfig]
    """Its times are those of `times`."""
    times: SteadyClock
    known: S | None = None
    """What is known of it. The connection it was read through may be closed by now."""
    logged_error: str = attrs.field(default="", init=False)
    """Why it is not connected, as the log has it."""
    _open: dict[int, _OpenLink[S]] = attrs.field(factory=dict, init=False)

    @property
    def connection(self) -> Connection:
        """Whether it is connected, and if not, since when by the wall clock, and why."""
        connection = self.state.connection
        return (
            connection
            if connection.lost_since is connection.next_attempt is None
            else connection.shifted(self.times.step())
        )

    @property
    def server(self) -> str:
        """The address of the server of which something is known; empty if nothing is."""
        return self.state.known.config.server if self.state.known is not None else ""

    @property
    def usable(self) -> S | None:
        """What is known, if requests can be sent to where it was read."""
        return self.known if self.state.usable else None

    @property
    def caches(self) -> list[S]:
        """What is read through the connections that are open."""
        return [link.caches for link in self._open.values() if link.caches is not None]

    def __repr__(self) -> str:
        connection = self.state.connection  # needs no loop
        error = f": {connection.error}" if connection.error else ""
        tries = ", tries another configuration" if len(self.state.links) > 1 else ""
        return f"<Cluster {self.name}: {connection.word}{error}{tries}>"


@attrs.define(eq=False, repr=False)
class ClusterPool(Generic[S]):
    """All clusters that are wanted. `assign`, `refuse` and `forget` never wait; tasks start once the pool runs."""

    connect: Connect
    build: Callable[[ClusterName, ApiClient, S | None, Callable[[], None]], S]
    """Makes the caches of a connection: for this cluster, with this client, after what is known of it so far. They are
    to call the last argument whenever their health may have changed."""
    clock: Callable[[], datetime]
    on_change: Callable[[Cluster[S]], None] = lambda _: None
    """A cluster's connection, or the health of its caches, may have changed."""
    on_replace: Callable[[S, S | None], None] = lambda _earlier, _now: None
    """Caches were replaced as what is known of a cluster: by others, or by nothing if it is another server now."""
    times: SteadyClock = attrs.field(init=False)
    """By which it waits: `clock` without its steps."""
    _clusters: dict[str, Cluster[S]] = attrs.field(factory=dict, init=False)
    _tasks: BackgroundTasks = attrs.field(factory=BackgroundTasks, init=False)

    @times.default
    def _steady(self) -> SteadyClock:
        return SteadyClock(self.clock)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve the clusters until cancelled."""
        await self._tasks.run(task_status=task_status)

    def __iter__(self) -> Iterator[Cluster[S]]:
        return iter(self._clusters.values())

    def get(self, name: str) -> Cluster[S] | None:
        """The cluster of that name."""
        return self._clusters.get(name)

    def connected(self, name: str) -> S | None:
        """What is known of a cluster, if it is connected: what is there now, and requests can be sent there."""
        cluster = self._clusters.get(name)
        return cluster.known if cluster is not None and cluster.connection.connected else None

    def why(self, name: str) -> str:
        """Why a cluster is not connected, for people; empty: it is. What it says first and anew is logged, too."""
        cluster = self._clusters.get(name)
        if cluster is None:
            return f'no cluster "{name}" is assigned'
        connection = cluster.connection
        return "" if connection.connected else connection.error or "it has not answered yet"

    def assign(self, name: str, config: Given, lost_since: datetime | None = None) -> None:
        """Connect to a cluster with this configuration; see `core.machinery.cluster_state`.

        Args:
            name: of the cluster.
            config: how to reach it.
            lost_since: since when it has been lost, if an earlier process noted that.
        """
        self._step(self._cluster(name, lost_since), cluster_state.Assigned(cluster_config(config)))

    def refuse(self, name: str, reason: str, error: str, lost_since: datetime | None = None, cause: str = "") -> None:
        """Close the connections of a cluster that has no usable configuration. What is known of it stays."""
        self._step(self._cluster(name, lost_since), cluster_state.Refused(error, reason, cause))

    def forget(self, name: str) -> None:
        """Close the connections of a cluster that is not wanted any more."""
        cluster = self._clusters.pop(name, None)
        if cluster is not None:
            self._step(cluster, cluster_state.Refused("removed", CONNECTION_FAILED))

    def _cluster(self, name: str, lost_since: datetime | None) -> Cluster[S]:
        if name not in self._clusters:
            connection = Connection(lost_since=lost_since).shifted(-self.times.step())
            self._clusters[name] = Cluster(ClusterName(name), ClusterState(connection), self.times)
        return self._clusters[name]

    def _step(self, cluster: Cluster[S], event: cluster_state.Event[ClusterConfig]) -> None:
        before = cluster.connection
        cluster.state, commands = cluster.state.step(event, self.times.now())
        self._log(cluster, before)
        for command in commands:
            self._perform(cluster, command)

    def _log(self, cluster: Cluster[S], before: Connection) -> None:
        """Log that a cluster is connected, or that it is not and why: again when the reason changes."""
        connection = cluster.connection
        if connection.connected:
            cluster.logged_error = ""
            if not before.connected:
                log.info("connected", cluster=cluster.name)
        elif self._clusters.get(cluster.name) is not cluster:
            log.info("removed", cluster=cluster.name)
        elif connection.error != cluster.logged_error:
            cluster.logged_error, due = connection.error, connection.next_attempt
            again = {"tried_again_in": round((due - self.clock()).total_seconds(), 1)} if due is not None else {}
            log.warning(connection.word, cluster=cluster.name, error=connection.error, **again)

    def _perform(self, cluster: Cluster[S], command: cluster_state.Command[ClusterConfig]) -> None:
        match command:
            case cluster_state.Open(link):
                opened = cluster._open[link.number] = _OpenLink()
                self._tasks.start(partial(self._serve, cluster, link, opened))
            case cluster_state.Retire(number):
                cluster._open.pop(number).watching.cancel()
            case cluster_state.Stop(number):
                cluster._open.pop(number).everything.cancel()
            case cluster_state.AdoptKnowledge(number):
                self._replace(cluster, cluster._open[number].caches)
            case cluster_state.Forget():
                self._replace(cluster, None)
            case cluster_state.BackOff(number, seconds):
                self._tasks.start(partial(self._back_off, cluster, number, seconds))
            case cluster_state.Notify():
                self.on_change(cluster)

    def _replace(self, cluster: Cluster[S], now: S | None) -> None:
        earlier, cluster.known = cluster.known, now
        if earlier is not None:
            self.on_replace(earlier, now)

    async def _back_off(self, cluster: Cluster[S], number: int, seconds: float) -> None:
        await anyio.sleep(seconds)
        self._step(cluster, cluster_state.BackOffEnded(number))

    async def _serve(self, cluster: Cluster[S], link: cluster_state.Link[ClusterConfig], opened: _OpenLink[S]) -> None:
        def report() -> None:
            self._step(cluster, cluster_state.Reported(link.number, caches.health))

        try:
            with own_cancellation(), opened.everything:
                async with self.connect(cluster.name, link.config) as client:
                    caches = opened.caches = self.build(cluster.name, client, cluster.known, report)
                    with opened.watching:
                        await caches.run()
                    await anyio.sleep(LINGER)
        except Exception as error:  # it costs this cluster alone (never its own cancellation)
            if isinstance(error, MultiKueueError) and opened.caches is None:
                self._step(cluster, cluster_state.ClientFailed(link.number, str(error)))
            else:
                log.error("unexpected exception", cluster=cluster.name, exc_info=error)
                self._step(cluster, cluster_state.Crashed(link.number))

    def __repr__(self) -> str:
        words = Counter(cluster.state.connection.word for cluster in self)
        counts = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
        return f"<ClusterPool {len(self._clusters)} clusters{counts and ': ' + counts}>"
