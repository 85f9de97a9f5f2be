"""What has happened to a Workload between two versions of it: for the log and the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypeAlias

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.workloads import (
    cluster_name,
    finish_reason,
    is_finished,
    is_replaced,
    nominated,
    reserved_at,
)
from multikueue.core.workload.history import last_place, placement_of


@attrs.frozen
class Offered:
    """A dispatcher has chosen workers beyond those so far: a round."""

    workers: tuple[str, ...]


@attrs.frozen
class Placed:
    """A worker was recorded."""

    worker: ClusterName
    seconds: float | None
    """Since the Workload got its quota; None if that cannot be read."""
    moved_from: ClusterName | None = None
    """The worker that had it before, if it is another one."""


@attrs.frozen
class JobEnded:
    """Its job has ended on the worker that had it."""

    worker: ClusterName
    seconds: float | None
    """Since it was placed there."""
    reason: str


Milestone: TypeAlias = Offered | Placed | JobEnded


def milestones(old: Json | None, new: Json | None, now: datetime) -> Iterator[Milestone]:
    """What has happened. A Workload that is seen for the first time is no news: its past was told by another process.

    Args:
        old: the Workload before; None for one that was not known.
        new: the Workload now; None for one that is gone.
        now: the manager's wall clock.
    """
    if old is None or new is None:
        return
    worker = cluster_name(new)
    added = tuple(name for name in nominated(new) if name not in nominated(old))
    if added and worker is None:
        yield Offered(added)
    if worker is not None and worker != cluster_name(old):
        before = cluster_name(old) or last_place(new)
        yield Placed(worker, _seconds(reserved_at(new), now), before if before != worker else None)
    if worker is not None and is_finished(new) and not is_finished(old) and not is_replaced(new):
        placed = placement_of(new)
        since = parse_timestamp(placed.since) if placed is not None else None
        yield JobEnded(worker, _seconds(since, now), finish_reason(new))


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max(0.0, (now - since).total_seconds())
