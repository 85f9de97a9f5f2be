"""From Kueue's objects to the values of this package. What cannot be read counts as absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from datetime import datetime
from typing import Any, Final

import attrs

from multikueue.core.config.quota import cohort_of, parent_of
from multikueue.core.dispatchers.dispatcher import Known
from multikueue.core.dispatchers.scored.facts import (
    Amounts,
    Flavored,
    Group,
    PodSet,
    QueueFacts,
    ResourceRequest,
    Running,
    still_unplaced,
    times_of_others,
)
from multikueue.core.dispatchers.scored.room import Node, Quota, Tree
from multikueue.core.dispatchers.scored.starts import Waited, size
from multikueue.core.model.conditions import changed_at, condition, is_true, parse_timestamp
from multikueue.core.model.flavors import Flavor, Pods
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of, uid
from multikueue.core.model.quantities import MILLI, thousandths
from multikueue.core.model.workloads import (
    cluster_name,
    cluster_queue,
    has_quota,
    is_live,
    is_replaced,
    pod_counts,
    reserved_at,
)

MAX_FLAVORS: Final = 64
"""A ClusterQueue's status lists no more."""


def figures(objects: Iterable[Json]) -> int:
    """How many figures ClusterQueues and Cohorts have, each of them itself counted as one."""
    return sum(1 + sum(map(len, _figures(obj))) for obj in objects)


def _figures(obj: Json) -> Iterator[Sized]:
    for group in dig(obj, "spec", "resourceGroups") or ():
        yield group.get("coveredResources") or ()
        yield from (flavor.get("resources") or () for flavor in group.get("flavors") or ())
    yield from (flavor.get("resources") or () for flavor in dig(obj, "status", "flavorsReservation") or ())


def tree(
    cluster_queues: Iterable[Json], cohorts: Iterable[Json] | None, flavors: Mapping[str, Flavor] | None = None
) -> Tree:
    """The tree of a worker's queues.

    Args:
        cluster_queues: all that the worker has.
        cohorts: likewise; None: we may not read them.
        flavors: its ResourceFlavors by name, as far as they are known.
    """
    queues = {
        name_of(queue): Node(cohort_of(queue) or None, _quotas(queue), _reserved(queue)) for queue in cluster_queues
    }
    above = {name_of(cohort): Node(parent_of(cohort) or None, _quotas(cohort)) for cohort in cohorts or ()}
    return Tree(queues, above, flavors or {}, readable=cohorts is not None)


def queue_facts(
    worker: Tree,
    cluster_queue: Json,
    now: datetime,
    *,
    known: Known = Known.YES,
    ours_pending: int = 0,
    ours: Iterable[Json] = (),
    before: QueueFacts | None = None,
    penalized_until: datetime | None = None,
) -> QueueFacts:
    """What is known of one ClusterQueue.

    Args:
        worker: the tree that it is in.
        cluster_queue: the object.
        now: the manager's wall clock.
        known: whether its figures can be used.
        ours_pending: how many copies of ours wait there.
        ours: our copies with quota there.
        before: what this function said the last time.
        penalized_until: of the worker.
    """
    name, ours = name_of(cluster_queue), tuple(ours)
    groups = tuple(_groups(cluster_queue, worker.flavors))
    others = _others(cluster_queue, "pendingWorkloads", ours_pending)
    waiting, shared = times_of_others(others, _others(cluster_queue, "reservingWorkloads", len(ours)), now, before)
    many = sum(len(group.flavors) for group in groups) > MAX_FLAVORS
    facts = QueueFacts(
        name,
        groups,
        free=worker.available(name),
        ceiling=worker.ceiling(name),
        nominal=worker.nominal(name),
        known=Known.TOO_MANY if many and known is Known.YES else known,
        active=is_true(cluster_queue, "Active"),
        has_checks=_has_checks(cluster_queue),
        others_pending=others,
        others_since=waiting,
        shared_since=shared,
        generation=f"{uid(cluster_queue)[:8]}.{dig(cluster_queue, 'metadata', 'generation') or 0}",
        within=dig(cluster_queue, "spec", "preemption", "withinClusterQueue") or "Never",
        reclaim=dig(cluster_queue, "spec", "preemption", "reclaimWithinCohort") or "Never",
        borrowable=worker.borrowable(name),
        lent=worker.lent(name),
        running=running(ours),
        penalized_until=penalized_until,
    )
    return attrs.evolve(facts, unplaced=still_unplaced(facts, before))


def request(workload: Json) -> ResourceRequest | None:
    """What a Workload needs at least, as the manager's Kueue has counted it; None if it has no quota."""
    assigned = dig(workload, "status", "admission", "podSetAssignments")
    if not assigned:
        return None
    counts = pod_counts(workload)
    asked = {pod_set.get("name"): pod_set for pod_set in dig(workload, "spec", "podSets") or []}
    return ResourceRequest(
        tuple(
            _pod_set(
                assignment.get("resourceUsage") or {},
                assignment.get("count") or counts.get(name, 1),
                asked.get(name) or {},
            )
            for assignment in assigned
            for name in (str(assignment.get("name")),)
        )
    )


