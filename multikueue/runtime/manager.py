"""The manager: caches, worker pool and controllers put together. What a daemon runs and a library user imports."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import anyio.abc
import anyio.lowlevel
import attrs

from multikueue.adapters import AdapterRegistry
from multikueue.core.config.access_providers import ProfileSettings
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher
from multikueue.core.inventory.settings import SpokeSettings
from multikueue.core.machinery.queue import QueueStatistics
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.workload.effects import MANAGER
from multikueue.core.workload.resync import has_turn
from multikueue.core.workload.snapshot import PlanSettings
from multikueue.kube import KubeClient
from multikueue.kube.client_configuration import Given, is_configuration
from multikueue.kube.response_limits import AnswerLimits
from multikueue.protocols import ApiClient, ControllerHook, ManagerHook, PlacementHook, Reconciler
from multikueue.runtime.cluster_pool import Connect
from multikueue.runtime.cluster_profiles import ClusterProfiles
from multikueue.runtime.controller import Controller, KeyQueue
from multikueue.runtime.effect_executor import EffectExecutor, Target
from multikueue.runtime.event_handlers import ManagerHandlers, WorkerHandlers, WorkQueues
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.inventory.selection import Selection
from multikueue.runtime.inventory.service import PlacementOptions
from multikueue.runtime.inventory.spokes import Spokes
from multikueue.runtime.kubeconfig_files import INTERVAL, KUBECONFIG_PREFIX, KubeconfigFiles
from multikueue.runtime.loop import Task, loop_time
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.optional_controllers import fill_configs
from multikueue.runtime.queue_informers import QueueInformers
from multikueue.runtime.read_before import ReadBefore
from multikueue.runtime.reconcilers.configuration import AdmissionCheckReconciler, ClusterReconciler
from multikueue.runtime.reconcilers.quota import BATCH, QuotaReconciler, enqueue_all
from multikueue.runtime.reconcilers.workload import SnapshotReader, WorkloadReconciler
from multikueue.runtime.worker_executor import PartBackoffs, WorkerExecutor
from multikueue.runtime.worker_informers import WorkerSettings
from multikueue.runtime.worker_pool import WorkerPool, workloads_on
from multikueue.runtime.workload_memory import WorkloadMemory

BREATH: Final = 500
"""Workloads that the collection of garbage enqueues before others have a turn: less than ten milliseconds."""


@attrs.frozen
class ManagerSettings:
    """The settings of a manager."""

    plan: PlanSettings = attrs.field(factory=PlanSettings)
    namespace: str = "kueue-system"
    """Where the kubeconfig Secrets are: Kueue's own namespace."""
    gc_interval: timedelta = timedelta(minutes=1)
    """How often Workloads with copies are reconciled without an event, from the caches; 0: never. It removes what an
    error left behind. Those that run where they should take turns (`core/workload/resync.py`). Kueue's default."""
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
    spokes: SpokeSettings | None = None
    """Of the MultiKueueClusters that are made for selected ManagedClusters. None: none are."""
    profiles: ProfileSettings | None = None
    """By which access providers of ClusterProfiles workers may be reached. None as in Kueue: by none."""
    placement: PlacementOptions = attrs.field(factory=PlacementOptions)
    """Which MultiKueueConfigs are filled from an inventory. None by default."""


