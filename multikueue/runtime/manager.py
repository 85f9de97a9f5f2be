"""The manager: caches, worker pool and controllers put together. What a daemon runs and a library user imports."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import anyio
import anyio.abc
import attrs

from multikueue.adapters import AdapterRegistry
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Dispatcher
from multikueue.core.machinery.queue import QueueStatistics
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.workload.snapshot import PlanSettings
from multikueue.logs import get_logger
from multikueue.protocols import ApiClient
from multikueue.runtime.cluster_pool import Connect
from multikueue.runtime.controller import Controller, ControllerHook, Reconciler
from multikueue.runtime.effect_executor import EffectExecutor, Target
from multikueue.runtime.event_handlers import EventHandlers
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.hooks import ManagerHook
from multikueue.runtime.kubeconfig_files import INTERVAL, KUBECONFIG_PREFIX, KubeconfigFiles
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.queue_informers import Queues
from multikueue.runtime.reconcilers.admission_check import AdmissionCheckReconciler
from multikueue.runtime.reconcilers.cluster import ClusterReconciler
from multikueue.runtime.reconcilers.quota import BATCH, QuotaReconciler
from multikueue.runtime.reconcilers.workload import WorkloadReconciler
from multikueue.runtime.snapshots import SnapshotReader
from multikueue.runtime.worker_executor import WorkerExecutor
from multikueue.runtime.worker_informers import WorkerSettings
from multikueue.runtime.worker_pool import WorkerCluster, WorkerPool
from multikueue.runtime.workload_memory import WorkloadMemory

log = get_logger(__name__)

_Keys: TypeAlias = Controller[ObjectKey]


@attrs.frozen
class ManagerSettings:
    """What an operator can choose about a manager."""

    plan: PlanSettings = attrs.field(factory=PlanSettings)
    namespace: str = "kueue-system"
    """Where the kubeconfig Secrets are: Kueue's own namespace."""
    gc_interval: timedelta = timedelta(minutes=1)
    """How often all copies are looked at again, from the caches; 0 turns it off. Changes are followed at once anyhow,
    so this only mends what an error left behind. Kueue's default."""
    concurrency: int = 32
    """Workloads worked on at a time. They wait for API servers most of the time, so this bounds requests in flight."""
    kubeconfig_prefix: str = KUBECONFIG_PREFIX
    """The only folder kubeconfig files are read from; Kueue's. A MultiKueueCluster may name a file below it."""
    kubeconfig_interval: float = INTERVAL
    """Seconds between two looks at those files."""
    quota_automation: bool = False
    """Whether MultiKueueConfigs may ask for ClusterQueues of the manager to have the sum of the workers' quotas. Off as
    in Kueue: it changes the spec of ClusterQueues, and needs the permission to."""


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@attrs.define(eq=False)
class Manager:
    """Dispatches the workloads of one manager cluster.

    Nothing is done before `run`. While it runs, it expects to be the only one: run it under leader election.
    """

    client: ApiClient
    adapters: AdapterRegistry
    settings: ManagerSettings
    connect: Connect
    dispatcher: Dispatcher = attrs.field(factory=AllAtOnce, kw_only=True)
    hook: ManagerHook | None = attrs.field(default=None, kw_only=True)
    controller_hook: ControllerHook | None = attrs.field(default=None, kw_only=True)
    clock: Callable[[], datetime] = attrs.field(default=utc_now, kw_only=True)
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    """Where jitter comes from: numbers in [0, 1)."""
    instance: str = attrs.field(default="multikueue", kw_only=True)
    """Who writes the events: the process's name."""
    cluster: ManagerCluster = attrs.field(init=False)
    workers: WorkerPool = attrs.field(init=False)
    _events: EventRecorder = attrs.field(init=False)
    _cluster_events: EventRecorder = attrs.field(init=False)
    _files: KubeconfigFiles = attrs.field(init=False)
    _queues: Queues = attrs.field(init=False)
    _executor: WorkerExecutor = attrs.field(init=False)
    _memory: WorkloadMemory = attrs.field(factory=WorkloadMemory, init=False)
    _connected: set[ClusterName] = attrs.field(factory=set, init=False)
    _quotas: _Keys = attrs.field(init=False)
    _controllers: tuple[_Keys, ...] = attrs.field(init=False, default=())

    def __attrs_post_init__(self) -> None:
        handlers = EventHandlers(self.settings.plan.controller_name, self._memory)
        self.cluster = ManagerCluster.build(
            self.client,
            self.adapters,
            controller_name=self.settings.plan.controller_name,
            namespace=self.settings.namespace,
            changed=handlers.changed,
            fraction=self.fraction,
        )
        informers = WorkerSettings(
            self.adapters,
            self.settings.plan.origin,
            on_workload=handlers.remote_workload_changed,
            on_job=handlers.remote_job_changed,
            on_queue=self._queues_changed,
            fraction=self.fraction,
        )
        self.workers = WorkerPool(
            self.connect,
            informers,
            self.clock,
            on_cluster=functools.partial(self._cluster_changed, handlers),
            on_status=handlers.remote_status_changed,
        )
        self._files = KubeconfigFiles(
            self.cluster.kubeconfig_paths,
            handlers.kubeconfig_changed,
            self.settings.kubeconfig_prefix,
            self.settings.kubeconfig_interval,
        )
        self._events = EventRecorder(self.client, "kueue-workload-controller", self.instance, self.clock)
        self._cluster_events = EventRecorder(self.client, "multikueue-cluster", self.instance, self.clock)
        self._queues = Queues.build(self.client, self._queues_changed, fraction=self.fraction, slim=False)
        self._executor = WorkerExecutor(
            EffectExecutor(self, self._events, self._memory, self.hook), self._plan_again, fraction=self.fraction
        )
        workloads, clusters, checks, self._quotas = self._build_controllers(handlers)
        self._controllers = (workloads, clusters, checks)
        if self.settings.quota_automation:
            self._controllers += (self._quotas,)
        handlers.connect(self.cluster, workloads, clusters, checks, hook=self.hook, quotas=self._queues_changed)

    def _build_controllers(self, handlers: EventHandlers) -> tuple[_Keys, _Keys, _Keys, _Keys]:
        def controller(name: str, reconciler: Reconciler[ObjectKey], concurrency: int) -> Controller[ObjectKey]:
            return Controller(
                name, reconciler, concurrency=concurrency, fraction=self.fraction, hook=self.controller_hook
            )

        reader = SnapshotReader(self.cluster, self.workers, self.adapters, self._executor, self._memory)
        workloads = WorkloadReconciler(reader, self._executor, self.settings.plan, self.dispatcher, self.clock)
        clusters = ClusterReconciler(
            self.cluster, self.workers, self._files, self._cluster_events, self.settings.namespace, self.clock
        )
        quotas = QuotaReconciler(
            self.cluster, self.workers, self._queues, self.settings.plan.worker_lost_timeout, self.clock
        )
        return (
            controller("multikueue_workload", workloads, self.settings.concurrency),
            controller("multikueue_cluster", clusters, 8),
            controller("multikueue_admissioncheck", AdmissionCheckReconciler(self.cluster, self.clock), 1),
            controller("multikueue_clusterqueue", quotas, 1),
        )

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Dispatch until cancelled or drained; ready once the manager's caches are complete."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._events.run)
            tasks.start_soon(self._cluster_events.run)
            await tasks.start(self.cluster.run)
            await tasks.start(self._executor.run)
            tasks.start_soon(self._files.run)
            if self.settings.quota_automation:  # nothing waits for it: it must not hold up what needs no quota
                tasks.start_soon(self._queues.run)
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
        return {controller.name: controller.statistics() for controller in self._controllers}

    def target(self, cluster: ClusterName) -> Target | None:
        """See `effect_executor.Targets`."""
        if not cluster:
            return self.cluster
        remote = self.workers.get(cluster)
        return remote.usable if remote is not None else None

    def _plan_again(self, key: ObjectKey, after: float) -> None:
        self._controllers[0].enqueue(key, after)

    def _cluster_changed(self, handlers: EventHandlers, remote: WorkerCluster, known: bool) -> None:
        if remote.connection.connected:
            self._executor.connected(remote.name)
            if remote.name not in self._connected:
                self._memory.reconnected(remote.name)
            self._connected.add(remote.name)
        else:
            self._connected.discard(remote.name)
        handlers.remote_cluster_changed(remote, known=known)

    def _queues_changed(self) -> None:
        """Sums of quotas may be others. They are few and cheap to make, so all are made again."""
        if self.settings.quota_automation:
            for queue in self._queues.cluster_queues.values():
                self._quotas.enqueue(ObjectKey.of(queue), BATCH)

    async def _collect_garbage(self) -> None:
        workloads = self._controllers[0]
        while True:
            await anyio.sleep(self.settings.gc_interval.total_seconds())
            for remote in self.workers:
                for key in dict.fromkeys(remote.keys()):  # in an order that repeats
                    workloads.enqueue(key)
