"""Workers that are taken away under jobs: their cluster is being detached, or their MultiKueueCluster is gone."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.giving_up import detached_at
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.objects import annotations_of
from multikueued.reports.answers import cluster_state
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import Finding, finding

DETACHED: Final = "worker-detached"
GONE: Final = "worker-gone"


def taken_away(worker: str, objects: ManagerObjects) -> Finding | None:
    """What is wrong with a worker that has a job, where somebody takes it away; None: nobody does.

    Args:
        worker: its name.
        objects: of the manager.
    """
    cluster = objects.clusters_by_name.get(worker)
    if cluster is None and MULTIKUEUE_CLUSTER in objects.unread:
        return None
    if cluster is None:
        return finding(GONE, f"MultiKueueCluster {worker}", worker=worker)
    since, said = detached_at(annotations_of(cluster)), cluster_state(cluster)
    if since is None:
        return None
    how = "moves" if said.moves_at is not None else "connected" if said.connected else "stays"
    moves = timestamp(said.moves_at) if said.moves_at is not None else ""
    return finding(f"{DETACHED}@{how}", worker, worker=worker, since=timestamp(since), moves=moves)