def usage(workload: Json) -> dict[Flavored, int]:
    """What the admission of a Workload takes, by flavor and resource."""
    used: dict[Flavored, int] = {}
    for assignment in dig(workload, "status", "admission", "podSetAssignments") or []:
        amounts = _amounts(assignment.get("resourceUsage") or {})
        for resource, flavor in (assignment.get("flavors") or {}).items():
            used[str(flavor), str(resource)] = used.get((str(flavor), str(resource)), 0) + amounts.get(resource, 0)
    return used


def running(copies: Iterable[Json]) -> tuple[Running, ...]:
    """Copies with quota, those of one priority as one."""
    amounts_by_priority: dict[int, Counter[Flavored]] = {}
    for copy in copies:
        priority = int(dig(copy, "spec", "priority") or 0)
        amounts_by_priority.setdefault(priority, Counter()).update(usage(copy))
    return tuple(Running(priority, dict(amounts)) for priority, amounts in sorted(amounts_by_priority.items()))


def flavors(workload: Json) -> frozenset[str]:
    """The flavors of its admission."""
    return frozenset(flavor for flavor, _ in usage(workload))


def queued_at(workload: Json) -> datetime | None:
    """Kueue's queue timestamp: the last eviction by a check, else its creation."""
    evicted = condition(workload, "Evicted") or {}
    by_check = evicted.get("status") == "True" and evicted.get("reason") in ("AdmissionCheck", "PodsReadyTimeout")
    return parse_timestamp(
        evicted.get("lastTransitionTime") if by_check else dig(workload, "metadata", "creationTimestamp")
    )


def waited(workload: Json) -> Waited | None:
    """How a job waits for a worker, or has waited; None: it does neither, or that cannot be read."""
    needs, reserved, started = request(workload), reserved_at(workload), _started_at(workload)
    waits = started is None and has_quota(workload) and is_live(workload)
    if needs is None or reserved is None or is_replaced(workload) or not (waits or started):
        return None
    return Waited(ObjectKey.of(workload), cluster_queue(workload), size(needs.total), reserved, started)


def _started_at(workload: Json) -> datetime | None:
    """On the worker that is recorded."""
    is_there = is_true(workload, "Admitted") and cluster_name(workload) is not None
    return changed_at(workload, "Admitted") if is_there else None


def _pod_set(usage: Mapping[str, Any], count: int, asked: Json) -> PodSet:
    least, spec = asked.get("minCount"), dig(asked, "template", "spec")
    fewer = least if least is not None and 0 < least < count else count
    needs = {name: -(-amount * fewer // max(1, count)) for name, amount in _amounts(usage).items()}
    return PodSet({**needs, "pods": fewer * MILLI}, fewer, Pods.of(spec))


def _amounts(usage: Mapping[str, Any]) -> Amounts:
    return {str(name): _amount(value) for name, value in usage.items()}


def _groups(queue: Json, flavors: Mapping[str, Flavor]) -> Iterator[Group]:
    for group in dig(queue, "spec", "resourceGroups") or []:
        names = tuple(str(flavor.get("name")) for flavor in group.get("flavors") or [])
        known = tuple(flavors[name] for name in names if name in flavors)
        excluding = known if any(flavor.labels or flavor.taints for flavor in known) else ()
        yield Group(frozenset(map(str, group.get("coveredResources") or ())), names, excluding)


def _others(queue: Json, count: str, ours: int) -> int:
    """What the status of a queue counts beside our copies."""
    return max(0, int(dig(queue, "status", count) or 0) - ours)


def _quotas(obj: Json) -> dict[Flavored, Quota]:
    return {
        (str(flavor.get("name")), str(resource.get("name"))): Quota(
            _amount(resource.get("nominalQuota")),
            _limit(resource.get("borrowingLimit")),
            _limit(resource.get("lendingLimit")),
        )
        for group in dig(obj, "spec", "resourceGroups") or []
        for flavor in group.get("flavors") or []
        for resource in flavor.get("resources") or []
    }


def _reserved(queue: Json) -> dict[Flavored, int]:
    return {
        (str(flavor.get("name")), str(resource.get("name"))): _amount(resource.get("total"))
        for flavor in dig(queue, "status", "flavorsReservation") or []
        for resource in flavor.get("resources") or []
    }


def _has_checks(queue: Json) -> bool:
    listed = dig(queue, "spec", "admissionChecksStrategy", "admissionChecks") or dig(queue, "spec", "admissionChecks")
    return bool(listed)


def _limit(value: Any) -> int | None:
    return None if value is None else _amount(value)


def _amount(value: Any) -> int:
    try:
        return thousandths(value or 0)
    except ValueError:
        return 0
