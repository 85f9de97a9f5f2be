"""Workloads: read the caches into a snapshot, plan, execute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import attrs

from multikueue.adapters import AdapterRegistry
from multikueue.core.config.admission_check import clusters
from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.machinery.action import Action
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import Owner, attempt, cluster_name, nominated, owner
from multikueue.core.workload.earlier_attempts import LATE_CREATION, noted_worker
from multikueue.core.workload.plan import plan
from multikueue.core.workload.snapshot import Connecting, Idle, Lost, PlanSettings, Snapshot, Unanswered, Worker
from multikueue.logs import get_logger
from multikueue.runtime.job_event_handlers import log_problems
from multikueue.runtime.manager_cluster import ManagerCluster, check_names
from multikueue.runtime.worker_executor import WorkerExecutor
from multikueue.runtime.worker_pool import WorkerCluster, WorkerPool, view
from multikueue.runtime.workload_memory import WorkloadMemory

log = get_logger(__name__)


@attrs.frozen(eq=False)
class SnapshotReader:
    """Reads what the caches, the executor and this process's memory know about one Workload."""

    manager: ManagerCluster
    workers: WorkerPool
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
        check, check_unknown = self.manager.our_check(check_names(workload))
        jobs = self.manager.jobs_of(key, workload, owned_by) if owned_by is not None else {}
        return Snapshot(
            key,
            workload,
            check=check,
            check_unknown=check_unknown,
            adapter=self.adapters.get(owned_by.gvk) if owned_by is not None else None,
            missing_setting=self.adapters.missing_setting(owned_by.gvk) if owned_by is not None else "",
            jobs=jobs,
            in_vain=self._in_vain(owned_by, jobs),
            last_worker=self.memory.last_worker(key),
            running_for=self.workers.running_for,
            quiet_for=self.memory.quiet_for(key),
            siblings=siblings,
            workers=tuple(self._workers(key, workload, self.manager.config_of(check), owned_by)),
        )

    def _in_vain(self, owned_by: Owner | None, jobs: dict[str, Json]) -> dict[str, Json]:
        cache = self.manager.cache_of(owned_by.gvk) if owned_by is not None else None
        found = {name: cache.in_vain(ObjectKey.of(job)) for name, job in jobs.items()} if cache is not None else {}
        return {name: patch for name, patch in found.items() if patch is not None}

    def _former_owner(self, key: ObjectKey) -> Owner | None:
        """The owner of a Workload that is gone, from its copies, or from a job that names it."""
        known = (worker.known for worker in self.workers if worker.known is not None)
        return next((found for informers in known if (found := informers.owner_of(key)) is not None), None)

    def _workers(
        self, key: ObjectKey, workload: Json | None, config: Json | None, owned_by: Owner | None
    ) -> Iterator[Worker]:
        """All workers that may matter: those of the config first, then all others, then those that are not known."""
        configured = clusters(config) if config is not None else []
        of_attempt = attempt(workload) if workload is not None else ""
        known: dict[str, WorkerCluster] = {worker.name: worker for worker in self.workers}
        kind = self.adapters.get(owned_by.gvk) if owned_by is not None else None
        workload_only = kind is None or kind.traits.workload_only
        for name in (*configured, *sorted(set(known).difference(configured))):
            source = self._source(name)
            if name in known:
                cluster = known[name]
                worker = view(
                    cluster,
                    key,
                    owned_by,
                    configured=name in configured and source is not None,  # a removed one is kept while it runs jobs
                    workload_only=workload_only,
                    in_flight=self.executor.in_flight(cluster.name, key),
                    creation=self.memory.creation(cluster.name, key, of_attempt),
                    source=source or {},
                )
                yield self._all_shown(worker, key, of_attempt)
            elif source is not None:
                yield Worker(ClusterName(name), configured=True, reach=Connecting())
        for name in sorted({*_named_by(workload), *filter(None, [self.memory.last_worker(key)])}):
            exists = self._source(name) is not None
            if name not in known and not (name in configured and exists):
                # Its MultiKueueCluster is gone, or not reconciled yet: its job may still run there.
                reach = Connecting() if exists else Lost(self.workers.lost_since(name), seen=False)
                yield Worker(ClusterName(name), configured=name in configured, reach=reach)

    def _all_shown(self, worker: Worker, key: ObjectKey, of_attempt: str) -> Worker:
        """Forget creations without an answer that would show by now."""
        settled = isinstance(worker.in_flight, Idle) and worker.in_sight  # its informer would show a created job by now
        if settled and isinstance(worker.creation, Unanswered) and worker.creation.ago > LATE_CREATION:
            self.memory.all_shown(worker.name, key)
            return attrs.evolve(worker, creation=self.memory.creation(worker.name, key, of_attempt))
        return worker

    def _source(self, name: str) -> Json | None:
        """The MultiKueueCluster, unless it is gone or going; one that is not in the pool is not reconciled yet."""
        cluster = self.manager.clusters.get(ObjectKey("", name))
        return None if cluster is None or is_terminating(cluster) else cluster


@attrs.define(eq=False)
class WorkloadReconciler:
    """Executes `multikueue.core.workload.plan` for one Workload at a time."""

    reader: SnapshotReader
    executor: WorkerExecutor
    settings: PlanSettings
    dispatcher: Dispatcher
    clock: Callable[[], datetime]

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        # NO await between the snapshot and the first effect: the decision is about what the caches show now.
        try:
            snapshot = self.reader.read(key)
            decision = plan(snapshot, self.clock(), self.settings, self.dispatcher)
        except Exception:
            self.executor.withdraw(key)  # others may have the places that are kept for it
            raise
        log_problems(self.reader.adapters.problems)
        if decision.effects:
            log.debug("plan", row=decision.row, effects=[type(effect).__name__ for effect in decision.effects])
        await self.executor.execute(key, snapshot.workload, decision.effects)
        return Action.earliest(decision.look_again)


def _named_by(workload: Json | None) -> Iterator[str]:
    """The workers that a Workload names: an earlier process may have created copies there."""
    if workload is not None:
        yield from nominated(workload)
        if (assigned := cluster_name(workload)) is not None:
            yield assigned
        if (noted := noted_worker(workload)) is not None:
            yield noted
