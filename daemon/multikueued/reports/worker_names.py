"""How workers call namespaces and queues, by what MultiKueueClusters say."""

from __future__ import annotations

from multikueue.core.machinery.connection_facts import says_manager
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.worker_names import WorkerNames


def names_by(cluster: Json) -> WorkerNames:
    """How a worker calls namespaces and queues, by its MultiKueueCluster alone."""
    return WorkerNames.of(annotations_of(cluster), of_manager=says_manager(cluster))
