"""The small Kueue itself: caches, controllers, and what a change of one object means for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    WORKLOAD,
)
from multikueue.core.model.labels import GROUP_WORKLOAD_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.workloads import is_active, is_evicted
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.kinds import KINDS, SandboxKind, completed
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kueue.assigning import Scheduler
from multikueue.sandbox.kueue.performing import Performer, Recorder, typed
from multikueue.sandbox.kueue.reconcilers import JobReconciler, QueueReconciler, UnitReconciler, WorkloadReconciler
from multikueue.sandbox.kueue.stores import Stores

_STATUS_DELAY = 0.1  # seconds over which changes of a queue's numbers are gathered into one write
_UNNOTICED = (
    15.0  # seconds until something else has Kueue look at pods whose eviction it has not noticed: 14 to 21 seen
)


@attrs.define(eq=False)
class SmallKueue:
    """A Kueue for the sandbox: an ordinary client of one API server.

    The same one serves a manager (whose MultiKueue gate is off: our controllers own the admission check) and a worker.
    """

    client: ApiClient
    """Its writes should be known to the server as `kueue`'s."""
    clock: Callable[[], datetime] = attrs.field(default=utc_now, kw_only=True)
    """The wall clock that goes into conditions."""
    kinds: Sequence[SandboxKind] = attrs.field(default=KINDS, kw_only=True)
    concurrency: int = attrs.field(default=8, kw_only=True)
    """Objects of one kind worked on at a time."""
    events: bool = attrs.field(default=True, kw_only=True)
    """Whether to write Event objects; a large fleet does without."""
    pods_ready_timeout: timedelta | None = attrs.field(default=None, kw_only=True)
    """For how long admitted Workloads may be without ready pods (`waitForPodsReady.timeout`); None: for ever."""
    stores: Stores = attrs.field(init=False)
    _recorder: Recorder = attrs.field(init=False)
    _workloads: Controller[ObjectKey] = attrs.field(init=False)
    _jobs: dict[Resource, Controller[ObjectKey]] = attrs.field(init=False)
    _units: Controller[ObjectKey] = attrs.field(init=False)
    _scheduler: Controller[str] = attrs.field(init=False)
    _queues: Controller[tuple[Resource, ObjectKey]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        stores = self.stores = Stores(completed(self.kinds))
        self._recorder = Recorder(self.client, self.clock, self.events)
        performer = Performer(self.client, self._recorder, self._observe)
        self._workloads = Controller(
            "kueue-workload",
            WorkloadReconciler(stores, performer, self.clock, self.pods_ready_timeout),
            concurrency=self.concurrency,
        )
        self._jobs = {
            kind.resource: Controller(
                f"kueue-{kind.resource}",
                JobReconciler(stores, performer, self.clock, kind),
                concurrency=self.concurrency,
            )
            for kind in self.kinds
            if not kind.gated
        }
        self._units = Controller(
            "kueue-pods", UnitReconciler(stores, performer, self.clock), concurrency=self.concurrency
        )
        self._scheduler = Controller("kueue-scheduler", Scheduler(stores, performer, self.clock))
        self._queues = Controller("kueue-queues", QueueReconciler(stores, performer, self.clock))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once everything there is has been seen."""
        caches = [
            Informer(self.client, resource, on_change=partial(self._changed, resource))
            for resource in self.stores.resources
        ]
        async with anyio.create_task_group() as tasks:
            await start_informers(caches, tasks)
            for controller in self._controllers:
                tasks.start_soon(controller.run)
            tasks.start_soon(self._recorder.run)
            task_status.started()

    @property
    def idle(self) -> bool:
        """Whether nothing is due."""
        return all(controller.idle for controller in self._controllers)

    @property
    def _controllers(self) -> list[Controller[Any]]:
        return [self._workloads, self._scheduler, self._queues, self._units, *self._jobs.values()]

    def _changed(self, resource: Resource, _key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if new is not None:
            self._observe(resource, typed(resource, new))
        elif old is not None:
            self._removed(resource, old)

    def _observe(self, resource: Resource, obj: Json) -> None:
        if resource == WORKLOAD:
            news = self.stores.ledger.observe(obj)
            if news.fresh:
                self._workload_changed(obj, moved=news.moved)
            return
        store = self.stores.objects[resource]
        before = store.get(ObjectKey.of(obj))
        if store.observe(obj):
            self._other_changed(resource, obj, before)

    def _removed(self, resource: Resource, obj: Json) -> None:
        if resource == WORKLOAD:
            news = self.stores.ledger.remove(obj)
            if news.fresh:
                self._workload_changed(obj, moved=news.moved)
        elif self.stores.objects[resource].remove(obj):
            self._other_changed(resource, obj, None)

    def _workload_changed(self, workload: Json, *, moved: bool) -> None:
        key = ObjectKey.of(workload)
        self._workloads.enqueue(key)
        owner = self.stores.job_of(workload)
        for kind, job in dict.fromkeys((*([owner] if owner else ()), *self.stores.jobs_waiting_for(key))):
            self._jobs[kind.resource].enqueue(job)
        if POD_RESOURCE in self.stores.objects:
            self._units.enqueue(key, _UNNOTICED if _goes_unnoticed(workload) else 0.0)
        name = self.stores.cluster_queue_name(workload)
        if not moved or not name:
            return
        self._schedule(name)
        queue = ObjectKey(key.namespace, dig(workload, "spec", "queueName") or "")
        self._queues.enqueue((CLUSTER_QUEUE, ObjectKey("", name)), _STATUS_DELAY)
        self._queues.enqueue((LOCAL_QUEUE, queue), _STATUS_DELAY)

    def _other_changed(self, resource: Resource, obj: Json, before: Json | None) -> None:
        """A job, or something an administrator made."""
        key = ObjectKey.of(obj)
        if resource in self._jobs:
            self._job_changed(resource, key, obj)
        elif any(kind.gated and kind.resource == resource for kind in self.stores.kinds):
            self._gated_changed(resource, obj, before)
        elif resource == LOCAL_QUEUE and _differ(obj, before):
            self._queue_changed(dig(obj, "spec", "clusterQueue") or "", only=key)
        elif resource == CLUSTER_QUEUE and _differ(obj, before):
            self._queue_changed(key.name)
        elif resource in (RESOURCE_FLAVOR, ADMISSION_CHECK):
            for queue in self.stores.objects[CLUSTER_QUEUE].by((resource, key.name)):
                self._queue_changed(queue["metadata"]["name"])
        elif resource in (NAMESPACE, COHORT):
            for queue in self.stores.objects[CLUSTER_QUEUE]:
                self._schedule(queue["metadata"]["name"])

    def _schedule(self, cluster_queue: str) -> None:
        """All queues of a cohort have one key."""
        self._scheduler.enqueue(self.stores.lenders(cluster_queue)[0])

    def _job_changed(self, resource: Resource, key: ObjectKey, job: Json) -> None:
        self._jobs[resource].enqueue(key)
        kind = next(kind for kind in self.kinds if kind.resource == resource)
        workload = self.stores.workload_of(kind, job)
        if workload is not None:  # it may have lost its job
            self._workloads.enqueue(ObjectKey.of(workload))

    def _gated_changed(self, resource: Resource, obj: Json, before: Json | None) -> None:
        for version in (obj, before):
            for key in self.stores.units_of(resource, version) if version is not None else ():
                self._units.enqueue(key)
                self._workloads.enqueue(key)  # it may have lost its pods

    def _queue_changed(self, name: str, *, only: ObjectKey | None = None) -> None:
        """Look at a ClusterQueue again, and at all Workloads in it, or in one of its LocalQueues."""
        self._schedule(name)
        self._queues.enqueue((CLUSTER_QUEUE, ObjectKey("", name)))
        queues = [only] if only else [ObjectKey.of(queue) for queue in self.stores.queues_of(name)]
        for queue in queues:
            self._queues.enqueue((LOCAL_QUEUE, queue))
        for key in self.stores.workloads_in(name, queues):
            self._workloads.enqueue(key)


def _goes_unnoticed(workload: Json) -> bool:
    """Whether nobody looks at the pods of an evicted Workload before one of them changes: a group's is found by an
    annotation, any other by its controller."""
    owners = dig(workload, "metadata", "ownerReferences") or []
    of_pods = bool(owners) and all(
        owner["kind"] == POD_RESOURCE.gvk.kind and not owner.get("controller") for owner in owners
    )
    goes = is_evicted(workload) or not is_active(workload)
    return of_pods and goes and GROUP_WORKLOAD_ANNOTATION not in annotations_of(workload)


def _differ(new: Json, old: Json | None) -> bool:
    """Whether more than the status has changed."""
    return old is None or any(
        dig(new, "metadata", field) != dig(old, "metadata", field) for field in ("generation", "deletionTimestamp")
    )
