"""Reading the caches into the snapshot that a decision looks at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

import attrs

from multikueue.adapters import AdapterRegistry, SafeAdapter
from multikueue.core.config.admission_check import clusters
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, is_terminating, labels_of
from multikueue.core.model.workloads import Owner, attempt, cluster_name, nominated, owner
from multikueue.core.workload.earlier_attempts import LATE_CREATION
from multikueue.core.workload.snapshot import (
    Connected,
    Connecting,
    Idle,
    JobCopy,
    Kind,
    Lost,
    Reach,
    Refusal,
    Served,
    Snapshot,
    Syncing,
    Unanswered,
    Unserved,
    Unusable,
    Worker,
)
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.remote import RemoteCluster
from multikueue.runtime.remotes import RemotePool
from multikueue.runtime.session import Session
from multikueue.runtime.worker_executor import WorkerExecutor
from multikueue.runtime.workload_memory import WorkloadMemory


@attrs.frozen(eq=False)
class SnapshotReader:
    """Reads what the caches, the executor and this process's memory know about one Workload."""

    manager: ManagerCluster
    remotes: RemotePool
    adapters: AdapterRegistry
    executor: WorkerExecutor
    memory: WorkloadMemory

    def read(self, key: ObjectKey) -> Snapshot:
        """Everything known about one Workload."""
        workload = self.manager.workloads.get(key)
        owned_by = owner(workload) if workload is not None else self._former_owner(key)
        siblings = tuple(self.manager.siblings(key, owned_by)) if owned_by is not None else ()
        if workload is None:
            return Snapshot(key, None, siblings=siblings, workers=tuple(self._workers(key, None, None, owned_by)))
        self.memory.observe(key, workload)
        check, check_unknown = self.manager.our_check(workload)
        adapter = self.adapters.get(owned_by.gvk) if owned_by else None
        jobs = self.manager.jobs_of(key, workload, owned_by) if owned_by is not None else {}
        return Snapshot(
            key,
            workload,
            check=check,
            check_unknown=check_unknown,
            adapter=adapter,
            jobs=jobs,
            in_vain=self._in_vain(adapter, jobs.values()),
            last_worker=self.memory.last_worker(key),
            running_for=self.remotes.running_for,
            quiet_for=self.memory.quiet_for(key),
            siblings=siblings,
            workers=tuple(self._workers(key, workload, self.manager.config_of(check), owned_by)),
        )

    def _in_vain(self, kind: SafeAdapter | None, jobs: Iterable[Json]) -> dict[str, Json]:
        cache = self.manager.cache_of(kind.resource.gvk) if kind is not None else None
        if cache is None:
            return {}
        found = ((job["metadata"]["name"], cache.in_vain(ObjectKey.of(job))) for job in jobs)
        return {name: patch for name, patch in found if patch is not None}

    def _former_owner(self, key: ObjectKey) -> Owner | None:
        """The owner of a Workload that is gone, as its copies tell, or a job that names it."""
        for session in (remote.session for remote in self.remotes if remote.session is not None):
            copy = session.workloads.get(key)
            if copy is not None and (found := owner(copy)) is not None:
                return found
            for gvk, cache in session.jobs.items():
                for job in cache.of(key):
                    return Owner(gvk, job["metadata"]["name"])
        return None

    def _workers(
        self, key: ObjectKey, workload: Json | None, config: Json | None, owned_by: Owner | None
    ) -> Iterator[Worker]:
        """All workers that may matter: those of the config first, then all others, then those that are not known."""
        configured = clusters(config) if config is not None else []
        known: dict[str, RemoteCluster] = {remote.name: remote for remote in self.remotes}
        for name in (*configured, *sorted(set(known).difference(configured))):
            if name in known:
                worker = view(known[name], key, owned_by, self._workload_only(owned_by), configured=name in configured)
                yield self._with_memory(worker, key, workload)
            elif self._is_new(name):
                yield Worker(ClusterName(name), configured=True, reach=Connecting())
        for name in sorted({*_named_by(workload), *filter(None, [self.memory.last_worker(key)])}):
            if name not in known and not (name in configured and self._is_new(name)):
                yield self._forgotten(ClusterName(name), configured=name in configured)

    def _workload_only(self, owned_by: Owner | None) -> bool:
        kind = self.adapters.get(owned_by.gvk) if owned_by is not None else None
        return kind is not None and kind.workload_only

    def _with_memory(self, worker: Worker, key: ObjectKey, workload: Json | None) -> Worker:
        of_attempt = attempt(workload) if workload is not None else ""
        in_flight = self.executor.in_flight(worker.name, key)
        creation = self.memory.creation(worker.name, key, of_attempt)
        settled = isinstance(in_flight, Idle) and worker.in_sight  # what was created would show by now
        if settled and isinstance(creation, Unanswered) and creation.ago > LATE_CREATION:
            self.memory.not_created(worker.name, key)
            creation = self.memory.creation(worker.name, key, of_attempt)
        cluster = self.manager.clusters.get(ObjectKey("", worker.name)) or {}
        labels, annotations = labels_of(cluster), annotations_of(cluster)
        return attrs.evolve(worker, in_flight=in_flight, creation=creation, labels=labels, annotations=annotations)

    def _is_new(self, name: str) -> bool:
        """Whether a cluster that nobody serves yet is going to be: its controller has yet to look at it."""
        cluster = self.manager.clusters.get(ObjectKey("", name))
        return cluster is not None and not is_terminating(cluster)

    def _forgotten(self, name: ClusterName, *, configured: bool) -> Worker:
        """A worker whose MultiKueueCluster is gone, or not looked at yet: its job may run on, so it is not empty."""
        reach = Connecting() if self._is_new(name) else Lost(self.remotes.lost_since(name), seen=False)
        return Worker(name, configured=configured, reach=reach)


