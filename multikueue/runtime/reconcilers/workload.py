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
    _problems: dict[ObjectKey, tuple[str, ...]] = attrs.field(factory=dict, init=False)

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        # NO await between the snapshot and the first effect: the decision is about what the caches show now.
        snapshot = self.reader.read(key)
        decision = plan(snapshot, self.clock(), self.settings, self.dispatcher)
        self._log_problems(key, decision.problems)
        effects = (*decision.effects, *self.reader.faults(snapshot, decision.problems))
        if effects:
            log.debug("plan", row=decision.row, effects=[type(effect).__name__ for effect in effects])
            await self.executor.execute(key, snapshot.workload, effects)
        return Action.earliest(decision.look_again)

    def _log_problems(self, key: ObjectKey, problems: tuple[str, ...]) -> None:
        """Log rules that fail for this job, once; its user is told by events."""
        for problem in problems:
            if problem not in self._problems.get(key, ()):
                log.warning("rule failed", workload=str(key), error=problem)
        self._problems.pop(key, None)
        if problems:
            self._problems[key] = problems
