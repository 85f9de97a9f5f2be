"""Which Workloads with something on a worker are planned without an event."""

from __future__ import annotations

import zlib
from typing import Final

from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.workload_facts import WORKLOADS

PERIOD: Final = 7_200
"""Seconds in which a Workload that runs where it should is planned once, however many rounds there are in them."""


def runs_on(workload: Json) -> ClusterName | None:
    """The worker on which a Workload runs as it should.

    It is planned in a few rounds only: these are many, and a plan for each takes more CPU than all else. In all other
    states, and on all other workers, something may be left behind where it does not belong. One that shall leave its
    worker does not run where it should.
    """
    facts = WORKLOADS.of(workload)
    stays = facts.is_admitted and not (facts.is_finished or facts.is_evicted or facts.is_terminating or facts.leaves)
    return facts.cluster_name if stays else None


def has_turn(key: ObjectKey, since: float, now: float) -> bool:
    """Whether a Workload that runs where it should is planned in a round.

    Args:
        key: of the Workload.
        since: when the round before was, in seconds.
        now: when this one is.
    """
    moment = zlib.crc32(key.name.encode()) % PERIOD
    return (now - moment) // PERIOD > (since - moment) // PERIOD
