"""The manager: caches, worker pool and controllers put together. What a daemon runs and a library user imports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import cast

import anyio.abc
import attrs
from attrs.validators import instance_of, is_callable

from multikueue.adapters import AdapterRegistry
from multikueue.core.config.access_providers import ProfileSettings
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher
from multikueue.core.machinery.queue import QueueStatistics
from multikueue.core.model.copies import forget_replaced
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.core.workload import ending
from multikueue.core.workload.effects import MANAGER
from multikueue.core.workload.seen.snapshot import PlanSettings
from multikueue.hooks import unfailing
from multikueue.kube import KubeClient
from multikueue.kube.http.response_limits import AnswerLimits
from multikueue.kube.informers.list_pages import InitialList
from multikueue.kube.kubeconfigs.client_configuration import Given, is_configuration
from multikueue.protocols import ApiClient, ControllerHook, ManagerHook
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.queue_informers import QueueInformers
from multikueue.runtime.caches.workload_indexes import may_have_jobs
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.cluster_pool import Connect
from multikueue.runtime.controller import Controller, Process
from multikueue.runtime.effect_executor import EffectExecutor
from multikueue.runtime.event_handlers import ManagerHandlers, WorkerHandlers, WorkQueues, workload_queue
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.garbage import GarbageCollection
from multikueue.runtime.loop import Task, utc_now
from multikueue.runtime.origin import Origin
from multikueue.runtime.parts import GuardedFigures, Part, PartHost, PartOf, brought_by
from multikueue.runtime.plugins import dispatcher_fault
from multikueue.runtime.reconcilers.bodies import Bodies
from multikueue.runtime.reconcilers.configuration import AdmissionCheckReconciler, ClusterReconciler
from multikueue.runtime.reconcilers.quota import BATCH, QuotaReconciler, enqueue_all
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.reconcilers.workload import WorkloadReconciler
from multikueue.runtime.target import Target
from multikueue.runtime.transition_log import TransitionLog
from multikueue.runtime.workers.cluster_identity import ManagerIdentity
from multikueue.runtime.workers.cluster_profiles import ClusterProfiles
from multikueue.runtime.workers.executor import WorkerBackoffs, WorkerExecutor, ask_again
from multikueue.runtime.workers.informers import WorkerSettings
from multikueue.runtime.workers.kubeconfig_files import INTERVAL, KUBECONFIG_PREFIX, KubeconfigFiles
from multikueue.runtime.workers.moved_away import Suspects
from multikueue.runtime.workers.pool import WorkerPool, target_on


@attrs.frozen
class ManagerSettings:
    """The settings of a manager."""

    plan: PlanSettings = attrs.field(factory=PlanSettings, validator=instance_of(PlanSettings))
    name: str = ""
    """By which namespaces of workers allow its copies, which say then where they come from. Empty: they do not."""
    namespace: str = "kueue-system"
    """Where the kubeconfig Secrets are: Kueue's own namespace."""
    gc_interval: timedelta = attrs.field(default=timedelta(minutes=1), validator=instance_of(timedelta))
    """How often Workloads with copies are reconciled without an event, from the caches; 0: never. It removes what an
    error left behind. Those that run where they should take turns (`core/machinery/resync.py`). Kueue's default."""
    concurrency: int = 32
    """Workloads reconciled at a time. They mostly wait for answers, so this bounds requests in flight."""
    kubeconfig_prefix: str = KUBECONFIG_PREFIX
    """The only folder kubeconfig files are read from; Kueue's. A MultiKueueCluster may name a file below it."""
    kubeconfig_interval: float = INTERVAL
    """Seconds between two reads of those files."""
    worker_limits: AnswerLimits = attrs.field(factory=AnswerLimits)
    """How much of one kind is kept of one worker. One that has more gets no new jobs; give its client the same
    limits (`ClientOptions.limits`), so that it does not read more either."""
    quota_automation: bool = False
    """Whether MultiKueueConfigs may ask for ClusterQueues of the manager to have the sum of the workers' quotas. Off as
    in Kueue: it changes the spec of ClusterQueues, and needs the permission to."""
    profiles: ProfileSettings | None = None
    """By which access providers of ClusterProfiles workers may be reached. None as in Kueue: by none."""


