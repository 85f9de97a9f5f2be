"""Which workers cannot be offered a Workload, and why; and how much room those have that can."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate, Known
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored import copies
from multikueue.core.dispatchers.scored.facts import FlavorAmounts, QueueFacts, ResourceRequest, obstacle_of, room_of
from multikueue.core.dispatchers.scored.job_annotations import Narrowing, flavors
from multikueue.core.dispatchers.scored.room import placed, unknown
from multikueue.core.dispatchers.scored.state import QueueRefusal
from multikueue.core.model.names import ClusterName
from multikueue.core.model.quantities import written
from multikueue.errors import Cause

REFUSED_FOR: Final = timedelta(hours=1)


class Tier(IntEnum):
    """How sure it is that a worker takes the Workload; the smallest is best."""

    ROOM = 0
    RACE = 1
    """Quota says nothing."""
    DOUBT = 2
    """There is room, and it has not taken the Workload in time: what is free may not be for its pods."""
    PREEMPTION = 3
    """It could preempt for it, as far as we see."""
    PROBE = 4
    """It may preempt; nothing says that it can."""
    NONE = 5


@attrs.frozen
class FilteredWorkload:
    """What the Workload is, for the filter."""

    request: ResourceRequest | None
    priority: int
    narrowing: Narrowing
    company: ClusterName | None
    refused: tuple[QueueRefusal, ...]
    flavors: frozenset[str] = frozenset()
    """That the manager gave it."""
    doubted: frozenset[str] = frozenset()
    """Those it has been offered to for long enough."""


def obstacle(worker: Candidate, wanted: FilteredWorkload, now: datetime) -> Reason | None:
    """Why a worker cannot get the Workload whatever is free there; None: it can.

    What failed before is not in here: it depends on the others.
    """
    known, room = obstacle_of(worker), room_of(worker)
    if known is not None:
        return known
    if not worker.available:
        return Reason(Cause.OUT_OF_REACH)
    excluded = wanted.narrowing.excludes(worker.name, worker.labels, worker.annotations, wanted.company)
    if excluded is not None:
        return excluded
    theirs = flavors(worker.annotations)
    if theirs is not None and not wanted.flavors <= theirs:
        return Reason(Cause.OTHER_FLAVOR)
    queue = room.queue
    if queue is None:
        return None
    if not queue.active:
        return Reason(Cause.QUEUE_INACTIVE)
    if copies.refuses(worker) or any(_holds(refusal, worker, queue, now) for refusal in wanted.refused):
        return Reason(Cause.REFUSED)
    if (
        not queue.is_raced
        and wanted.request is not None
        and placed(wanted.request, queue.groups, queue.ceiling) is None
    ):
        return Reason(Cause.NEVER_FITS, _never(wanted.request, queue))
    return None


def tier(worker: Candidate, wanted: FilteredWorkload, now: datetime) -> tuple[Tier, Reason | None]:
    """How sure it is that a worker without obstacle takes the Workload, and why it is not surer."""
    room, request = room_of(worker), wanted.request
    queue = room.queue
    if queue is not None and queue.known is Known.AWAITED:
        return Tier.NONE, Reason(Cause.FIGURES_AWAITED)
    if queue is None or queue.is_raced or request is None or unknown(request, queue.groups):
        return Tier.RACE, None
    if queue.on_trial(now) and not worker.nominated:
        return Tier.NONE, Reason(Cause.ON_TRIAL)
    others = queue.others_wait(now)
    free = queue.free if room.net is None else room.net
    if not others and placed(request, queue.groups, free) is not None:
        if copies.is_unplaced(worker) or not queue.places(request, now):
            return Tier.DOUBT, Reason(Cause.NO_NODES)
        if worker.name in wanted.doubted:
            return Tier.DOUBT, None
        if not (worker.nominated and copies.waits(worker)):  # else the figures are older than what its Kueue says
            return Tier.ROOM, None
    reason = _short(request, queue, free, others=others)
    if _evident(queue, request, wanted.priority) or (worker.nominated and copies.preempts(worker)):
        return Tier.PREEMPTION, reason
    if queue.may_preempt:
        return Tier.PROBE if room.leads else Tier.NONE, reason
    return Tier.NONE, reason


def _evident(queue: QueueFacts, request: ResourceRequest, priority: int) -> bool:
    """Whether enough would be free if the worker preempted what we know of."""
    freed = dict(queue.free)
    if queue.within != "Never":
        for ours in queue.running:
            if ours.priority < priority:
                _add(freed, ours.amounts)
    if queue.reclaim != "Never":
        _add(freed, queue.lent)
    return freed != queue.free and placed(request, queue.groups, freed) is not None


def _add(total: dict[tuple[str, str], int], more: FlavorAmounts) -> None:
    for key, amount in more.items():
        total[key] = total.get(key, 0) + amount


def _holds(refusal: QueueRefusal, worker: Candidate, queue: QueueFacts, now: datetime) -> bool:
    same = refusal.worker == worker.name and refusal.generation == queue.generation
    return same and timedelta(0) <= now - refusal.at < REFUSED_FOR


def _never(request: ResourceRequest, queue: QueueFacts) -> str:
    return f"no flavor could ever hold {_scarcest(request, queue, queue.ceiling) or 'the job'}"


def _short(request: ResourceRequest, queue: QueueFacts, free: FlavorAmounts, *, others: bool) -> Reason:
    if others:
        return Reason(Cause.OTHERS_WAIT, f"{queue.others_pending} jobs of others wait there")
    unclaimed = free is not queue.free and placed(request, queue.groups, queue.free) is not None
    if unclaimed:
        return Reason(Cause.CLAIMED)
    return Reason(Cause.NO_ROOM, f"needs {_scarcest(request, queue, free) or 'more than is free'}")


def _scarcest(request: ResourceRequest, queue: QueueFacts, free: FlavorAmounts) -> str:
    """The first resource that no flavor has enough of: `8 nvidia.com/gpu, 4 of a100`."""
    for pod_set in request.pod_sets:
        for resource, amount in sorted(pod_set.needs.items()):
            for group in queue.groups:
                if resource not in group.resources or not amount:
                    continue
                there = [(free.get((flavor, resource), 0), flavor) for flavor in group.usable(pod_set.pods)]
                if not there:
                    return "pods with its node selector, affinity and tolerations"
                if (most := max(there))[0] < amount:
                    return f"{written(resource, amount)} {resource}, {written(resource, max(0, most[0]))} of {most[1]}"
    return ""
