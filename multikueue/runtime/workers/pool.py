"""The pool of workers, and what is known of each: a cluster pool with `WorkerInformers` as caches."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import anyio.abc
import attrs

from multikueue.core.model.destination import Destination
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.second_names import ClusterNames
from multikueue.core.model.worker_kueue import WorkerKueue
from multikueue.core.model.worker_names import WorkerNames
from multikueue.core.model.worker_states import (
    Connected,
    Connecting,
    Kind,
    Lost,
    Opaque,
    Reach,
    Refusal,
    Served,
    Unserved,
)
from multikueue.core.model.workloads import Owner
from multikueue.core.workload.seen.snapshot import JobCopy
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.cluster_pool import Cluster, ClusterPool, Connect
from multikueue.runtime.loop import loop_time
from multikueue.runtime.target import Target
from multikueue.runtime.workers.informers import WorkerInformers, WorkerSettings
from multikueue.runtime.workers.moved_away import Loss, Suspects
from multikueue.runtime.workers.too_full import NamedCopies

log = get_logger(__name__)

REMOVED: Final = 100
"""Removed workers for each of which it is remembered since when it is lost. Their Workloads name them still."""

WorkerCluster: TypeAlias = Cluster[WorkerInformers]
"""One worker. What is known of it may be from before it was lost."""
FindNames: TypeAlias = Callable[[Mapping[str, str], Collection[frozenset[str]]], ClusterNames]


@attrs.frozen
class WorkerView:
    """What the caches of a worker show of one Workload, and of the worker itself."""

    reach: Reach
    kind: Kind = attrs.field(default=Served())
    namespace: str = ""
    """Where its copies are, or are looked for."""
    workload: Json | None = None
    jobs: tuple[JobCopy, ...] = ()
    """Those that name it."""
    shared: tuple[JobCopy, ...] = ()
    """The owner's, where they name another Workload of it or none."""
    refusal: Refusal | None = None
    is_manager: bool = False
    failed: int = 0
    kueue: WorkerKueue = attrs.field(default=WorkerKueue())


def view_of(worker: WorkerCluster, key: ObjectKey, owned_by: Owner | None, *, namespace: str | None) -> WorkerView:
    """What the caches of a worker show of a Workload.

    Args:
        worker: as it is now.
        key: the Workload.
        owned_by: the job behind it.
        namespace: in which one its copies are there; None: that of any which say that they are of this Workload.
    """
    if namespace is None and (named := named_copies(worker, key)) is not None:
        kind = Served() if named.is_known else Unserved(seen=False)
        return WorkerView(Connected(), kind, named.namespace, named.workload, named.jobs, named.shared)
    gvk, informers = owned_by.gvk if owned_by is not None else None, worker.known
    if informers is None:
        return WorkerView(_reach(worker, seen=False), namespace=namespace or "")
    there = informers.place_of(key, namespace)
    own, shared = informers.jobs_of(key, owned_by, there)
    workload = informers.workload_of(key, there)
    return WorkerView(
        _reach(worker, seen=informers.have_read(gvk)),
        informers.kind(gvk),
        there,
        workload,
        own,
        shared,
        informers.refusal(key, gvk, workload, (*own, *shared)),
        is_manager(worker),
        informers.failed_in(there),
        informers.kueue.known,
    )


def named_copies(worker: WorkerCluster, key: ObjectKey) -> NamedCopies | None:
    """What of a Workload that is gone was read by name, on a worker that has too much to be listed."""
    caches = worker.caches if worker.connection.unreadable else ()
    return next((copies for informers in caches if (copies := informers.full.copies.get(key)) is not None), None)


def target_on(worker: WorkerCluster | None) -> Target | None:
    """Where effects are executed on a worker; None: it is not connected. One that cannot be listed is written to, too:
    what is planned there was read by name."""
    if worker is None:
        return None
    return next(iter(worker.caches), None) if worker.connection.unreadable else worker.usable


def _reach(worker: WorkerCluster, *, seen: bool) -> Reach:
    if worker.connection.connected and (worker.known is None or worker.known.identity.is_settled):
        return Connected()
    if worker.connection.connected:
        return Connecting()
    if worker.connection.unreadable:
        return Opaque(seen)
    return Connecting() if worker.connection.unheard else Lost(worker.connection.lost_since, seen)


def workloads_on(worker: WorkerCluster) -> Iterator[ObjectKey]:
    """The Workloads with copies there, or with jobs."""
    return worker.known.keys() if worker.known is not None else iter(())


def is_manager(worker: WorkerCluster | None) -> bool:
    """Whether a worker is known to be the manager itself."""
    return worker is not None and worker.known is not None and worker.known.identity.is_manager is True


