"""The loops of the small Kueue: decide, write, decide again from the answer, until there is nothing to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import CLUSTER_QUEUE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, pruned
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.injecting import Injection
from multikueue.sandbox.kueue.building import priority_class
from multikueue.sandbox.kueue.deciding_jobs import JobSituation, decide_job
from multikueue.sandbox.kueue.deciding_units import UnitSituation, decide_unit, surplus_workload
from multikueue.sandbox.kueue.deciding_workloads import Situation, decide_workload
from multikueue.sandbox.kueue.effects import Decision, Delete, Replace, Rest, Step
from multikueue.sandbox.kueue.performing import Performer
from multikueue.sandbox.kueue.scheduling.podsets import injections
from multikueue.sandbox.kueue.scheduling.queues import cluster_queue_status, local_queue_status
from multikueue.sandbox.kueue.stores import Stores

_MAX_STEPS = 20  # writes in a row about one object; more means that two rules disagree
_CLASS_RETRY = 1.0  # seconds until a missing priority class is looked for again

Clock = Callable[[], datetime]


@attrs.define(eq=False)
class Reconciler(ABC):
    """Decides, writes, and decides again from the answer."""

    stores: Stores
    performer: Performer
    clock: Clock

    async def reconcile(self, key: ObjectKey) -> Action:
        """Bring one object forward."""
        for _ in range(_MAX_STEPS):
            match self.decide(key):
                case None:
                    return Action.done()
                case Rest(after, notes):
                    for note in notes:
                        self.performer.recorder.record(note, once=True)
                    return Action.done() if after is None else Action.after(after)
                case Step() as step:
                    await self.performer.perform(step)
                    if isinstance(step.request, Delete):
                        return Action.done()  # there is no answer to decide from: the watch will tell
        raise AssertionError(f"no rest after {_MAX_STEPS} writes")

    @abstractmethod
    def decide(self, key: ObjectKey) -> Decision | None:
        """The next thing to do; None where there is nothing of that key."""

    def injections(self, workload: Json | None) -> Callable[[], dict[str, Injection]]:
        """What admission puts into the pods of a Workload, for who needs it."""
        return lambda: injections(workload or {}, self.stores.flavors_of(workload or {}))


@attrs.define(eq=False)
class WorkloadReconciler(Reconciler):
    """What Kueue's core does about Workloads."""

    pods_ready_timeout: timedelta | None = None

    def decide(self, key: ObjectKey) -> Decision | None:
        """See `Reconciler`."""
        workload = self.stores.workload(key)
        if workload is None:
            return None
        orphaned = self.stores.is_orphaned(workload)
        configuration, now = self.stores.configuration, self.clock()
        return decide_workload(Situation(workload, configuration, now, orphaned, self.pods_ready_timeout))


@attrs.define(eq=False)
class JobReconciler(Reconciler):
    """What Kueue does about the jobs of one kind."""

    kind: SandboxKind

    def decide(self, key: ObjectKey) -> Decision | None:
        """See `Reconciler`."""
        job = self.stores.objects[self.kind.resource].get(key)
        if job is None:
            return None
        workload = self.stores.workload_of(self.kind, job)
        priority = self.stores.priority_of(job)
        if workload is None and priority is None and priority_class(job):
            return Rest(after=_CLASS_RETRY)
        return decide_job(
            JobSituation(
                kind=self.kind,
                job=job,
                workload=workload,
                now=self.clock(),
                replaced=None if prebuilt_workload(job) else self.stores.replaced_of(workload),
                priority=priority or 0,
                injections=self.injections(workload),
            )
        )


@attrs.define(eq=False)
class UnitReconciler(Reconciler):
    """What Kueue does about gated pods. Keys are those of their Workloads, there or not."""

    def decide(self, key: ObjectKey) -> Decision | None:
        """See `Reconciler`."""
        unit, workload = self.stores.unit(key), self.stores.workload(key)
        if not unit.owners and not unit.group:
            return surplus_workload(workload) if workload and self.stores.is_surplus(key, workload) else None
        return decide_unit(UnitSituation(unit, workload, self.clock(), self.injections(workload)))


@attrs.define(eq=False)
class QueueReconciler:
    """Writes the status of ClusterQueues and LocalQueues."""

    stores: Stores
    performer: Performer
    clock: Clock

    async def reconcile(self, key: tuple[Resource, ObjectKey]) -> Action:
        """Write the status of one queue, if it has changed."""
        resource, name = key
        queue = self.stores.objects[resource].get(name)
        if queue is None:
            return Action.done()
        status = self._status(resource, queue)
        if pruned(status) != pruned(queue.get("status")):
            await self.performer.perform(Step(Replace(resource, {**queue, "status": status}, "status")))
        return Action.done()

    def _status(self, resource: Resource, queue: Json) -> Json:
        stores, now = self.stores, self.clock()
        if resource == CLUSTER_QUEUE:
            local_queues = stores.queues_of(queue["metadata"]["name"])
            return cluster_queue_status(queue, local_queues, stores.configuration, stores.ledger, now)
        behind = stores.cluster_queue(dig(queue, "spec", "clusterQueue") or "")
        return local_queue_status(queue, behind, stores.configuration, stores.ledger, now)