def _named_by(workload: Json | None) -> Iterator[str]:
    """The workers that a Workload names: an earlier process may have left something there."""
    if workload is not None:
        yield from nominated(workload)
        if (assigned := cluster_name(workload)) is not None:
            yield assigned


def view(
    remote: RemoteCluster, key: ObjectKey, owned_by: Owner | None, workload_only: bool, *, configured: bool
) -> Worker:
    """What is known of one worker, and what of a Workload lies there.

    Args:
        remote: the worker.
        key: the Workload.
        owned_by: the job behind it.
        workload_only: whether its jobs need not be seen.
        configured: whether the Workload's config lists the worker.
    """
    gvk, session = owned_by.gvk if owned_by is not None else None, remote.session
    reach: Reach = Lost(remote.connection.lost_since, remote.knows(gvk))
    if remote.reachable:
        reach = Connected()
    elif remote.connection.unheard:
        reach = Connecting()
    if session is None:
        return Worker(remote.name, configured=configured, reach=reach)
    jobs = tuple(JobCopy(cache.informer.resource, job) for cache in session.jobs.values() for job in cache.of(key))
    shared = tuple(_shared(session, key, owned_by, jobs)) if owned_by is not None else ()
    workload = session.workloads.get(key)
    return Worker(
        remote.name,
        configured=configured,
        reach=reach,
        kind=Served() if workload_only else _kind(session, owned_by),
        refusal=_refusal(session, key, owned_by, workload, (*jobs, *shared)),
        workload=workload,
        jobs=jobs,
        shared=shared,
    )


def _kind(session: Session, owned_by: Owner | None) -> Kind:
    cache = session.cache_of(owned_by.gvk) if owned_by is not None else None
    if owned_by is None or cache is None:
        return Unserved(seen=False)
    status = cache.informer.status
    if status.failures:
        return Unserved(session.unserved_for(owned_by.gvk) or timedelta(0), status.synced)
    if not status.synced:
        return Syncing()
    return Unusable() if session.is_flawed(owned_by.gvk) else Served()


def _shared(session: Session, key: ObjectKey, owned_by: Owner, own: Sequence[JobCopy]) -> Iterator[JobCopy]:
    """The owner's job, where it names another Workload of the owner or none."""
    cache = session.cache_of(owned_by.gvk)
    job = cache.get(ObjectKey(key.namespace, owned_by.name)) if cache is not None else None
    if cache is not None and job is not None and all(copy.object is not job for copy in own):
        yield JobCopy(cache.informer.resource, job)


def _refusal(
    session: Session, key: ObjectKey, owned_by: Owner | None, workload: Json | None, jobs: Sequence[JobCopy]
) -> Refusal | None:
    """The refusal that lasts longest."""
    conflicts, cache = session.create_conflicts, session.cache_of(owned_by.gvk) if owned_by is not None else None
    own = [ObjectKey.of(copy.object) for copy in jobs]
    found = [
        conflicts.refusal(WORKLOAD, key, own=() if workload is None else (key,)),
        conflicts.refusal(cache.informer.resource, key, own=own) if cache is not None else None,
    ]
    return max((one for one in found if one is not None), key=lambda one: one.left, default=None)
