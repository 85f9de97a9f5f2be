"""ManagedClusters that Placements select: their MultiKueueClusters, credentials and permissions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.spokes.effects import SpokePlan
from multikueue.core.spokes.plan import plan
from multikueue.core.spokes.settings import Source, SpokeSettings
from multikueue.core.spokes.spoke import Spoke
from multikueue.logs import get_logger
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.spokes.executor import SpokeExecutor
from multikueue.runtime.spokes.reading import REREAD, SpokeReader

DRAINING: Final = 5.0
"""Seconds between two looks whether a cluster that is not selected any more is still in use."""
log = get_logger(__name__)


@attrs.define(eq=False)
class SpokeReconciler:
    """Keeps what a spoke is made of in line with what Placements select."""

    reader: SpokeReader
    executor: SpokeExecutor
    events: EventRecorder
    settings: SpokeSettings
    clock: Callable[[], datetime]
    problems: dict[str, str] = attrs.field(factory=dict, init=False)
    """By spoke that is selected or in use, why it is no worker, or is not kept up."""

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`. The key is the name of a ManagedCluster."""
        if not self.reader.known:
            return Action.done()  # once it is, all are looked at
        spoke = await self.reader.read(key.name)
        now = self.clock()
        found = plan(spoke, self.settings, now)
        self._tell(spoke, found)
        for effect in found.effects:
            await self.executor.execute(key.name, effect)
        expires = (found.again - now).total_seconds() if found.again is not None else None
        rereads = self.settings.source is Source.KUBECONFIG and (spoke.wanted or found.draining)
        return Action.earliest(expires, DRAINING if found.draining else None, REREAD if rereads else None)

    def _tell(self, spoke: Spoke, found: SpokePlan) -> None:
        """Log a problem when it comes and when it is over, and tell it in an event."""
        before = self.problems.pop(spoke.name, "")
        if found.problem:
            self.problems[spoke.name] = found.problem
        if found.problem == before:
            return
        if not found.problem:
            log.info("spoke ready", spoke=spoke.name)
            return
        log.info("spoke not ready", spoke=spoke.name, why=found.problem)
        reason = "Conflict" if found.conflict is not None else "WorkerNotReady"
        others: list[Json] = [found.conflict.object] if found.conflict is not None else []
        for regarding in (spoke.managed, *others):
            if regarding is not None:
                self.events.emit(regarding, "Warning", reason, "Connect", found.problem)