def as_client(given: ApiClient | Given) -> ApiClient:
    """A client of what is given: itself, if it is one of ours.

    Raises:
        TypeError: it is no more than a path, or the content of a file.
    """
    is_other = is_configuration(given) or isinstance(given, str | os.PathLike | Mapping)
    return KubeClient(cast("Given", given), name="manager") if is_other else cast("ApiClient", given)


def _is_dispatcher(_: object, field: attrs.Attribute[Dispatcher], given: Dispatcher) -> None:
    if fault := dispatcher_fault(given):
        raise TypeError(f"{field.name}: {given!r:.100}, {fault}: make it a multikueue.Dispatcher")


@attrs.define(eq=False, repr=False)
class Manager:
    """Dispatches the workloads of one manager cluster.

    Nothing is done before `run`. While it runs, it expects to be the only one: run it under leader election.

    Args:
        client: of the manager cluster. `run` opens one that is not open, and makes one of a `ClusterConfig`, or of a
            `Configuration` or `ApiClient` of kubernetes-asyncio.
        adapters: the kinds of jobs that are dispatched.
        settings: what Kueue's and the daemon's settings say.
        connect: makes the client of a worker, of its name and `ClusterConfig`.
        dispatcher: chooses the workers that a Workload is offered to. All of them by default. One that looks at figures
            is a `BringsPart`, too; a `SettingsError` says why its part cannot be used.
        hook: observes what happens to Workloads and workers, for metrics.
        controller_hook: observes the controllers, for metrics.
        clock: the wall clock.
        fraction: the source of jitter: numbers in [0, 1).
        instance: who writes the events: the process's name.
        led_until: when another leader was at work last, see `Elector.led_until`: the time since then does not count
            for `worker_lost_timeout`. None: it is not known, so no time before `run` counts.
        before: the Workloads as they were read just before `run`; without, they are read then.
        parts: what this manager does beside: see `InventoryOptions.part`.
    """

    client: ApiClient = attrs.field(converter=as_client)
    adapters: AdapterRegistry = attrs.field(validator=instance_of(AdapterRegistry))
    settings: ManagerSettings = attrs.field(validator=instance_of(ManagerSettings))
    connect: Connect = attrs.field(validator=is_callable())
    dispatcher: Dispatcher = attrs.field(factory=AllAtOnce, kw_only=True, validator=_is_dispatcher)
    hook: ManagerHook | None = attrs.field(default=None, kw_only=True)
    controller_hook: ControllerHook | None = attrs.field(default=None, kw_only=True)
    clock: Callable[[], datetime] = attrs.field(default=utc_now, kw_only=True)
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    instance: str = attrs.field(default="multikueue", kw_only=True)
    led_until: datetime | None = attrs.field(default=None, kw_only=True)
    before: InitialList = attrs.field(factory=InitialList, kw_only=True)
    parts: Sequence[PartOf] = attrs.field(default=(), kw_only=True)
    cluster: ManagerCluster = attrs.field(init=False)
    workers: WorkerPool = attrs.field(init=False)
    _from_workers: WorkerHandlers = attrs.field(init=False)
    _executor: WorkerExecutor = attrs.field(init=False)
    _dispatching: Part = attrs.field(init=False)
    """What the dispatcher brings."""
    _profiles: ClusterProfiles = attrs.field(init=False)
    _controllers: tuple[Controller[ObjectKey], ...] = attrs.field(init=False)
    """That of the Workloads first: it alone needs the manager's jobs."""
    _services: tuple[Task, ...] = attrs.field(init=False)
    """What runs beside the controllers; nothing waits for it."""
    _begun: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Caches first, then who listens to them, then who decides by them; what is optional comes last."""
        settings, cluster, memory = self.settings, self._caches(), WorkloadMemory()
        hook = unfailing(self.hook)
        self.cluster, work = cluster, WorkQueues(workload_queue(cluster, memory, settings.concurrency))
        process = Process(self.clock, self.fraction, self.instance, self.controller_hook)
        queues = QueueInformers.build(
            self.client, partial(work.quotas.enqueue, after=BATCH), fraction=self.fraction, slim=False
        )
        recompute = partial(enqueue_all, work.quotas, queues)
        backoffs = WorkerBackoffs(fraction=self.fraction)
        from_workers = self._from_workers = WorkerHandlers(
            cluster, work, memory, backoffs, recompute, hook, self._follows
        )
        workers = self.workers = self._worker_pool(from_workers)
        cluster.workloads.informer.subscribe(TransitionLog(cluster, self.clock, hook).changed)
        handlers = ManagerHandlers(
            cluster, work, memory, recompute, partial(ask_again, workers, backoffs), workers.note_names
        )
        handlers.subscribe(self.adapters.followed)
        self._profiles = ClusterProfiles(
            cluster, settings.profiles, settings.namespace, work.clusters.enqueue, self.client, self.fraction
        )
        events = EventRecorder(self.client, "kueue-workload-controller", self.instance, self.clock)
        origin = Origin(settings.name, self.client) if settings.name else None
        effects = EffectExecutor(
            partial(_target, cluster, workers), events, memory, hook, work.workloads.enqueue, origin
        )
        host = PartHost(cluster, workers, work.workloads, process)
        self._dispatching = brought_by(self.dispatcher, host)
        self._executor = WorkerExecutor(effects, from_workers.enqueue, backoffs, follows=self._is_left)
        garbage = GarbageCollection(cluster, workers, from_workers.enqueue, settings.gc_interval)
        parts = [
            Part((self._workloads(process, work, memory, hook),), (events.run, garbage.run)),
            self._dispatching,
            self._clusters(process, work, handlers),
            self._quotas(process, work, queues),
            *(build(host) for build in self.parts),
        ]
        cluster.workloads.informer.subscribe(forget_replaced)  # last: the others compare both versions
        self._controllers = tuple(controller for part in parts for controller in part.controllers)
        self._services = tuple(service for part in parts for service in part.services)

    def _caches(self) -> ManagerCluster:
        return ManagerCluster.build(
            self.client,
            self.adapters,
            before=self.before,
            controller_name=self.settings.plan.controller_name,
            namespace=self.settings.namespace,
            fraction=self.fraction,
            keeps_slim=not any(self.settings.plan.dependencies.values()),
        )

    def _follows(self, cluster: ClusterName, key: ObjectKey) -> bool:
        """See `WorkerHandlers.follows`."""
        if not self._is_over(key):
            return True
        return not self._executor.put_off(cluster, key) and self._may_show(cluster, key)

    def _is_left(self, cluster: ClusterName, key: ObjectKey) -> bool:
        """Whether something follows at the end of what was done there: of a finished one, while anything is left."""
        return not self._is_over(key) or self._may_show(cluster, key)

    def _may_show(self, cluster: ClusterName, key: ObjectKey) -> bool:
        """Whether a worker shows copies of a Workload, or cannot be seen."""
        worker = self.workers.get(cluster)
        return worker is None or worker.known is None or bool(worker.known.copies_of(key))

    def _is_over(self, key: ObjectKey) -> bool:
        """Whether a Workload has finished, and only removing it is left: no slice or job goes after it, and its job
        shows how it ended. An end that is settled is shown once nothing runs any more.
        """
        workload = self.cluster.workloads.get(key)
        facts = WORKLOADS.of(workload) if workload is not None else None
        if workload is None or facts is None or facts.owner is None or not facts.is_finished or facts.is_replaced:
            return False
        kind, jobs = self.adapters.get(facts.owner.gvk), self.cluster.jobs_of(key, workload, facts.owner).values()
        if kind is None or kind.row.deletes_expired:
            return False
        return ending.shows_its_end(kind, jobs, self.clock())

    def _worker_pool(self, handlers: WorkerHandlers) -> WorkerPool:
        informers = WorkerSettings(
            self.adapters,
            self.settings.plan.origin,
            ManagerIdentity(self.client),
            on_workload=handlers.workload_changed,
            on_pods_left=handlers.pods_left,
            on_job=handlers.job_changed,
            on_queue=lambda _: handlers.recompute_quotas(),
            is_used=partial(may_have_jobs, self.cluster.workloads.informer),
            fraction=self.fraction,
            limits=self.settings.worker_limits,
            need_of=self.cluster.need_of,
            is_gone=self.cluster.is_gone,
            lost_after=self.settings.plan.worker_lost_timeout,
        )
        suspects = partial(Suspects, self.cluster, self.adapters, self.settings.plan, self.clock)
        on_changes = handlers.cluster_changed, handlers.status_changed
        return WorkerPool(self.connect, informers, self.clock, *on_changes, suspects, self.cluster.names_of_clusters)

    def _workloads(
        self, process: Process, work: WorkQueues, memory: WorkloadMemory, hook: ManagerHook | None
    ) -> Controller[ObjectKey]:
        """Dispatches: what a manager is for."""
        plan = self.settings.plan
        executor, known = self._executor, self._dispatching.figures
        figures = GuardedFigures(known) if known is not None else None
        bodies = Bodies(self.client, work.workloads.enqueue, executor.is_busy)
        reader = SnapshotReader(self.cluster, self.workers, self.adapters, executor, memory, figures, plan)
        executor.ended = bodies.ended
        reconciler = WorkloadReconciler(reader, executor, plan, self.dispatcher, self.clock, hook, bodies)
        return process.controller("multikueue_workload", reconciler, work.workloads, self.settings.concurrency)

    def _clusters(self, process: Process, work: WorkQueues, handlers: ManagerHandlers) -> Part:
        """Connects to the workers that are configured."""
        settings, cluster = self.settings, self.cluster
        prefix, interval = settings.kubeconfig_prefix, settings.kubeconfig_interval
        files = KubeconfigFiles(cluster.kubeconfig_paths, handlers.kubeconfig_changed, prefix, interval)
        events = EventRecorder(self.client, "multikueue-cluster", self.instance, self.clock)
        namespace, lost_after = settings.namespace, settings.plan.worker_lost_timeout
        clusters = ClusterReconciler(
            cluster, self.workers, files, self._profiles, events, namespace, self.clock, self.led_until, lost_after
        )
        checks = AdmissionCheckReconciler(cluster, self.clock, self._dispatching.profiles)
        controllers = (
            process.controller("multikueue_cluster", clusters, work.clusters, 8),
            process.controller("multikueue_admissioncheck", checks, work.checks),
        )
        return Part(controllers, (events.run, files.run))

    def _quotas(self, process: Process, work: WorkQueues, queues: QueueInformers) -> Part:
        """Has quotas of ClusterQueues follow those of the workers, if that is wanted."""
        if not self.settings.quota_automation:
            return Part()
        timeout = self.settings.plan.worker_lost_timeout
        reconciler = QuotaReconciler(self.cluster, self.workers, queues, timeout, self.clock)
        return Part((process.controller("multikueue_clusterqueue", reconciler, work.quotas),), (queues.run,))

    def __repr__(self) -> str:
        words = Counter(worker.state.connection.word for worker in self.workers)
        counts = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
        waiting = sum(queue.ready_or_delayed for queue in self.statistics().values())
        workloads, workers = len(self.cluster.workloads.informer), f"{words.total()} workers{counts and ': ' + counts}"
        return f"<Manager {workloads} workloads, {workers}; {waiting} keys waiting>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Dispatch until cancelled or drained; ready once the manager's caches are complete.

        Raises:
            RuntimeError: it has run before. What it knows is of that time: build another one.
        """
        if self._begun:
            raise RuntimeError("a Manager runs once: build another one for each term")
        self._begun, client = True, self.client
        opening = client if isinstance(client, KubeClient) and not client.opened else nullcontext()
        async with opening, anyio.create_task_group() as tasks:
            await tasks.start(self.cluster.run)
            await tasks.start(self._profiles.run)
            await tasks.start(self._executor.run)
            for service in self._services:
                tasks.start_soon(service)
            await tasks.start(self.workers.run)
            async with anyio.create_task_group() as work:
                for controller in self._controllers[1:]:
                    work.start_soon(controller.run)  # workers are read meanwhile
                # Only then: before the caches are complete, absence means nothing, and copies would be removed for it.
                await self.cluster.wait_settled()
                work.start_soon(self._controllers[0].run)
                task_status.started()
            await self._executor.wait_idle()
            tasks.cancel_scope.cancel()

    def drain(self) -> None:
        """Start nothing new, let what is under way end, then end `run`."""
        for controller in self._controllers:
            controller.drain()

    @property
    def ready(self) -> bool:
        """Whether the manager's caches are complete."""
        return not self.cluster.unread

    @property
    def idle(self) -> bool:
        """Whether no controller has anything to do right now."""
        return all(controller.idle for controller in self._controllers)

    def starving(self) -> int:
        """How many Workloads are held for long while others of their queue, that came later, have started."""
        return self._dispatching.starving()

    def statistics(self) -> dict[str, QueueStatistics]:
        """The controllers' queues, by controller."""
        return {controller.name: controller.queue.statistics() for controller in self._controllers}


def _target(manager: ManagerCluster, workers: WorkerPool, cluster: ClusterName) -> Target | None:
    return manager if cluster == MANAGER else target_on(workers.get(cluster))
