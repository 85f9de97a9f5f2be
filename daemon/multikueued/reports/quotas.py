"""What a worker has for this manager's jobs: quota, and what of it is in use, by everybody there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import thousandths, written
from multikueued.reports.published import Published

NOBODY_SAW = "the daemon has not published it, or you may not read that"


@attrs.frozen
class FlavorQuota:
    """Quota of one resource in one flavor of a worker, in all those ClusterQueues."""

    flavor: str
    resource: str
    used: str
    total: str


@attrs.frozen
class WorkerQuota:
    """Quota of one worker, in the ClusterQueues that the manager's LocalQueues have twins for."""

    used: Mapping[str, str] = attrs.field(factory=dict)
    """By resource, of all jobs there."""
    total: Mapping[str, str] = attrs.field(factory=dict)
    """Nominal quota, by resource."""
    flavors: tuple[FlavorQuota, ...] = ()
    """The same by flavor."""
    at: datetime | None = None
    """When the daemon read it; null: it was not checked."""
    not_checked: str = ""
    """Why it is not known; empty: it is."""


def quota_of(published: Published | None, local_queues: Iterable[ObjectKey]) -> WorkerQuota:
    """What a worker has.

    Args:
        published: what the daemon has seen of the worker.
        local_queues: those of the manager that lead to it.
    """
    if published is None:
        return WorkerQuota(not_checked=NOBODY_SAW)
    queues = published.facts.queues
    if queues is None or published.quota_at is None:
        return WorkerQuota(not_checked=published.facts.queues_unseen or NOBODY_SAW)
    used, total = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for name in sorted({queues.local[key] for key in local_queues if key in queues.local}):
        queue = queues.cluster.get(name) or {}
        total.update(_nominal(queue))
        used.update(_by_flavor(dig(queue, "status", "flavorsUsage"), "total"))
    flavors = (
        FlavorQuota(flavor, name, written(name, used[flavor, name]), written(name, amount))
        for (flavor, name), amount in sorted(total.items())
    )
    counted = {key: used[key] for key in total}
    return WorkerQuota(amounts(_by_resource(counted)), amounts(_by_resource(total)), tuple(flavors), published.quota_at)


def nominal(queue: Json) -> Counter[str]:
    """The nominal quota of a ClusterQueue by resource, in thousandths."""
    return _by_resource(_nominal(queue))


def _nominal(queue: Json) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for group in dig(queue, "spec", "resourceGroups") or []:
        total.update(_by_flavor(group.get("flavors"), "nominalQuota"))
    return total


def sums(flavors: Iterable[Json] | None, field: str) -> Counter[str]:
    """A field of all flavors by resource, in thousandths."""
    return _by_resource(_by_flavor(flavors, field))


def held(entries: Iterable[Json] | None, field: str) -> Counter[str]:
    """What entries together have of each resource in a field, in thousandths."""
    total: Counter[str] = Counter()
    for entry in entries or []:
        for resource, amount in (entry.get(field) or {}).items():
            total[resource] += thousandths(amount)
    return total


def _by_flavor(flavors: Iterable[Json] | None, field: str) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for flavor in flavors or []:
        for entry in flavor.get("resources") or []:
            total[str(flavor.get("name")), str(entry.get("name"))] += thousandths(entry.get(field) or 0)
    return total


def _by_resource(counted: Mapping[tuple[str, str], int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for (_, resource), amount in counted.items():
        total[resource] += amount
    return total


def amounts(counted: Mapping[str, int]) -> dict[str, str]:
    """Thousandths as Kubernetes writes them."""
    return {resource: written(resource, amount) for resource, amount in sorted(counted.items())}
