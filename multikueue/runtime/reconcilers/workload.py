"""Workloads: read, plan, execute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.effect_words import describe
from multikueue.core.machinery.action import Action
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.core.workload.effects import AnnounceWorkload, PatchJobStatus, Plan
from multikueue.core.workload.plan import guarded_plan
from multikueue.core.workload.seen.snapshot import PlanSettings, Snapshot
from multikueue.logs import get_logger
from multikueue.protocols import ManagerHook
from multikueue.runtime.job_event_handlers import log_problems
from multikueue.runtime.loop import loop_time
from multikueue.runtime.reconcilers.bodies import Bodies, with_bodies, without_bodies
from multikueue.runtime.reconcilers.long_looks import LongLooks
from multikueue.runtime.reconcilers.snapshot_reader import SnapshotReader
from multikueue.runtime.workers.executor import WorkerExecutor

log = get_logger(__name__)

BEHIND: Final = 0.5
"""Seconds after which the caches show what a body was read with."""


@attrs.define(eq=False)
class WorkloadReconciler:
    """Executes `multikueue.core.workload.plan.guarded_plan` for one Workload at a time."""

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
    _long_looks: LongLooks = attrs.field(factory=LongLooks, init=False)

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        if (rest := self._long_looks.rest(key)) > 0:
            return Action.after(rest)
        began = loop_time()
        # NO await between the snapshot and the first effect: the decision is about what the caches show now.
        try:
            snapshot = self.reader.look(key)
            behind_since = self.reader.memory.looked_at(key)
            decided = guarded_plan(snapshot, self.clock(), self.settings, self.dispatcher)
        except Exception as error:  # a defect: the controller logs it, and tries again with back-off
            note = f"It cannot be decided what to do ({type(error).__name__}), see the log of the controller"
            workload = self.reader.manager.workloads.get(key)
            await self.executor.execute(key, workload, (AnnounceWorkload("Warning", note),))
            raise
        self._long_looks.looked(key, _jobs(snapshot), began)
        if self.bodies is not None:
            if self.bodies.lacks(snapshot, decided):
                return await self._with_bodies(self.bodies, snapshot, decided)
            self.bodies.unneeded(key)
        return await self._carry_out(snapshot, decided, behind_since)

    async def _with_bodies(self, bodies: Bodies, slim: Snapshot, plan: Plan) -> Action:
        """Plan again with what the caches do not keep of the Workload and its jobs."""
        key = slim.key
        try:
            read_as = await bodies.take(slim)
            if read_as is None:
                await self.executor.execute(key, slim.workload, (*without_bodies(plan).effects, *bodies.tell(key)))
                return Action.earliest(plan.look_again, bodies.tell_in(key))
            # NO await between this and the first effect.
            snapshot = with_bodies(self.reader.look(key), read_as)
            if snapshot is None:
                return Action.after(BEHIND)
            planned = guarded_plan(snapshot, self.clock(), self.settings, self.dispatcher)
            return await self._carry_out(snapshot, planned, self.reader.memory.looked_at(key))
        finally:
            bodies.planned(key)

    async def _carry_out(self, snapshot: Snapshot, decision: Plan, behind_since: float | None) -> Action:
        key = snapshot.key
        self._log_left_out(key, decision.left_out)
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

    def _log_left_out(self, key: ObjectKey, left_out: Mapping[ClusterName, Exception]) -> None:
        """Log what a worker made the plan raise, once for as long as that lasts."""
        errors = {cluster: repr(error) for cluster, error in left_out.items()}
        logged = self._left_out.pop(key, {})
        for cluster, error in left_out.items():
            if logged.get(cluster) != errors[cluster]:
                log.error("worker left out of a plan", cluster=cluster, exc_info=error)
        if errors:
            self._left_out[key] = errors


def _jobs(snapshot: Snapshot) -> int:
    """How many jobs a Workload has, here and on workers."""
    return len(snapshot.jobs) + sum(len(worker.all_jobs) for worker in snapshot.workers)


def _syncs(plan: Plan) -> bool:
    return any(isinstance(effect, PatchJobStatus) for effect in plan.effects)
