"""Workers that are taken away under jobs: their cluster is being detached, or their MultiKueueCluster is gone."""

from __future__ import annotations

from typing import Final

from multikueue.core.model import workloads
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.giving_up import detached_at
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of
from multikueued.reports.answers import cluster_state
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.remedy import Finding, Remedy

DETACHED: Final = "worker-detached"
GONE: Final = "worker-gone"
_SINCE: Final = "the cluster of {worker} is being detached since {since}"
_CONNECTED: Final = Remedy(
    DETACHED,
    _SINCE + ": its jobs run on there, and once our credentials are gone nobody can stop or move them",
    "move them away while it can be reached: multikueue worker drain {worker} --move",
    blocking=False,
)
_STAYS: Final = Remedy(
    DETACHED,
    _SINCE
    + ": its jobs run on there, nobody can stop them, and they start elsewhere workerLostTimeout after it is gone",
    "nothing, if it is gone soon; if it is known to be dead, have that time run now: kubectl annotate "
    "multikueuecluster {worker} multikueue.dev/give-up-before=TIME",
    blocking=False,
)
_MOVES: Final = Remedy(
    DETACHED,
    _SINCE + "; it was lost before that, and its jobs start elsewhere at {moves}",
    "nothing, if it is dead",
    blocking=False,
)
_GONE: Final = Remedy(
    GONE,
    "{worker} has a job, and its MultiKueueCluster is gone: the daemon that saw it go follows the job while it can "
    "reach the worker; otherwise, also after a restart, the job starts elsewhere after workerLostTimeout",
    "if the cluster is still there, make its MultiKueueCluster again under that name: the job goes on",
    blocking=False,
)


def taken_away(worker: str, objects: ManagerObjects) -> Finding | None:
    """What is wrong with a worker that has a job, where somebody takes it away; None: nobody does.

    Args:
        worker: its name.
        objects: of the manager.
    """
    cluster = objects.clusters_by_name.get(worker)
    if cluster is None:
        return None if MULTIKUEUE_CLUSTER in objects.unread else _GONE.about(worker, "", {"worker": worker})
    since, said = detached_at(annotations_of(cluster)), cluster_state(cluster)
    if since is None:
        return None
    words = {"worker": worker, "since": timestamp(since)}
    if said.moves_at is not None:
        return _MOVES.about(worker, "", {**words, "moves": timestamp(said.moves_at)})
    return (_CONNECTED if said.connected else _STAYS).about(worker, "", words)


def jobs_on(worker: str, objects: ManagerObjects) -> list[Json]:
    """The Workloads that a worker has, and that have not ended."""
    known = objects.dispatched
    return [one for one in known if workloads.cluster_name(one) == worker and not workloads.is_finished(one)]
