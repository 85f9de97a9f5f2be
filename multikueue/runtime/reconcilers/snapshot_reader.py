"""What the caches, the executor and this process's memory know about one Workload, as one value."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import attrs

from multikueue.adapters import AdapterRegistry
from multikueue.adapters.safe import SafeAdapter
from multikueue.core.config.admission_check import clusters
from multikueue.core.dispatchers.dispatcher import Facts, Figures, Waiting
from multikueue.core.model.destination import Destination
from multikueue.core.model.kinds import POD
from multikueue.core.model.marks import Marks, Proof
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of, name_of, namespace_of
from multikueue.core.model.worker_names import namespace_on, unreadable_places
from multikueue.core.model.worker_states import (
    Connecting,
    Idle,
    Lost,
    OutcomeUnknown,
    Reach,
    Served,
    Syncing,
    Unanswered,
    Unwatched,
    in_sight,
)
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.model.workloads import Owner, cluster_name, has_quota, is_evicted, is_finished
from multikueue.core.workload.seen.graces import LATE_CREATION
from multikueue.core.workload.seen.snapshot import PlanSettings, Snapshot, Worker, hidden
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.stopped_jobs import StoppedJob, stopped_job
from multikueue.runtime.caches.workload_indexes import check_names, named_by, named_by_slices
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.reconcilers.unreadable import unreadable_copies, unreadable_job, unreadable_workload
from multikueue.runtime.workers.executor import WorkerExecutor
from multikueue.runtime.workers.pool import WorkerCluster, WorkerPool, named_copies, names_on, view_of


@attrs.frozen(eq=False)
class _Here:
    """What is known of one Workload on the manager."""

    key: ObjectKey
    workload: Json | None
    owned_by: Owner | None
    workload_only: bool
    """Whether its jobs need not be seen on workers."""
    siblings: Sequence[Json]
    jobs: Mapping[str, Json] = attrs.field(factory=dict)
    """By name."""

    @property
    def attempt(self) -> str:
        """The attempt that counts; empty: there is no Workload."""
        return WORKLOADS.of(self.workload).attempt if self.workload is not None else ""


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

    def look(self, key: ObjectKey) -> Snapshot:
        """Read one Workload, and note what that tells: later readings go by it."""
        self._note_worker(key)
        seen = self.read(key)
        if (pair := self._shown_as_one(seen)) is not None:
            self.workers.note_shown(pair)
            seen = self.read(key)
        self._learn(seen)
        return seen

    def read(self, key: ObjectKey) -> Snapshot:
        """Everything known about one Workload. Reading it changes nothing."""
        workload = self.manager.workloads.informer.unreadable.outlines.get(key) or self.manager.workloads.get(key)
        stopped = stopped_job(self.manager, self.adapters, key) if workload is None else None
        owned_by = WORKLOADS.of(workload).owner if workload is not None else self._former_owner(key, stopped)
        if unreadable := unreadable_workload(self.manager, key, owned_by) or unreadable_places(workload or {}):
            return Snapshot(key, workload, unreadable=unreadable)
        siblings = tuple(self.manager.siblings(key, owned_by)) if owned_by is not None else ()
        kind = self.adapters.get(owned_by.gvk) if owned_by is not None else None
        here = _Here(key, workload, owned_by, kind is None or kind.traits.workload_only, siblings)
        if workload is None:
            return self._read_gone(here, kind, stopped)
        check, check_unknown = self.manager.our_check(check_names(workload))
        unreadable = unreadable_job(self.manager, key, workload, owned_by) if owned_by is not None else ""
        jobs = self.manager.jobs_of(key, workload, owned_by) if owned_by is not None and not unreadable else {}
        config, (in_vain, refused_for) = self.manager.config_of(check), self._refused(owned_by, jobs)
        workers = tuple(self._workers(attrs.evolve(here, jobs=jobs), config))
        return Snapshot(
            key,
            workload,
            check=check,
            check_unknown=check_unknown,
            config=name_of(config) if config is not None else "",
            adapter=kind,
            missing_setting=self.adapters.missing_setting(owned_by.gvk) if owned_by is not None else "",
            unreadable_job=unreadable,
            jobs=jobs,
            in_vain=in_vain,
            refused_for=refused_for,
            last_worker=self.memory.last_worker(key),
            placement=self.memory.placement(key),
            running_for=self.workers.running_for,
            quiet_for=self.memory.quiet_for(key),
            unchanged_here_for=self.memory.unchanged_here_for(key),
            held_for=self.memory.held_for(key),
            siblings=siblings,
            dispatcher_facts=self._facts(key, workload, check, config, jobs, workers),
            workers=workers,
        )

    def _read_gone(self, here: _Here, kind: SafeAdapter | None, stopped: StoppedJob | None) -> Snapshot:
        gone = Snapshot(
            here.key,
            None,
            adapter=kind,
            siblings=tuple(here.siblings),
            workers=tuple(self._workers(here, None)),
            was_here=self.memory.was_here(here.key),
            last_worker=self.memory.last_worker(here.key),
            quiet_for=self.memory.quiet_for(here.key),
        )
        if stopped is None:
            return gone
        in_vain, refused_for = self._refused(here.owned_by, {name_of(stopped.object): stopped.object})
        return attrs.evolve(stopped.shown(gone), in_vain=in_vain, refused_for=refused_for)

    def _facts(
        self,
        key: ObjectKey,
        workload: Json,
        check: str | None,
        config: Json | None,
        jobs: Mapping[str, Json],
        workers: Iterable[Worker],
    ) -> Facts:
        """What its dispatcher knows of a Workload that waits for a worker."""
        waits = has_quota(workload) and not is_evicted(workload) and cluster_name(workload) is None
        if self.figures is None or check is None or not waits:
            return Facts()
        queue = _queue(key, workload)
        queues = {worker.name: worker.names.local_queue(queue) for worker in workers}
        return self.figures.facts(Waiting(key, workload, check, config or {}, jobs, queues))

    def _note_worker(self, key: ObjectKey) -> None:
        """Note which worker a Workload has, and where that leads, before anything of it is looked for there."""
        workload = self.manager.workloads.get(key)
        if workload is None or key in self.manager.workloads.informer.unreadable.outlines:
            return
        self.memory.observe(key, workload)
        if (now := self._destination_of_last(key)) is not None:
            self.memory.placed(key, workload, now)

    def _destination_of_last(self, key: ObjectKey) -> Destination | None:
        last = self.memory.last_worker(key)
        return self.workers.destination(last) if last is not None else None

    def _shown_as_one(self, snapshot: Snapshot) -> frozenset[str] | None:
        """Two workers that are said to be different, if one of them shows what was made for the other."""
        workload, marks, known = snapshot.workload, Marks(self.settings.mark_key), snapshot.worker
        for pair in self.workers.names.apart if workload is not None else ():
            for name, other in itertools.permutations(pair):
                copies = worker.copies if (worker := known(name)) is not None else ()
                if workload and any(marks.proof(copy, workload, other) is Proof.EXACT for copy in copies):
                    return pair
        return None

    def _learn(self, seen: Snapshot) -> None:
        """Note what was read, and have the job's kind watched where something of the Workload is, or may be."""
        key, workload = seen.key, seen.workload
        owned_by = WORKLOADS.of(workload).owner if workload is not None else self._former_owner(key)
        last = self.memory.last_worker(key)
        named = {*named_by(workload), last}
        for worker in seen.workers:
            if not isinstance(worker.creation, Unanswered):
                self.memory.all_shown(worker.name, key)
            if worker.name == last and workload is not None:
                self._learn_destination(worker, key, workload)
            cluster = self.workers.get(worker.name)
            if cluster is not None and (informers := cluster.known) is not None:
                informers.learn(key, owned_by.gvk if owned_by is not None else None, worker)
                if workload is None:
                    informers.create_conflicts.gone(key)
                if owned_by is not None and (worker.name in named or worker.unreadable or not worker.is_empty):
                    informers.want(owned_by.gvk)
        if workload is None and all(
            worker.is_empty and worker.reachable and not worker.unreadable for worker in seen.workers
        ):
            self.memory.left(key)
        elif workload is None:
            self.memory.missed(key)
        if self.figures is not None and seen.check is not None and workload is not None and has_quota(workload):
            self._tell_placed(self.figures, seen, workload)

    def _learn_destination(self, worker: Worker, key: ObjectKey, workload: Json) -> None:
        """Of the worker that had it last: it may have another address, or have nothing of it any more."""
        now, shown = self.workers.destination(worker.name), not worker.is_empty or bool(worker.unreadable)
        if now is None or not self.memory.leads_there(key, now, shown=shown):
            return
        nothing_left = cluster_name(workload) is None and worker.in_sight and worker.is_empty
        self.memory.led_to(key, None if nothing_left else now)

    def _tell_placed(self, figures: Figures, seen: Snapshot, workload: Json) -> None:
        """Tell the pods of one that has a worker, which show whether it has room for them."""
        there = seen.worker(cluster_name(workload) or "")
        pods = [copy.object for copy in there.jobs if copy.resource == POD] if there is not None else []
        if there is not None and pods:
            figures.placed(workload, there.name, there.names.local_queue(_queue(seen.key, workload)), pods)

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
        owners = (owned_by for owned_by in (*named, *known) if owned_by is not None)
        return next(owners, None if stopped is None else stopped.owner)

    def _workers(self, here: _Here, config: Json | None) -> Iterator[Worker]:
        """All workers that may matter: those of the config first, then all others, then those that are not known."""
        configured = clusters(config) if config is not None else []
        known: dict[str, WorkerCluster] = {worker.name: worker for worker in self.workers}
        for name in (*configured, *sorted(set(known).difference(configured))):
            source = self._source(name)
            if (cluster := known.get(name)) is not None:
                listed = name in configured and source is not None  # a removed one is kept while it runs jobs
                yield self._worker(here, cluster, source, listed=listed)
            elif source is not None:
                yield Worker(ClusterName(name), configured=True, reach=Connecting(), identified=False)
        named = {*named_by(here.workload), *filter(None, [self.memory.last_worker(here.key)])}
        unknown = {*named, *named_by_slices(here.workload, here.siblings)}.difference(known)
        yield from self._unknown_workers(sorted(unknown), configured)

    def _worker(self, here: _Here, cluster: WorkerCluster, source: Json | None, *, listed: bool) -> Worker:
        """One of the pool: in which namespace its copies are, what shows there, and what that tells by now."""
        name, key, workload, siblings = cluster.name, here.key, here.workload, here.siblings
        proven = self._sibling_namespaces(cluster, siblings)
        place = self._namespace_on(here, workload, cluster, proven) if workload is not None else None
        there = view_of(cluster, key, here.owned_by, namespace=place)
        why, jobs_only = "", False
        if cluster.known is not None:
            names = None if here.workload_only else here.jobs
            why, jobs_only = unreadable_copies(cluster.known, key, here.owned_by, there.namespace, names)
        moved = self._moved_since(here, name, shown=bool(why or there.workload is not None or there.jobs))
        reach = self._reach(name, there.reach) if moved is None else Lost(moved, seen=False)
        kind = Served() if here.workload_only and cluster.known is not None else there.kind  # seen or not
        in_flight, creation = self.executor.in_flight(name, key), self.memory.creation(name, key, here.attempt)
        if isinstance(creation, Unanswered) and isinstance(kind, Unwatched):
            kind = Syncing()  # what is known of it is from before the creations were sent
        settled = isinstance(in_flight, Idle | OutcomeUnknown) and not why and in_sight(reach, kind)
        if settled and isinstance(creation, Unanswered) and creation.ago > LATE_CREATION:  # it would show by now
            creation = self.memory.creation(name, key, here.attempt, all_shown=True)
        second = self.workers.names.seconds.get(name)
        worker = Worker(
            name,
            listed,
            labels_of(source or {}),
            annotations_of(source or {}),
            reach=reach,
            kind=kind,
            in_flight=in_flight,
            creation=creation,
            refusal=there.refusal,
            namespace=there.namespace,
            namespace_proven=place in proven,
            copy=there.workload,
            supplied=self.memory.supplied(name, key),
            jobs=there.jobs,
            shared=there.shared,
            slices=tuple(_slices_on(cluster, siblings, there.namespace)),
            pods_left_ago=None if there.jobs else self.memory.pods_left_ago(name, key),
            pods=self.memory.pods(name, key, here.attempt),
            removed=source is None,
            second_of=second.first if second is not None and moved is None else "",
            identified=moved is None and self.workers.is_identified(name),
            is_manager=there.is_manager,
            failed=there.failed,
            kueue=there.kueue,
        )
        if moved is not None:
            return hidden(worker, "")  # another cluster shows it
        return hidden(worker, why, jobs_only=jobs_only) if why else worker

    def _reach(self, name: str, shown: Reach) -> Reach:
        """Whether it can be reached: of a lost one, since when that counts."""
        if not isinstance(shown, Lost):
            return shown
        return attrs.evolve(shown, since=self.workers.counts_from(name, shown.since))

    def _unknown_workers(self, names: Iterable[str], configured: Collection[str]) -> Iterator[Worker]:
        """Those that a Workload names: the MultiKueueCluster is gone, or not reconciled; a job may still run there."""
        for name in names:
            exists = self._source(name) is not None
            if not (name in configured and exists):
                reach = Connecting() if exists else Lost(self.workers.lost_since(name), seen=False)
                yield Worker(ClusterName(name), name in configured, reach=reach, removed=not exists, identified=False)

    def _sibling_namespaces(self, cluster: WorkerCluster, siblings: Sequence[Json]) -> Sequence[str]:
        """The namespaces on a worker in which our marks prove copies of siblings."""
        if not siblings or cluster.known is None:
            return ()
        return cluster.known.marked_places(siblings, Marks(self.settings.mark_key), cluster.name)

    def _namespace_on(self, here: _Here, workload: Json, cluster: WorkerCluster, proven: Sequence[str]) -> str:
        """The namespace on a worker in which a Workload's copies are.

        It is the one that the Workload says, unless our marks prove another one: of a copy of this attempt, else of
        its siblings' copies, else of a copy of the same job or of a former Workload of its name. Somebody may have
        changed what the Workload said, or Kueue has made the Workload anew while its job runs.

        The mark of an earlier attempt proves less: anybody there could have copied it. It counts only in the namespace
        that is the Workload's own by the worker's mapping, and where nothing is in the namespace that it says.
        """
        key, jobs = here.key, here.jobs
        said, known = namespace_on(workload, cluster.name, here.siblings), cluster.known
        copies = known.copies_of(key) if known is not None else []
        if known is None or (not proven and all(namespace_of(copy) == said for copy in copies)):
            return said
        marks = Marks(self.settings.mark_key)
        proofs = [(namespace_of(copy), marks.proof(copy, workload, cluster.name)) for copy in copies]
        exact = [place for place, proof in proofs if proof is Proof.EXACT]
        former = (namespace_of(copy) for copy in copies if marks.made_copy(copy, jobs.get(name_of(copy)), cluster.name))
        offered = (namespace_of(copy) for copy in copies if marks.made_under(copy, key, cluster.name))
        if places := exact or proven or [*former, *offered]:
            return said if said in places else places[0]
        own = names_on(cluster, self._source(cluster.name) or {}).namespace(key.namespace)
        unreadable = known.workloads.unreadable_note(ObjectKey(said, key.name))
        nothing_here = not unreadable and all(place != said for place, _ in proofs)
        return own if nothing_here and (own, Proof.OTHER) in proofs else said

    def _moved_since(self, here: _Here, name: str, *, shown: bool) -> datetime | None:
        """Since when the worker that had the Workload last leads to another cluster; None: it does not, or that matters
        no more. What shows there then is not it."""
        if here.workload is None or name != self.memory.last_worker(here.key):
            return None
        now, since = self.workers.destination(name), self.workers.moved_since(name)
        if now is None or since is None or self.memory.leads_there(here.key, now, shown=shown):
            return None
        recorded = cluster_name(here.workload) is not None
        if not recorded and self.workers.clock() - since >= self.settings.worker_lost_timeout:
            return None
        return since

    def _source(self, name: str) -> Json | None:
        """The MultiKueueCluster, unless it is gone or going; one that is not in the pool is not reconciled yet."""
        cluster = self.manager.clusters.get(ObjectKey("", name))
        return None if cluster is None or is_terminating(cluster) else cluster


def _slices_on(cluster: WorkerCluster, siblings: Iterable[Json], there: str) -> Iterator[Json]:
    """See `Worker.slices`."""
    for sibling in siblings:
        if cluster.known is not None and WORKLOADS.of(sibling).is_finished_slice:
            copy = cluster.known.workload_of(ObjectKey.of(sibling), there)
            yield from () if copy is None or is_finished(copy) else (copy,)


def _queue(key: ObjectKey, workload: Json) -> ObjectKey:
    return ObjectKey(key.namespace, dig(workload, "spec", "queueName") or "")
