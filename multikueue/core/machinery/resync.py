"""Which Workloads with something on a worker are planned without an event."""

from __future__ import annotations

import zlib
from typing import Final

from multikueue.core.model.labels import MOVE_FROM_ANNOTATION
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, is_terminating
from multikueue.core.model.workloads import cluster_name, is_admitted, is_evicted, is_finished

PERIOD: Final = 7_200
"""Seconds in which a Workload that runs where it should is planned once, however many rounds there are in them."""


def runs_on(workload: Json) -> ClusterName | None:
    """The worker on which a Workload runs as it should.

    It is planned in a few rounds only: these are many, and a plan for each takes more CPU than all else. In all other
    states, and on all other workers, something may be left behind where it does not belong. One that shall leave its
    worker does not run where it should.
    """
    if MOVE_FROM_ANNOTATION in annotations_of(workload):
        return None
    if not is_admitted(workload) or is_finished(workload) or is_evicted(workload) or is_terminating(workload):
        return None
    return cluster_name(workload)


def has_turn(key: ObjectKey, since: float, now: float) -> bool:
    """Whether a Workload that runs where it should is planned in a round.

    Args:
        key: of the Workload.
        since: when the round before was, in seconds.
        now: when this one is.
    """
    moment = zlib.crc32(key.name.encode()) % PERIOD
    return (now - moment) // PERIOD > (since - moment) // PERIOD
