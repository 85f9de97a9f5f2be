"""MultiKueueClusters: what they carry of jobs that failed by their worker's fault."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.changes import JobEnded, WorkerFailed, milestones
from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION, WorkerVerdict, noted, together
from multikueue.core.machinery.action import Action
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, resource_version
from multikueue.errors import NotFound
from multikueue.logs import get_logger
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.controller import KeyQueue

log = get_logger(__name__)

PACE: Final = 10.0
"""Seconds for which ends are collected: a broken worker fails many jobs at a time."""


@attrs.define(eq=False)
class PenaltyReconciler:
    """Notes on a MultiKueueCluster whose jobs failed there by the worker's fault; one that succeeds clears that.

    A job that fails again says nothing of the next worker: two that run nowhere would give all of them a penalty.

    What has ended and is not written yet lies in memory: a restart in between forgets a failure, and no penalty.
    """

    manager: ManagerCluster
    queue: KeyQueue[ObjectKey]
    clock: Callable[[], datetime]
    _ended: dict[ObjectKey, tuple[WorkerVerdict, ...]] = attrs.field(factory=dict, init=False)
    """By MultiKueueCluster."""

    def changed(self, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """A Workload of the manager changed; None for one that is not there."""
        for milestone in milestones(old, new, self.clock()):
            match milestone:
                case WorkerFailed(worker, again=False) if new is not None and self.manager.has_our_check(new):
                    self._note(worker, key.namespace, failed=True)
                case JobEnded(worker, _, "Succeeded"):
                    self._note(worker, key.namespace, failed=False)

    def _note(self, worker: ClusterName, owner: str, *, failed: bool) -> None:
        key, verdict = ObjectKey("", worker), WorkerVerdict(owner, failed, self.clock())
        self._ended[key] = together(self._ended.get(key, ()), verdict)
        self.queue.enqueue(key, PACE)

    async def reconcile(self, key: ObjectKey) -> Action:
        """See `Reconciler`."""
        ended, cluster = self._ended.get(key, ()), self.manager.clusters.get(key)
        wanted = noted(annotations_of(cluster or {}).get(FAILURES_ANNOTATION), ended)
        if cluster is not None and wanted is not None:
            annotations = {FAILURES_ANNOTATION: wanted or None}
            patch = {"metadata": {"resourceVersion": resource_version(cluster), "annotations": annotations}}
            try:
                await self.manager.client.merge_patch(MULTIKUEUE_CLUSTER, key, patch)
                log.info("failures on a worker", cluster=key.name, noted=wanted or "none since a success")
            except NotFound:  # what it carried has gone with it
                pass
        left = tuple(verdict for verdict in self._ended.pop(key, ()) if verdict not in ended)
        if left:
            self._ended[key] = left
        return Action.done()
