"""What the difference between two versions of a Workload means: who else is looked at, and what has happened.

A decision looks at one state and compares no versions. What has happened is for the log and the metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.labels import PLACEMENTS_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.placements import FAULT, last_place, placement_of, placements
from multikueue.core.model.workload_facts import WORKLOADS, may_have_siblings


def affected(old: Json | None, new: Json | None, siblings: Sequence[Json]) -> list[Json]:
    """The siblings to reconcile after this change: as few as possible, since a group may have thousands.

    Args:
        old: the Workload before; None if it is new.
        new: the Workload now; None if it is gone.
        siblings: the other Workloads of its job.
    """
    changed = new or old
    if changed is None or not may_have_siblings(changed) or _shown(old) == _shown(new):
        return []
    if workloads.is_elastic(changed):
        return list(siblings)
    place = workloads.cluster_name(changed) or (workloads.cluster_name(old) if old is not None else None)
    if place is None:  # it was created or deleted without a worker: the group may be complete now
        return sorted(siblings, key=lambda sibling: workloads.component_index(sibling) or 0)[:1]
    if any(workloads.cluster_name(sibling) == place for sibling in siblings):
        return []  # the group was on that worker before, and still is
    return list(siblings)


def _shown(workload: Json | None) -> tuple[object, ...]:
    return (workloads.cluster_name(workload), workloads.is_replaced(workload)) if workload is not None else ()


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


@attrs.frozen
class WorkerFailed:
    """A placement has ended by the worker's fault."""

    worker: ClusterName
    again: bool = False
    """Whether the job has failed so before, as far as its Workload remembers: then the job may be to blame."""


Milestone: TypeAlias = Offered | Placed | JobEnded | WorkerFailed


def milestones(old: Json | None, new: Json | None, now: datetime) -> Iterator[Milestone]:
    """What has happened. A Workload that is seen for the first time is no news: its past was told by another process.

    Args:
        old: the Workload before; None for one that was not known.
        new: the Workload now; None for one that is gone.
        now: the manager's wall clock.
    """
    if old is None or new is None:
        return
    was, facts = WORKLOADS.of(old), WORKLOADS.of(new)
    worker = facts.cluster_name
    added = tuple(name for name in facts.nominated if name not in was.nominated)
    if added and worker is None:
        yield Offered(added)
    if worker is not None and worker != was.cluster_name:
        before = was.cluster_name or last_place(new)
        yield Placed(worker, _seconds(facts.reserved_at, now), before if before != worker else None)
    if worker is not None and facts.is_finished and not was.is_finished and not facts.is_replaced:
        placed = placement_of(new)
        since = parse_timestamp(placed.since) if placed is not None else None
        yield JobEnded(worker, _seconds(since, now), workloads.finish_reason(new))
    if annotations_of(old).get(PLACEMENTS_ANNOTATION) != annotations_of(new).get(PLACEMENTS_ANNOTATION):
        noted, failed = placements(new), last_place(new)
        if failed is not None and noted[-1:] != placements(old)[-1:] and noted[-1].get("fault") == FAULT:
            yield WorkerFailed(failed, again=any(placement.get("fault") == FAULT for placement in noted[:-1]))


def _seconds(since: datetime | None, now: datetime) -> float | None:
    return None if since is None else max(0.0, (now - since).total_seconds())
