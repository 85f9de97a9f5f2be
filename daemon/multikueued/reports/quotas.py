"""What a worker has for this manager's jobs: quota, and what of it is in use, by everybody there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import thousandths, written
from multikueued.doctor.published import Published

NOBODY_SAW = "the daemon has not published it, or you may not read that"


@attrs.frozen
class WorkerQuota:
    """Quota of one worker, in the ClusterQueues that the manager's LocalQueues have twins for."""

    used: Mapping[str, str] = attrs.field(factory=dict)
    """By resource, of all jobs there."""
    total: Mapping[str, str] = attrs.field(factory=dict)
    """Nominal quota, by resource."""
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
        told = [gap.why for gap in published.not_checked if gap.what.startswith(("quotas of", "queues and quotas of"))]
        return WorkerQuota(not_checked=told[0] if told else NOBODY_SAW)
    used, total = Counter[str](), Counter[str]()
    for name in sorted({queues.local[key] for key in local_queues if key in queues.local}):
        queue = queues.cluster.get(name) or {}
        total.update(nominal(queue))
        used.update(sums(dig(queue, "status", "flavorsUsage"), "total"))
    counted = {resource: used.get(resource, 0) for resource in total}
    return WorkerQuota(_amounts(counted), _amounts(total), published.quota_at)


def nominal(queue: Json) -> Counter[str]:
    """The nominal quota of a ClusterQueue by resource, in thousandths."""
    total: Counter[str] = Counter()
    for group in dig(queue, "spec", "resourceGroups") or []:
        total.update(sums(group.get("flavors"), "nominalQuota"))
    return total


def sums(flavors: Iterable[Json] | None, field: str) -> Counter[str]:
    """A field of all flavors by resource, in thousandths."""
    total: Counter[str] = Counter()
    for flavor in flavors or []:
        for entry in flavor.get("resources") or []:
            total[str(entry.get("name"))] += thousandths(entry.get(field) or 0)
    return total


def _amounts(counted: Mapping[str, int]) -> dict[str, str]:
    return {resource: written(resource, amount) for resource, amount in sorted(counted.items())}
