"""Which Workloads with something on a worker are planned without an event."""

from __future__ import annotations

import zlib
from typing import Final

from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import cluster_name, is_admitted, is_evicted, is_finished

ROUNDS: Final = 120
"""A Workload that runs where it should is planned once in so many rounds: every two hours, by Kueue's `gcInterval`."""


def runs_on(workload: Json) -> ClusterName | None:
    """The worker on which a Workload runs as it should.

    It is planned in a few rounds only: these are many, and a plan for each takes more CPU than all else. In all other
    states, and on all other workers, something may be left behind where it does not belong.
    """
    if not is_admitted(workload) or is_finished(workload) or is_evicted(workload) or is_terminating(workload):
        return None
    return cluster_name(workload)


def has_turn(key: ObjectKey, number: int) -> bool:
    """Whether a Workload that runs where it should is planned in the round of that number."""
    return zlib.crc32(key.name.encode()) % ROUNDS == number % ROUNDS