def names_on(worker: WorkerCluster | None, cluster: Json) -> WorkerNames:
    """How namespaces and queues are called on a worker, as its MultiKueueCluster says."""
    return WorkerNames.of(annotations_of(cluster), of_manager=is_manager(worker))


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
    suspects: Callable[[Loss], Suspects] | None = None
    """Finds what may be on a lost worker that must not run there any more; None: nobody looks for it first."""
    clusters: ClusterPool[WorkerInformers] = attrs.field(init=False)
    find_names: FindNames = lambda _uids, _shown: ClusterNames()
    """Finds those that lead to one cluster: of the UIDs that are known, and the pairs of which one has shown what was
    made through the other."""
    names: ClusterNames = attrs.field(factory=ClusterNames, init=False)
    """Those that lead to one cluster, as far as is known."""
    _shown: set[frozenset[str]] = attrs.field(factory=set, init=False)
    _destinations: dict[str, Destination] = attrs.field(factory=dict, init=False)
    """Where the workers lead, or led when they were connected last."""
    _moved: dict[str, datetime] = attrs.field(factory=dict, init=False)
    """Since when workers lead to another cluster than before, or may; by `ClusterPool.times`."""
    _reported: dict[str, object] = attrs.field(factory=dict, init=False)
    """By worker, what was known when `on_cluster` was called last."""
    _removed: dict[str, datetime | None] = attrs.field(factory=dict, init=False)
    """Since when the workers are lost that the manager does not know any more, in the order in which they went; by
    `ClusterPool.times`."""
    _removed_before: datetime | None = attrs.field(default=None, init=False)
    """The latest of those times that are not in `_removed` any more."""
    _detached: dict[str, datetime] = attrs.field(factory=dict, init=False)
    """Since when workers are being detached, by the manager's clock."""
    _let_go: dict[str, datetime] = attrs.field(factory=dict, init=False)
    """When the MultiKueueClusters of detached workers went, likewise."""
    _losses: dict[ClusterName, tuple[datetime, Suspects]] = attrs.field(factory=dict, init=False)
    """Of the lost workers: since when they are, by `ClusterPool.times`, and what may be there."""
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
        return iter(self.clusters)

    def get(self, name: str) -> WorkerCluster | None:
        """The worker of that name."""
        return self.clusters.get(name)

    @property
    def running_for(self) -> timedelta:
        """How long workers have had time to answer."""
        return timedelta(seconds=max(0.0, loop_time() - self._started))

    def lost_since(self, name: str) -> datetime | None:
        """Since when a worker is lost that the manager does not know: as far as this process can tell.

        Rather too late than too early: then it is waited for a little longer.
        """
        times = self.clusters.times
        latest = max(filter(None, (times.now() - self.running_for, self._removed_before)))
        since = self._removed.get(name) if name in self._removed else latest
        return None if since is None else since + times.step()

    def note_detached(self, name: str, at: datetime | None) -> bool:
        """Note that a worker is being detached since some time, as its MultiKueueCluster says; None: it is not.

        Returns:
            Whether that is new.
        """
        before, worker = self._detached.pop(name, None), self.get(name)
        if at is not None:
            self._detached[name] = at
        if before != at and worker is not None:
            self.on_cluster(worker, True)  # no event of a Workload tells
        return at is not None and before is None

    def note_gone(self, name: str) -> None:
        """Note that the MultiKueueCluster of a worker is gone."""
        if self._detached.pop(name, None) is not None:
            self._let_go[name] = self.clock()

    def counts_from(self, name: str, lost_since: datetime | None) -> datetime | None:
        """From when the time counts after which a lost worker's jobs run elsewhere; None: it does not.

        Who detaches a cluster takes our credentials first. One that answered until then runs its jobs, and its time
        begins when it is gone; one that was lost before is dead, as a rule, and its time goes on.
        """
        detached, gone = self._detached.get(name), self._let_go.get(name)
        if lost_since is None or (detached is not None and lost_since >= detached):
            return None
        return lost_since if gone is None else max(lost_since, gone)

    def _patience(self, name: ClusterName, failing_since: float | None) -> float:
        """See `WorkerSettings.patience`."""
        worker = self.get(name)
        lost = self.counts_from(name, worker.connection.lost_since) if worker is not None else None
        ages = [loop_time() - failing_since] if failing_since is not None else []
        ages += [(self.clock() - lost).total_seconds()] if lost is not None else []
        return self.settings.lost_after.total_seconds() - max(ages, default=-math.inf)

    def follow_figures(self, changed: Callable[[ClusterName], None]) -> None:
        """Keep the queues of all workers, with their figures; before `run`.

        Args:
            changed: called when a queue of a worker, or a cohort, changes.
        """
        followers = (*filter(None, [self.settings.on_figures]), changed)

        def tell(name: ClusterName) -> None:
            for follower in followers:
                follower(name)

        self.settings = attrs.evolve(self.settings, on_figures=tell)

    def follow_queues(self, name: str) -> None:
        """Keep the queues of a worker, too, now and under later configurations."""
        self._with_queues.add(name)
        cluster = self.clusters.get(name)
        for informers in cluster.caches if cluster is not None else ():
            informers.follow_queues()

    def _informers(
        self, name: ClusterName, client: ApiClient, earlier: WorkerInformers | None, report: Callable[[], None]
    ) -> WorkerInformers:
        settings = attrs.evolve(self.settings, suspects=self._suspects, patience=self._patience)
        informers = WorkerInformers.build(name, client, settings, report, earlier)
        if name in self._with_queues or self.settings.on_figures is not None:
            informers.follow_queues()
        return informers

    def _suspects(self, name: ClusterName) -> Suspects | None:
        """What may be on a lost worker that must not run there any more: one value for each loss; None: it is not."""
        worker, before = self.clusters.get(name), self._losses.pop(name, None)
        since = worker.state.connection.lost_since if worker is not None else None
        if worker is None or since is None or self.suspects is None:
            return None
        known = worker.known if worker.known is not None and worker.known.have_read(None) else None
        loss = Loss(name, since + self.clusters.times.step(), known)
        same = before is not None and (before[0], before[1].loss.known) == (since, loss.known)
        noted = self._losses[name] = before if before is not None and same else (since, self.suspects(loss))
        return noted[1]

    def _changed(self, worker: WorkerCluster) -> None:
        connection, known = worker.connection, self.clusters.get(worker.name) is worker
        if not known:
            self._note_removed(worker.name, worker.state.connection.lost_since)
            self._losses.pop(worker.name, None)
        reach = (connection.connected, connection.unheard, connection.unreadable, connection.lost_since)
        facts = (*reach, known, worker.usable)
        shown = worker.known.shown if worker.known is not None else ()
        before, now = self._reported.pop(worker.name, None), (*facts, worker.known, *shown)
        if known:
            self._reported[worker.name] = now
        if before == now:
            self.on_status(worker)
        else:
            self._note_clusters()
            self.on_cluster(worker, known)

    def is_identified(self, name: str) -> bool:
        """Whether this process knows, or has known, which cluster a worker leads to."""
        return bool((destination := self._destinations.get(name)) is not None and destination.uid)

    def destination(self, name: str) -> Destination | None:
        """Where a worker leads, or led when it was connected last; None: it never was, or was removed since."""
        return self._destinations.get(name)

    def moved_since(self, name: str) -> datetime | None:
        """Since when a worker leads, or may lead, to another cluster than before; None: it does not.

        One that was removed, and made again for another cluster, does since the former one was lost.
        """
        since = self._moved.get(name, self._removed.get(name))
        return None if since is None else since + self.clusters.times.step()

    def _note_clusters(self) -> None:
        """Note which clusters the workers lead to; have all told of which that says something else."""
        for worker in self:
            if worker.connection.connected and worker.known is not None:
                self._note_destination(worker.name, Destination(worker.known.identity.uid, worker.server))
        self.note_names()

    def note_names(self) -> None:
        """Note which workers lead to one cluster; have all planned, or told of, for which that has changed."""
        # One that is not connected counts as what it was.
        uids = {name: destination.uid for name, destination in self._destinations.items() if destination.uid}
        before, self.names = self.names, self.find_names(uids, self._shown)
        if before == self.names:
            return
        for worker in self:
            if self.names.seconds.get(worker.name) != before.seconds.get(worker.name):
                self.on_cluster(worker, True)
            elif self.names.same_as(worker.name) != before.same_as(worker.name):
                self.on_status(worker)

    def note_shown(self, pair: frozenset[str]) -> None:
        """Note that one of two workers has shown what was made through the other: they are one cluster."""
        log.warning("they are one cluster, whatever is said of them", clusters=sorted(pair))
        self._shown.add(pair)
        self.note_names()

    def _note_destination(self, name: str, now: Destination) -> None:
        before = self._destinations.get(name)
        if before is not None and not before.is_same(now):
            log.warning("it leads to another cluster, or may: what the former one runs counts as lost", cluster=name)
            self._moved[name] = self.clusters.times.now()
            self._shown = {pair for pair in self._shown if name not in pair}
        self._destinations[name] = now

    def _note_removed(self, name: str, lost_since: datetime | None) -> None:
        self._with_queues.discard(name)
        self._destinations.pop(name, None)
        self._moved.pop(name, None)
        self._shown = {pair for pair in self._shown if name not in pair}
        self._removed.pop(name, None)
        self._removed[name] = lost_since
        if len(self._removed) > REMOVED:
            first = next(iter(self._removed))
            self._let_go.pop(first, None)
            oldest = self._removed.pop(first)
            losses = [since for since in (oldest, self._removed_before) if since is not None]
            self._removed_before = max(losses, default=None)

    def _replaced(self, earlier: WorkerInformers, now: WorkerInformers | None) -> None:
        """Have Workloads reconciled whose copies may be gone with the caches."""
        if now is not None:
            now.inherit(earlier)
        for key in list(earlier.keys()):
            self.settings.on_workload(earlier.name, key, 0.0)

    def __repr__(self) -> str:
        return f"<WorkerPool of {self.clusters!r}>"
