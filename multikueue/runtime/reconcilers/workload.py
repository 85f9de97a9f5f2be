"""Workloads: read a snapshot, plan, execute."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.machinery.action import Action
from multikueue.core.model.names import ObjectKey
from multikueue.core.workload.plan import plan
from multikueue.core.workload.snapshot import PlanSettings
from multikueue.logs import get_logger
from multikueue.runtime.job_event_handlers import log_problems
from multikueue.runtime.snapshots import SnapshotReader
from multikueue.runtime.worker_executor import WorkerExecutor

log = get_logger(__name__)


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
        snapshot = self.reader.read(key)
        decision = plan(snapshot, self.clock(), self.settings, self.dispatcher)
        log_problems(self.reader.adapters.problems)
        if decision.effects:
            log.debug("plan", row=decision.row, effects=[type(effect).__name__ for effect in decision.effects])
            await self.executor.execute(key, snapshot.workload, decision.effects)
        return Action.earliest(decision.look_again)
