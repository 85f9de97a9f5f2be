"""Workloads: read the caches into a snapshot, plan, perform."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import attrs
import structlog

from multikueue.adapters import AdapterRegistry, JobKind
from multikueue.core.config.admission_check import clusters
from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import Owner, cluster_name, nominated, owner
from multikueue.core.workload.effects import Announce
from multikueue.core.workload.hearing import unsure_until
from multikueue.core.workload.plan import plan
from multikueue.core.workload.snapshot import JobCopy, PlanSettings, Snapshot, Worker
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.worker_executor import WorkerExecutor
from multikueue.runtime.worker_informers import WorkerInformers
from multikueue.runtime.worker_pool import WorkerCluster, WorkerPool

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class WorkloadReconciler:
    """Carries out `multikueue.core.workload.plan` for one Workload at a time."""

    manager: ManagerCluster
    workers: WorkerPool
    adapters: AdapterRegistry
    executor: WorkerExecutor
    settings: PlanSettings
    dispatcher: Dispatcher
    clock: Callable[[], datetime]
    quiet_for: Callable[[ObjectKey], timedelta]
    """How long nothing of a Workload has changed."""
    _problems: dict[ObjectKey, tuple[str, ...]] = attrs.field(factory=dict, init=False)

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        # NO await between the snapshot and the first effect: the decision is about what the caches show now.
        snapshot = self.snapshot(key)
        decision = plan(snapshot, self.clock(), self.settings, self.dispatcher)
        self._tell(key, decision.problems)
        effects = (*decision.effects, *self._faults(snapshot, decision.problems))
        if effects:
            log.debug("plan", row=decision.row, effects=[type(effect).__name__ for effect in effects])
            await self.executor.perform(key, snapshot.workload, effects)
        return Action.earliest(decision.look_again)

    def _tell(self, key: ObjectKey, problems: tuple[str, ...]) -> None:
        """Log rules that fail for this job, once; its user is told by events."""
        for problem in problems:
            if problem not in self._problems.get(key, ()):
                log.warning("rule failed", workload=str(key), error=problem)
        self._problems.pop(key, None)
        if problems:
            self._problems[key] = problems

    def _faults(self, snapshot: Snapshot, told: tuple[str, ...]) -> Iterator[Announce]:
        """What the job's row raised where no decision asked it, unless that was told already."""
        if snapshot.workload is None or snapshot.check is None or snapshot.adapter is None:
            return
        cache = self.manager.cache_of(snapshot.adapter.resource.gvk)
        found = [cache.faults.of(ObjectKey.of(job)) for job in snapshot.jobs.values()] if cache else []
        for worker in snapshot.workers:
            remote = self.workers.get(worker.name)
            session = remote.informers if remote is not None else None
            for copy in (*worker.jobs, *worker.shared):
                seen = session.cache_of(copy.resource.gvk) if session is not None else None
                found += [seen.faults.of(ObjectKey.of(copy.object))] if seen is not None else []
        for problem in dict.fromkeys(itertools.chain.from_iterable(found)):
            if problem not in told:
                yield Announce("Warning", problem)

    def snapshot(self, key: ObjectKey) -> Snapshot:
        """Everything the caches know about one Workload."""
        workload = self.manager.workloads.get(key)
        owned_by = owner(workload) if workload is not None else self._former_owner(key)
        siblings = tuple(self.manager.siblings(key, owned_by)) if owned_by is not None else ()
        if workload is None:
            return Snapshot(key, None, siblings=siblings, workers=tuple(self._workers(key, None, owned_by)))
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
            running_for=self.workers.running_for,
            quiet_for=self.quiet_for(key),
            siblings=siblings,
            workers=tuple(self._workers(key, self.manager.config_of(check), owned_by)),
        )

    def _in_vain(self, kind: JobKind | None, jobs: Iterable[Json]) -> dict[str, Json]:
        cache = self.manager.cache_of(kind.resource.gvk) if kind is not None else None
        if cache is None:
            return {}
        found = ((job["metadata"]["name"], cache.in_vain(ObjectKey.of(job))) for job in jobs)
        return {name: patch for name, patch in found if patch is not None}

    def _former_owner(self, key: ObjectKey) -> Owner | None:
        """The owner of a Workload that is gone, as its copies tell, or a job that names it."""
        for session in (remote.informers for remote in self.workers if remote.informers is not None):
            copy = session.workloads.get(key)
            if copy is not None and (found := owner(copy)) is not None:
                return found
            for gvk, cache in session.jobs.items():
                for job in cache.of(key):
                    return Owner(gvk, job["metadata"]["name"])
        return None

    def _workers(self, key: ObjectKey, config: Json | None, owned_by: Owner | None) -> Iterator[Worker]:
        configured = clusters(config) if config is not None else []
        known: dict[str, WorkerCluster] = {remote.name: remote for remote in self.workers}
        for name in configured:
            if name in known:
                yield self._worker(known[name], key, owned_by, configured=True)
            elif self._is_new(name):
                yield Worker(ClusterName(name), False, serves_kind=False, known=False, awaited=True)
        for name in sorted(set(known).difference(configured)):
            yield self._worker(known[name], key, owned_by, configured=False)
        workload = self.manager.workloads.get(key)
        for name in sorted(set(nominated(workload) if workload is not None else ()).difference(known, configured)):
            if self._is_new(name):  # an earlier process may have left the job there
                yield Worker(ClusterName(name), False, False, serves_kind=False, known=False, awaited=True)
        assigned = cluster_name(workload) if workload is not None else None
        if assigned is not None and assigned not in known and not (assigned in configured and self._is_new(assigned)):
            yield self._forgotten(ClusterName(assigned), configured=assigned in configured)

    def _worker(self, remote: WorkerCluster, key: ObjectKey, owned_by: Owner | None, *, configured: bool) -> Worker:
        kind = self.adapters.get(owned_by.gvk) if owned_by is not None else None
        workload_only = kind is not None and kind.workload_only
        found = _worker(remote, key, owned_by, configured=configured, workload_only=workload_only)
        starting, removing = self.executor.starting(remote.name, key), self.executor.removing(remote.name, key)
        unsure_for = self._unsure_for(found, key)
        if not starting and not removing and unsure_for is None:
            return found
        return attrs.evolve(found, starting=starting, removing=removing, unsure_for=unsure_for)

    def _unsure_for(self, worker: Worker, key: ObjectKey) -> timedelta | None:
        found = self.executor.unsure_for(worker.name, key)
        if found is None or found < unsure_until(worker, self.settings.worker_lost_timeout):
            return found
        self.executor.settled(worker.name, key)
        return None

    def _is_new(self, name: str) -> bool:
        """Whether a cluster that nobody serves yet is going to be: its controller has yet to look at it."""
        cluster = self.manager.clusters.get(ObjectKey("", name))
        return cluster is not None and not is_terminating(cluster)

    def _forgotten(self, name: ClusterName, *, configured: bool) -> Worker:
        """A worker whose MultiKueueCluster is gone: its job may run on, so it is lost, not empty."""
        lost_since = self.workers.lost_since(name)
        return Worker(name, False, configured, serves_kind=False, known=False, lost_since=lost_since)