def as_client(given: ApiClient | Given) -> ApiClient:
    """A client of what is given: itself, if it is one of ours."""
    return KubeClient(given, name="manager") if is_configuration(given) else cast("ApiClient", given)


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@attrs.define(eq=False, repr=False)
class Manager:
    """Dispatches the workloads of one manager cluster.

    Nothing is done before `run`. While it runs, it expects to be the only one: run it under leader election.
    """

    client: ApiClient = attrs.field(converter=as_client)
    """Of the manager cluster. `run` opens one that is not open, and makes one of a `ClusterConfig`, or of a
    `Configuration` or `ApiClient` of kubernetes-asyncio."""
    adapters: AdapterRegistry
    settings: ManagerSettings
    connect: Connect
    dispatcher: Dispatcher = attrs.field(factory=AllAtOnce, kw_only=True)
    hook: ManagerHook | None = attrs.field(default=None, kw_only=True)
    controller_hook: ControllerHook | None = attrs.field(default=None, kw_only=True)
    placement_hook: PlacementHook | None = attrs.field(default=None, kw_only=True)
    clock: Callable[[], datetime] = attrs.field(default=utc_now, kw_only=True)
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """The source of jitter: numbers in [0, 1)."""
    instance: str = attrs.field(default="multikueue", kw_only=True)
    """Who writes the events: the process's name."""
    led_until: datetime | None = attrs.field(default=None, kw_only=True)
    """When another leader was at work last, see `Elector.led_until`: the time since then does not count for
    `worker_lost_timeout`. None: it is not known, so no time before `run` counts."""
    before: ReadBefore = attrs.field(factory=ReadBefore, kw_only=True)
    """The Workloads as they were read just before `run`; without, they are read then."""
    selection: Selection | None = attrs.field(default=None, kw_only=True)
    """Which ManagedClusters become workers, with `ManagerSettings.spokes`. None: those that placement checks select."""
    permissions: ApiClient | None = attrs.field(default=None, kw_only=True)
    """Who writes ClusterPermissions: whoever may create one can grant any role on a spoke. None: `client`."""
    spokes: Spokes | None = attrs.field(default=None, init=False)
    cluster: ManagerCluster = attrs.field(init=False)
    workers: WorkerPool = attrs.field(init=False)
    _work: WorkQueues = attrs.field(factory=WorkQueues, init=False)
    _handlers: WorkerHandlers = attrs.field(init=False)
    _executor: WorkerExecutor = attrs.field(init=False)
    _profiles: ClusterProfiles = attrs.field(init=False)
    _controllers: tuple[Controller[ObjectKey], ...] = attrs.field(init=False)
    _services: tuple[Task, ...] = attrs.field(init=False)
    """What runs beside the controllers; nothing waits for it."""

    def __attrs_post_init__(self) -> None:
        """Build each part from those before it: work queues, caches with their handlers, workers, controllers."""
        settings, work, memory = self.settings, self._work, WorkloadMemory()
        backoffs = PartBackoffs(fraction=self.fraction)
        enqueue_quota = functools.partial(work.quotas.enqueue, after=BATCH)
        # They run with quota automation only: without it no queue is known, and `recompute` enqueues nothing.
        queues = QueueInformers.build(self.client, enqueue_quota, fraction=self.fraction, slim=False)
        recompute = functools.partial(enqueue_all, work.quotas, queues)
        build_cluster = functools.partial(
            ManagerCluster.build,
            self.client,
            self.adapters,
            before=self.before,
            controller_name=settings.plan.controller_name,
            namespace=settings.namespace,
            fraction=self.fraction,
        )
        manager_handlers = ManagerHandlers(
            work, memory, recompute, build_cluster, self.clock, self.hook, functools.partial(self._ask_again, backoffs)
        )
        cluster = self.cluster = manager_handlers.cluster
        worker_handlers = self._handlers = WorkerHandlers(cluster, work, memory, backoffs, recompute, self.hook)
        workers = self.workers = self._worker_pool(worker_handlers)
        files = KubeconfigFiles(
            cluster.kubeconfig_paths,
            manager_handlers.kubeconfig_changed,
            settings.kubeconfig_prefix,
            settings.kubeconfig_interval,
        )
        recorder = functools.partial(EventRecorder, self.client, instance=self.instance, clock=self.clock)
        events, cluster_events = recorder("kueue-workload-controller"), recorder("multikueue-cluster")
        target = functools.partial(_target, cluster, workers)
        effects = EffectExecutor(target, events, memory, self.hook, work.workloads.enqueue)
        executor = self._executor = WorkerExecutor(effects, worker_handlers.enqueue, backoffs)
        reader = SnapshotReader(cluster, workers, self.adapters, executor, memory)
        workloads = WorkloadReconciler(reader, executor, settings.plan, self.dispatcher, self.clock, self.hook)
        clusters = self._cluster_reconciler(files, cluster_events)
        checks = AdmissionCheckReconciler(cluster, self.clock)
        self._controllers = (
            self._controller("multikueue_workload", workloads, work.workloads, settings.concurrency),
            self._controller("multikueue_cluster", clusters, work.clusters, 8),
            self._controller("multikueue_admissioncheck", checks, work.checks),
        )
        self._services = (events.run, cluster_events.run, files.run)
        if settings.quota_automation:
            self._automate_quotas(queues)
        filling = fill_configs(self)
        self.spokes = filling.spokes
        self._controllers += filling.controllers
        self._services += filling.services

    def _automate_quotas(self, queues: QueueInformers) -> None:
        """Have quotas of ClusterQueues follow those of the workers."""
        timeout = self.settings.plan.worker_lost_timeout
        quotas = QuotaReconciler(self.cluster, self.workers, queues, timeout, self.clock)
        self._controllers += (self._controller("multikueue_clusterqueue", quotas, self._work.quotas),)
        self._services += (queues.run,)

    def _controller(
        self, name: str, reconciler: Reconciler[ObjectKey], queue: KeyQueue[ObjectKey], concurrency: int = 1
    ) -> Controller[ObjectKey]:
        jitter, hook = self.fraction, self.controller_hook
        return Controller(name, reconciler, queue=queue, concurrency=concurrency, fraction=jitter, hook=hook)

    def _cluster_reconciler(self, files: KubeconfigFiles, events: EventRecorder) -> ClusterReconciler:
        settings, cluster = self.settings, self.cluster
        self._profiles = ClusterProfiles(
            cluster, settings.profiles, settings.namespace, self._work.clusters.enqueue, self.client, self.fraction
        )
        return ClusterReconciler(
            cluster, self.workers, files, self._profiles, events, settings.namespace, self.clock, self.led_until
        )

    def _ask_again(self, backoffs: PartBackoffs, key: ObjectKey) -> None:
        """Forget why a Workload is not tried on workers: its user asks for that."""
        backoffs.forget(key)
        for worker in self.workers:
            if worker.known is not None:
                worker.known.create_conflicts.forget(key)

    def _worker_pool(self, handlers: WorkerHandlers) -> WorkerPool:
        informers = WorkerSettings(
            self.adapters,
            self.settings.plan.origin,
            on_workload=handlers.workload_changed,
            on_job=handlers.job_changed,
            on_queue=lambda _: handlers.recompute_quotas(),
            fraction=self.fraction,
            limits=self.settings.worker_limits,
        )
        return WorkerPool(self.connect, informers, self.clock, handlers.cluster_changed, handlers.status_changed)

    def __repr__(self) -> str:
        words = Counter(worker.state.connection.word for worker in self.workers)
        counts = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
        waiting = sum(queue.ready_or_delayed for queue in self.statistics().values())
        workloads, workers = len(self.cluster.workloads.informer), f"{words.total()} workers{counts and ': ' + counts}"
        return f"<Manager {workloads} workloads, {workers}; {waiting} keys waiting>"

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Dispatch until cancelled or drained; ready once the manager's caches are complete."""
        client = self.client
        opening = client if isinstance(client, KubeClient) and not client.opened else nullcontext()
        async with opening, anyio.create_task_group() as tasks:
            await tasks.start(self.cluster.run)
            await tasks.start(self._profiles.run)
            await tasks.start(self._executor.run)
            for service in self._services:
                tasks.start_soon(service)
            if self.settings.gc_interval:
                tasks.start_soon(self._collect_garbage)
            # Only now: before the caches are complete, absence means nothing, and copies would be removed for it.
            await tasks.start(self.workers.run)
            async with anyio.create_task_group() as work:
                for controller in self._controllers:
                    work.start_soon(controller.run)
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

    def statistics(self) -> dict[str, QueueStatistics]:
        """The controllers' queues, by controller."""
        return {controller.name: controller.queue.statistics() for controller in self._controllers}

    async def _collect_garbage(self) -> None:
        since = now = loop_time()
        while True:
            await anyio.sleep(self.settings.gc_interval.total_seconds())
            since, now = now, loop_time()
            for worker in list(self.workers):
                found = list(dict.fromkeys(workloads_on(worker)))  # in an order that repeats
                for number, key in enumerate(found, 1):
                    if has_turn(key, since, now) or not self.cluster.runs_on(key, worker.name):
                        for concerned in self.cluster.with_successors(key):
                            self._handlers.enqueue(worker.name, concerned)
                    if number % BREATH == 0:
                        await anyio.lowlevel.checkpoint()


def _target(manager: ManagerCluster, workers: WorkerPool, cluster: ClusterName) -> Target | None:
    if cluster == MANAGER:
        return manager
    worker = workers.get(cluster)
    return worker.usable if worker is not None else None
