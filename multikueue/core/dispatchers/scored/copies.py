"""What a worker's Kueue says of the copy that it was offered."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from multikueue.core.dispatchers.dispatcher import Candidate
from multikueue.core.dispatchers.scored.facts import obstacle_of
from multikueue.core.model.conditions import UNSCHEDULABLE, changed_at, condition, find, is_true
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating
from multikueue.errors import Cause

REFUSALS: Final = frozenset({"ExceedsMaxQuota", "NoMatchingFlavor"})
"""Reasons of QuotaReserved that only a change of the queue ends. Kueue before 0.19 has none of them."""
UNPLACED: Final = "TopologyPlacementFailed"
"""There is quota for it, and no nodes for its pods as they are free now."""
PREEMPTING: Final = "WaitingForPreemptedWorkloads"
BLOCKED: Final = "BlockedOnPreemptionGates"


def refuses(worker: Candidate) -> bool:
    """Whether it will not take the Workload."""
    quota = find(worker.conditions, "QuotaReserved")
    return quota is not None and quota.get("status") != "True" and quota.get("reason") in REFUSALS


def is_unplaced(worker: Candidate) -> bool:
    """Whether nodes there have no place for its pods."""
    return (find(worker.conditions, "QuotaReserved") or {}).get("reason") == UNPLACED


def has_no_node(pod: Json) -> bool:
    """Whether a pod has quota, and no node has a place for it."""
    return (condition(pod, "PodScheduled") or {}).get("reason") == UNSCHEDULABLE and not is_terminating(pod)


def got_nodes(pods: Iterable[Json]) -> datetime | None:
    """When the last of them got a node; None: none has."""
    times = (changed_at(pod, "PodScheduled") for pod in pods if is_true(pod, "PodScheduled"))
    return max(filter(None, times), default=None)


def waits(worker: Candidate) -> bool:
    """Whether its Kueue has looked at it and has no room for it. One that preempts, or could, may have it soon."""
    quota = find(worker.conditions, "QuotaReserved")
    return quota is not None and quota.get("status") != "True" and not preempts(worker)


def has_quota(worker: Candidate) -> bool:
    """Whether it has taken it. Quota of a queue in which no copy starts counts only for one that has started before."""
    known = obstacle_of(worker)
    starts = known is None or known.why is not Cause.NEVER_STARTS
    wanted = "QuotaReserved" if starts else "Admitted"
    return (find(worker.conditions, wanted) or {}).get("status") == "True"


def preempts(worker: Candidate) -> bool:
    """Whether it has victims for it: it preempts, or would if its gate were open."""
    quota, blocked = find(worker.conditions, "QuotaReserved") or {}, find(worker.conditions, BLOCKED) or {}
    return worker.gate_open or quota.get("reason") == PREEMPTING or blocked.get("status") == "True"
