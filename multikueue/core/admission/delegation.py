"""Which queues lead to worker clusters: LocalQueue, ClusterQueue, AdmissionCheck of ours."""

from __future__ import annotations

from typing import Protocol

from multikueue.core.config.quota import check_names
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig


class QueueView(Protocol):
    """The queues and checks of the manager, as far as they are known. What is not known is None."""

    def local_queue(self, key: ObjectKey) -> Json | None:
        """The LocalQueue of that namespace and name."""
        ...

    def cluster_queue(self, name: str) -> Json | None:
        """The ClusterQueue of that name."""
        ...

    def admission_check(self, name: str) -> Json | None:
        """The AdmissionCheck of that name."""
        ...


def leads_to_workers(queue: ObjectKey, view: QueueView, controller_name: str) -> bool:
    """Whether jobs of a LocalQueue are for us: one of its ClusterQueue's checks is ours.

    Args:
        queue: the LocalQueue.
        view: what is known.
        controller_name: `spec.controllerName` of our AdmissionChecks.
    """
    local_queue = view.local_queue(queue)
    cluster_queue = view.cluster_queue(dig(local_queue, "spec", "clusterQueue") or "")
    if cluster_queue is None:
        return False
    checks = (view.admission_check(name) for name in check_names(cluster_queue))
    return any(dig(check, "spec", "controllerName") == controller_name for check in checks)
