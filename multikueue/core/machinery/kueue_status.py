"""What a MultiKueueCluster says of its worker's Kueue."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from multikueue.core.model.conditions import condition, new_condition, says_the_same
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.worker_kueue import WorkerKueue

KUEUE: Final = "multikueue.dev/KueueComplete"
"""A condition: whether the worker's Kueue has what copies may need."""


def kueue_status(cluster: Json, kueue: WorkerKueue, now: datetime) -> Json | None:
    """The condition that says what the worker's Kueue lacks, or None if the object says the same already.

    A worker that never lacked anything has none.

    Args:
        cluster: the MultiKueueCluster.
        kueue: what is known of the worker's.
        now: the manager's wall clock.
    """
    found, lacks = condition(cluster, KUEUE), "; ".join(kueue.lacks)
    if not lacks and (found is None or not kueue.read):
        return None
    said = (False, "Older", f"{kueue.name} there lacks {lacks}") if lacks else (True, "Complete", f"{kueue.name} there")
    wanted = new_condition(KUEUE, *said, now=now, generation=dig(cluster, "metadata", "generation"))
    return None if says_the_same(found, wanted) else wanted
