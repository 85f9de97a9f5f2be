"""Which Workloads with something on a worker are planned without an event."""

from __future__ import annotations

import zlib
from typing import Final

from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import cluster_name, is_admitted, is_evicted, is_finished

ROUNDS: Final = 60
"""A Workload that runs where it should is planned once in so many rounds: every hour, by Kueue's `gcInterval`."""


def is_due(key: ObjectKey, workload: Json | None, worker: ClusterName, number: int) -> bool:
    """Whether to plan a Workload in a round.

    Something may be left behind wherever its job does not belong, so all of these are due in every round. Those that
    run on this worker are many, and a plan for each takes more CPU than all else; they take turns.

    Args:
        key: the Workload's.
        workload: as the manager has it; None: it does not, or it cannot be read.
        worker: where something of it is.
        number: of the round.
    """
    if workload is None or cluster_name(workload) != worker or not is_admitted(workload):
        return True
    if is_finished(workload) or is_evicted(workload) or is_terminating(workload):
        return True
    return zlib.crc32(str(key).encode()) % ROUNDS == number % ROUNDS
