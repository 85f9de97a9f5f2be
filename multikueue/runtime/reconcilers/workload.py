"""Workloads: read the caches into a snapshot, plan, execute."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.adapters import AdapterRegistry
from multikueue.core.config.admission_check import clusters
from multikueue.core.dispatchers.dispatcher import Dispatcher, Figures, Waiting
from multikueue.core.effect_words import describe
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import POD
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, namespace_of
from multikueue.core.model.worker_names import namespace_on, unreadable_places
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import Owner, cluster_name, has_quota
from multikueue.core.workload.effects import AnnounceWorkload, PatchJobStatus, Plan
from multikueue.core.workload.facts.graces import LATE_CREATION
from multikueue.core.workload.facts.snapshot import PlanSettings, Snapshot, Worker, hidden
from multikueue.core.workload.facts.worker_states import Connecting, Idle, Lost, Served, Syncing, Unanswered, Unwatched
from multikueue.core.workload.guarded_plan import GuardedPlan, guarded_plan
from multikueue.logs import get_logger
from multikueue.protocols import ManagerHook
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.stopped_jobs import StoppedJob, stopped_job
from multikueue.runtime.caches.workload_indexes import check_names, named_by, named_by_slices
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.job_event_handlers import log_problems
from multikueue.runtime.loop import loop_time
from multikueue.runtime.reconcilers.bodies import Bodies, with_bodies, without_bodies
from multikueue.runtime.reconcilers.unreadable import unreadable_job, unreadable_workload, without_unreadable
from multikueue.runtime.workers.executor import WorkerExecutor
from multikueue.runtime.workers.pool import WorkerCluster, WorkerPool, named_copies, names_on, view

log = get_logger(__name__)

BEHIND: Final = 0.5
"""Seconds after which the caches show what a body was read with."""


@attrs.frozen(eq=False)
class SnapshotReader:
    """Reads what the caches, the executor and this process's memory know about one Workload."""

    manager: ManagerCluster
    workers: WorkerPool
    adapters: AdapterRegistry
    executor: WorkerExecutor
    memory: WorkloadMemory
    figures: Figures | None = None
    """Of a dispatcher that looks at them."""
    settings: PlanSettings = attrs.field(factory=PlanSettings)

    def read(self, key: ObjectKey) -> Snapshot:
        """Everything known about one Workload."""
        workload = self.manager.workloads.informer.unreadable.outlines.get(key) or self.manager.workloads.get(key)
        stopped = stopped_job(self.manager, self.adapters, key) if workload is None else None
        owned_by = WORKLOADS.of(workload).owner if workload is not None else self._former_owner(key, stopped)
        if unreadable := unreadable_workload(self.manager, key, owned_by) or unreadable_places(workload or {}):
            return Snapshot(key, workload, unreadable=unreadable)
        siblings = tuple(self.manager.siblings(key, owned_by)) if owned_by is not None else ()
        if workload is None:
            found = tuple(self._workers(key, None, None, owned_by))
            was_here, last = self.memory.was_here(key, found), self.memory.last_worker(key)
            kind = self.adapters.get(owned_by.gvk) if owned_by is not None else None
            gone = Snapshot(
                key, None, adapter=kind, siblings=siblings, workers=found, was_here=was_here, last_worker=last
            )
            if stopped is None:
                return gone
            in_vain, refused_for = self._refused(owned_by, {name_of(stopped.object): stopped.object})
            return attrs.evolve(stopped.shown(gone), in_vain=in_vain, refused_for=refused_for)
        self.memory.observe(key, workload)
        check, check_unknown = self.manager.our_check(check_names(workload))
        unreadable = unreadable_job(self.manager, key, workload, owned_by) if owned_by is not None else ""
        jobs = self.manager.jobs_of(key, workload, owned_by) if owned_by is not None and not unreadable else {}
        config, (in_vain, refused_for) = self.manager.config_of(check), self._refused(owned_by, jobs)
        seen = Snapshot(
            key,
            workload,
            check=check,
            check_unknown=check_unknown,
            config=name_of(config) if config is not None else "",
            adapter=self.adapters.get(owned_by.gvk) if owned_by is not None else None,
            missing_setting=self.adapters.missing_setting(owned_by.gvk) if owned_by is not None else "",
            unreadable_job=unreadable,
            jobs=jobs,
            in_vain=in_vain,
            refused_for=refused_for,
            last_worker=self.memory.last_worker(key),
            placement=self.memory.placement(key),
            running_for=self.workers.running_for,
            quiet_for=self.memory.quiet_for(key),
            siblings=siblings,
            workers=tuple(self._workers(key, workload, config, owned_by, jobs, siblings)),
        )
        return seen if self.figures is None else _with_facts(seen, config or {}, self.figures)

    def shown_as_one(self, snapshot: Snapshot) -> frozenset[str] | None:
        """Two workers that are said to be different, if one of them shows what was made for the other."""
        workload, marks, known = snapshot.workload, Marks(self.settings.mark_key), snapshot.worker
        for pair in self.workers.names.apart if workload is not None else ():
            for name, other in itertools.permutations(pair):
                copies = worker.copies if (worker := known(name)) is not None else ()
                if workload and any(marks.proof(copy, workload, other) is Proof.EXACT for copy in copies):
                    return pair
        return None

    def want(self, snapshot: Snapshot) -> None:
        """Have the job's kind watched on the workers where something of the Workload is, or may be."""
        workload, key = snapshot.workload, snapshot.key
        owned_by = WORKLOADS.of(workload).owner if workload is not None else self._former_owner(key)
        named = {*named_by(workload), *filter(None, [self.memory.last_worker(key)])}
        there = {one.name for one in snapshot.workers if one.name in named or one.unreadable or not one.is_empty}
        for informers in (worker.known for worker in self.workers if worker.name in there):
            if informers is not None and owned_by is not None:
                informers.want(owned_by.gvk)

    def _refused(self, owned_by: Owner | None, jobs: dict[str, Json]) -> tuple[dict[str, Json], timedelta]:
        """The patches of jobs that are in vain, and how long all that was sent of one was refused."""
        cache = self.manager.cache_of(owned_by.gvk) if owned_by is not None else None
        if cache is None:
            return {}, timedelta(0)
        keys = {name: ObjectKey.of(job) for name, job in jobs.items()}
        patches = ((name, cache.in_vain(key)) for name, key in keys.items())
        longest = max(map(cache.refusing_for, keys.values()), default=0.0)
        return {name: patch for name, patch in patches if patch is not None}, timedelta(seconds=longest)

    def refused_for(self, snapshot: Snapshot) -> Iterator[float | None]:
        """For how many more seconds each status that was refused is not written: then nothing tells that it may be."""
        adapter = snapshot.adapter
        cache = self.manager.cache_of(adapter.resource.gvk) if adapter is not None else None
        if cache is not None:
            yield from (cache.in_vain_for(ObjectKey.of(snapshot.jobs[name])) for name in snapshot.in_vain)

    def _former_owner(self, key: ObjectKey, stopped: StoppedJob | None = None) -> Owner | None:
        """The owner of a Workload that is gone, from its copies, or from a job that names it."""
        named = (copies.owner for worker in self.workers if (copies := named_copies(worker, key)) is not None)
        known = (worker.known.owner_of(key) for worker in self.workers if worker.known is not None)
        found = (owned_by for owned_by in (*named, *known) if owned_by is not None)
        return next(found, None if stopped is None else stopped.owner)

    def _workers(
        self,
        key: ObjectKey,
        workload: Json | None,
        config: Json | None,
        owned_by: Owner | None,
        jobs: Mapping[str, Json] = MappingProxyType({}),
        siblings: Sequence[Json] = (),
    ) -> Iterator[Worker]:
        """All workers that may matter: those of the config first, then all others, then those that are not known."""
        configured = clusters(config) if config is not None else []
        of_attempt = WORKLOADS.of(workload).attempt if workload is not None else ""
        known: dict[str, WorkerCluster] = {worker.name: worker for worker in self.workers}
        kind = self.adapters.get(owned_by.gvk) if owned_by is not None else None
        workload_only = kind is None or kind.traits.workload_only
        named = {*named_by(workload), *filter(None, [self.memory.last_worker(key)])}
        seconds = self.workers.names.seconds
        for name in (*configured, *sorted(set(known).difference(configured))):
            source = self._source(name)
            if (cluster := known.get(name)) is not None:
                shared = self._shared(cluster, siblings)
                place = self._place(key, workload, jobs, cluster, siblings, shared) if workload is not None else None
                seen = partial(
                    Worker,
                    cluster.name,
                    name in configured and source is not None,  # a removed one is kept while it runs jobs
                    labels_of(source or {}),
                    annotations_of(source or {}),
                    in_flight=self.executor.in_flight(cluster.name, key),
                    creation=self.memory.creation(cluster.name, key, of_attempt),
                    supplied=self.memory.supplied(cluster.name, key),
                    pods=self.memory.pods(cluster.name, key, of_attempt),
                    removed=source is None,
                    namespace_proven=place in shared,
                    second_of=seconds[cluster.name].first if cluster.name in seconds else "",
                    identified=self.workers.is_identified(cluster.name),
                )
                worker = view(cluster, key, owned_by, seen, namespace=place)
                if (informers := cluster.known) is not None:
                    worker = attrs.evolve(worker, kind=Served()) if workload_only else worker  # seen or not
                    worker = without_unreadable(worker, informers, key, owned_by, jobs, workload_only=workload_only)
                if isinstance(worker.reach, Lost):
                    since = self.workers.counts_from(name, worker.reach.since)
                    worker = attrs.evolve(worker, reach=attrs.evolve(worker.reach, since=since))
                worker = self._where_it_was(worker, key, workload) if name in named else worker
                yield self._all_shown(worker, key, of_attempt)
            elif source is not None:
                yield Worker(ClusterName(name), configured=True, reach=Connecting(), identified=False)
        unknown = {*named, *named_by_slices(workload, siblings)}.difference(known)
        yield from self._unknown_workers(sorted(unknown), configured)

    def _unknown_workers(self, names: Iterable[str], configured: Collection[str]) -> Iterator[Worker]:
        """Those that a Workload names: the MultiKueueCluster is gone, or not reconciled; a job may still run there."""
        for name in names:
            exists = self._source(name) is not None
            if not (name in configured and exists):
                reach = Connecting() if exists else Lost(self.workers.lost_since(name), seen=False)
                yield Worker(ClusterName(name), name in configured, reach=reach, removed=not exists, identified=False)

    def _shared(self, cluster: WorkerCluster, siblings: Sequence[Json]) -> Sequence[str]:
        """The namespaces on a worker in which others of a job are, by our marks."""
        if not siblings or cluster.known is None:
            return ()
        return cluster.known.marked_places(siblings, Marks(self.settings.mark_key), cluster.name)

    def _place(
        self,
        key: ObjectKey,
        workload: Json,
        jobs: Mapping[str, Json],
        cluster: WorkerCluster,
        siblings: Sequence[Json],
        shared: Sequence[str],
    ) -> str:
        """The namespace on a worker in which a Workload's copies are: as it says or, where it is not there, of one with
        our mark of this attempt, of others of its job, or of a copy that was made of the job for a former Workload.
        Somebody may have removed or changed what it said, or Kueue has made it anew, and its job runs.

        An earlier attempt's mark counts where nothing is in the namespace that it says, in the namespace that is its
        own there, as it counts where both have one name: anybody there could have written one.
        """
        said, known = namespace_on(workload, cluster.name, siblings), cluster.known
        copies = known.copies_of(key) if known is not None else []
        if known is None or (not shared and all(namespace_of(one) == said for one in copies)):
            return said
        marks, of_attempt = Marks(self.settings.mark_key), WORKLOADS.of(workload).attempt
        proofs = [(namespace_of(one), marks.proof(one, workload, cluster.name, of_attempt)) for one in copies]
        exact = [place for place, proof in proofs if proof is Proof.EXACT]
        former = (namespace_of(one) for one in copies if marks.made_copy(one, jobs.get(name_of(one)), cluster.name))
        if places := exact or shared or [*former]:
            return said if said in places else places[0]
        own = names_on(cluster, self._source(cluster.name) or {}).namespace(key.namespace)
        unreadable = known.workloads.unreadable_note(ObjectKey(said, key.name))
        nothing_here = not unreadable and all(place != said for place, _ in proofs)
        return own if nothing_here and (own, Proof.OTHER) in proofs else said

    def _where_it_was(self, worker: Worker, key: ObjectKey, workload: Json | None) -> Worker:
        """Lost, if the worker had the Workload last and leads to another cluster since: what shows there is not it."""
        now = self.workers.destination(worker.name)
        if workload is None or now is None or worker.name != self.memory.last_worker(key):
            return worker
        recorded, shown = cluster_name(workload) is not None, not worker.is_empty or bool(worker.unreadable)
        if self.memory.leads_there(key, workload, now, shown=shown):
            if not recorded and worker.in_sight and worker.is_empty:
                self.memory.left_destination(key)
            return worker
        since = self.workers.moved_since(worker.name)
        if since is None or (not recorded and self.workers.clock() - since >= self.settings.worker_lost_timeout):
            return worker
        return attrs.evolve(hidden(worker, ""), reach=Lost(since, seen=False), second_of="", identified=False)

    def _all_shown(self, worker: Worker, key: ObjectKey, of_attempt: str) -> Worker:
        """Forget creations without an answer that would show by now. While the kind is unwatched none does: what is
        known of it is from before they were sent."""
        if isinstance(worker.creation, Unanswered) and isinstance(worker.kind, Unwatched):
            return attrs.evolve(worker, kind=Syncing())
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
    """Executes `multikueue.core.workload.guarded_plan` for one Workload at a time."""

    reader: SnapshotReader
    executor: WorkerExecutor
    settings: PlanSettings
    dispatcher: Dispatcher
    clock: Callable[[], datetime]
    hook: ManagerHook | None = None
    bodies: Bodies | None = None
    """None: the caches keep all of every object."""
    _left_out: dict[ObjectKey, dict[ClusterName, str]] = attrs.field(factory=dict, init=False)
    """What was logged of workers that a plan was made without."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        # NO await between the snapshot and the first effect: the decision is about what the caches show now.
        try:
            snapshot = self.reader.read(key)
            if (pair := self.reader.shown_as_one(snapshot)) is not None:
                self.reader.workers.note_shown(pair)
                snapshot = self.reader.read(key)
            self.reader.want(snapshot)
            behind_since = self.reader.memory.looked_at(key)
            guarded = guarded_plan(snapshot, self.clock(), self.settings, self.dispatcher)
        except Exception as error:  # a defect: the controller logs it, and tries again with back-off
            note = f"It cannot be decided what to do ({type(error).__name__}), see the log of the controller"
            workload = self.reader.manager.workloads.get(key)
            await self.executor.execute(key, workload, (AnnounceWorkload("Warning", note),))
            raise
        if self.bodies is not None:
            if self.bodies.lacks(snapshot, guarded.plan):
                return await self._with_bodies(self.bodies, snapshot, guarded.plan)
            self.bodies.unneeded(key)
        return await self._carry_out(snapshot, guarded, behind_since)

    async def _with_bodies(self, bodies: Bodies, slim: Snapshot, plan: Plan) -> Action:
        """Plan again with what the caches do not keep of the Workload and its jobs."""
        key = slim.key
        try:
            read_as = await bodies.take(slim)
            if read_as is None:
                await self.executor.execute(key, slim.workload, (*without_bodies(plan).effects, *bodies.tell(key)))
                return Action.earliest(plan.look_again, bodies.tell_in(key))
            # NO await between this and the first effect.
            snapshot = with_bodies(self.reader.read(key), read_as)
            if snapshot is None:
                return Action.after(BEHIND)
            planned = guarded_plan(snapshot, self.clock(), self.settings, self.dispatcher)
            return await self._carry_out(snapshot, planned, self.reader.memory.looked_at(key))
        finally:
            bodies.planned(key)

    async def _carry_out(self, snapshot: Snapshot, guarded: GuardedPlan, behind_since: float | None) -> Action:
        key, decision = snapshot.key, guarded.plan
        self._log_left_out(key, guarded)
        if self.reader.figures is not None:
            self.reader.figures.planned(key, decision.claim)
        log_problems(self.reader.adapters.problems)
        due = self.reader.memory.pace.due(key, decision, loop_time())
        if due.effects:
            log.debug("plan", row=due.row, effects=[describe(effect) for effect in due.effects])
        await self.executor.execute(key, snapshot.workload, due.effects)
        if behind_since is not None and snapshot.placement is not None and _syncs(decision):
            self._tell_lag(key, snapshot.placement.worker, due, behind_since)
        return Action.earliest(due.look_again, *self.reader.refused_for(snapshot))

    def _tell_lag(self, key: ObjectKey, worker: ClusterName, due: Plan, since: float) -> None:
        """Tell how late the manager shows what has changed on a worker; later, if it is put off."""
        if not _syncs(due):
            self.reader.memory.still_behind(key, since)
        elif self.hook is not None:
            self.hook.status_synced(worker, loop_time() - since)

    def _log_left_out(self, key: ObjectKey, guarded: GuardedPlan) -> None:
        """Log what a worker made the plan raise, once for as long as that lasts."""
        found = {cluster: repr(error) for cluster, error in guarded.left_out.items()}
        logged = self._left_out.pop(key, {})
        for cluster, error in guarded.left_out.items():
            if logged.get(cluster) != found[cluster]:
                log.error("worker left out of a plan", cluster=cluster, exc_info=error)
        if found:
            self._left_out[key] = found


def _with_facts(seen: Snapshot, config: Json, figures: Figures) -> Snapshot:
    """With what its dispatcher knows of a Workload that waits for a worker; of one that has one it is told the pods."""
    workload = seen.workload
    if workload is None or seen.check is None or not has_quota(workload):
        return seen
    queue = ObjectKey(seen.key.namespace, dig(workload, "spec", "queueName") or "")
    if (name := cluster_name(workload)) is not None:
        there = seen.worker(name)
        pods = [copy.object for copy in there.jobs if copy.resource == POD] if there is not None else []
        if there is not None and pods:
            figures.placed(workload, there.name, there.names.local_queue(queue), pods)
        return seen
    queues = {worker.name: worker.names.local_queue(queue) for worker in seen.workers}
    return attrs.evolve(seen, facts=figures.facts(Waiting(seen.key, workload, seen.check, config, seen.jobs, queues)))


def _syncs(plan: Plan) -> bool:
    return any(isinstance(effect, PatchJobStatus) for effect in plan.effects)
