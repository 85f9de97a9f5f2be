"""What happens to Workloads, as lines of the log and as metrics: each placement, move and end once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from multikueue.core.changes import JobEnded, Milestone, Offered, Placed, WorkerFailed, milestones
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workload_facts import WORKLOADS
from multikueue.logs import get_logger
from multikueue.protocols import ManagerHook
from multikueue.runtime.caches.manager_cluster import ManagerCluster

log = get_logger(__name__)


@attrs.define(eq=False)
class TransitionLog:
    """Logs and counts what has happened between two versions of a Workload of ours, as its informer shows them."""

    manager: ManagerCluster
    clock: Callable[[], datetime]
    hook: ManagerHook | None = None

    def changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A Workload changed; None for one that is not there."""
        passed = list(milestones(old, new, self.clock()))
        if passed and new is not None and self.manager.has_our_check(new):
            for milestone in passed:
                self._tell(key, new, milestone)

    def _tell(self, key: ObjectKey, workload: Json, milestone: Milestone) -> None:
        match milestone:
            case Offered():
                if self.hook is not None:
                    self.hook.round_begun(WORKLOADS.of(workload).cluster_queue)
            case Placed(worker, seconds, moved_from):
                how = {"moved_from": moved_from} if moved_from is not None else {}
                log.info("moved" if how else "placed", **_job(key, workload), worker=worker, **_rounded(seconds), **how)
                if self.hook is not None and seconds is not None:
                    self.hook.placed(worker, seconds)
            case JobEnded(worker, seconds, reason):
                log.info("ended", **_job(key, workload), worker=worker, **_rounded(seconds), reason=reason)
            case WorkerFailed(worker):
                log.info("failed by its worker", **_job(key, workload), worker=worker)


def _job(key: ObjectKey, workload: Json) -> dict[str, str]:
    owned_by = WORKLOADS.of(workload).owner
    name = str(ObjectKey(key.namespace, owned_by.name)) if owned_by is not None else ""
    return {"job": f"{owned_by.gvk.kind} {name}" if owned_by is not None else "", "workload": str(key)}


def _rounded(seconds: float | None) -> dict[str, float]:
    return {} if seconds is None else {"seconds": round(seconds, 3)}