def _worker(
    remote: WorkerCluster,
    key: ObjectKey,
    owned_by: Owner | None,
    *,
    configured: bool,
    workload_only: bool,
) -> Worker:
    session = remote.informers
    gvk = owned_by.gvk if owned_by is not None else None
    if session is None:
        return Worker(
            remote.name,
            False,
            configured,
            serves_kind=workload_only,
            known=False,
            awaited=remote.awaited(gvk),
            lost_since=remote.connection.lost_since,
        )
    jobs = tuple(JobCopy(cache.informer.resource, job) for cache in session.jobs.values() for job in cache.of(key))
    shared = tuple(_shared(session, key, owned_by, jobs)) if owned_by is not None else ()
    workload = session.workloads.get(key)
    blocked_for = _blocked_for(session, key, gvk, workload, (*jobs, *shared))
    return Worker(
        remote.name,
        remote.reachable,
        configured,
        serves_kind=workload_only or (gvk is not None and session.synced(gvk)),
        known=remote.knows(gvk),
        awaited=remote.awaited(gvk),
        blocked=blocked_for is not None or session.is_flawed(gvk),
        blocked_for=blocked_for,
        unserved_for=session.unserved_for(gvk),
        lost_since=remote.connection.lost_since,
        workload=workload,
        jobs=jobs,
        shared=shared,
    )


def _shared(session: WorkerInformers, key: ObjectKey, owned_by: Owner, own: Sequence[JobCopy]) -> Iterator[JobCopy]:
    """The owner's job, where it names another Workload of the owner or none."""
    cache = session.cache_of(owned_by.gvk)
    job = cache.get(ObjectKey(key.namespace, owned_by.name)) if cache is not None else None
    if cache is not None and job is not None and all(copy.object is not job for copy in own):
        yield JobCopy(cache.informer.resource, job)


def _blocked_for(
    session: WorkerInformers, key: ObjectKey, gvk: GVK | None, workload: Json | None, jobs: Sequence[JobCopy]
) -> timedelta | None:
    cache = session.cache_of(gvk) if gvk is not None else None
    own = [ObjectKey.of(copy.object) for copy in jobs]
    blocks = [
        session.create_conflicts.block(WORKLOAD, key, own=() if workload is None else (key,)),
        session.create_conflicts.block(cache.informer.resource, key, own=own) if cache is not None else None,
    ]
    longest = max((seconds for seconds in blocks if seconds is not None), default=None)
    return timedelta(seconds=longest) if longest is not None else None
