"""Of a worker's quota: what our jobs hold now, and what others held when the daemon last read it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import thousandths, written
from multikueued.reports.workers import WorkerReport

_BLUR: Final = timedelta(seconds=1)
"""Times have whole seconds: what may have been ours at a moment counts as ours."""
_LATE: Final = timedelta(seconds=10)
"""A worker has admitted a job before the manager knows: what came so soon after a moment counts as ours then, too."""
Amounts = Counter[tuple[str, str]]
"""Thousandths by resource and flavor."""


@attrs.define
class Share:
    """One resource in one flavor, of one worker or of several, in thousandths."""

    total: int = 0
    ours: int = 0
    """Now."""
    others: int = 0
    """When it was read."""
    workers: int = 0
    read_at: datetime | None = None
    """When the daemon read the oldest of these figures that has changed since."""

    def add(self, other: Share) -> None:
        """With another worker's."""
        self.total, self.ours = self.total + other.total, self.ours + other.ours
        self.others, self.workers = self.others + other.others, self.workers + other.workers
        known = [moment for moment in (self.read_at, other.read_at) if moment is not None]
        self.read_at = min(known, default=None)


Shares = dict[tuple[str, str], Share]
"""By resource and flavor of the worker."""


def shares_of(workers: Iterable[WorkerReport], listed: Iterable[Json]) -> dict[str, Shares]:
    """The shares of each worker whose quota is known.

    Args:
        workers: those of the fleet.
        listed: Workloads of the manager.
    """
    known = {worker.name: worker for worker in workers}
    read = {name: worker.quota.at for name, worker in known.items() if worker.quota.at is not None}
    now, then = _ours(listed, read)
    return {name: _shares(known[name], now[name], then[name]) for name in read}


def use_of_fleet(shares: Iterable[Shares]) -> list[Json]:
    """What is used of the fleet, by resource and flavor, as the API shows it."""
    sums: Shares = {}
    for own in shares:
        for key, share in own.items():
            sums.setdefault(key, Share()).add(share)
    return [
        {
            "resource": resource,
            "flavor": flavor,
            "workers": share.workers,
            **holdings(resource, share),
            "total": written(resource, share.total),
            "shares": [round(amount / share.total, 4) if share.total else 0 for amount in (share.ours, share.others)],
            "readAt": timestamp(share.read_at) if share.read_at is not None else None,
        }
        for (resource, flavor), share in sorted(sums.items())
    ]


def holdings(resource: str, share: Share) -> Json:
    """Whose it is, as Kubernetes writes amounts."""
    return {"ours": written(resource, share.ours), "others": written(resource, share.others)}


def _shares(worker: WorkerReport, now: Amounts, then: Amounts) -> Shares:
    flavors = Counter(quota.resource for quota in worker.quota.flavors)
    shares: Shares = {}
    for quota in worker.quota.flavors:
        own = [_own(held, quota.resource, quota.flavor, alone=flavors[quota.resource] == 1) for held in (now, then)]
        others = max(0, thousandths(quota.used) - own[1])
        shares[quota.resource, quota.flavor] = Share(thousandths(quota.total), own[0], others, 1, worker.quota.at)
    return shares


def _own(held: Amounts, resource: str, flavor: str, *, alone: bool) -> int:
    """Of ours: the manager's flavors need not be named as the worker's, which matters where that has several."""
    if not alone:
        return held[resource, flavor]
    return sum(amount for (name, _), amount in held.items() if name == resource)


def _ours(listed: Iterable[Json], read: Mapping[str, datetime]) -> tuple[dict[str, Amounts], dict[str, Amounts]]:
    """What our jobs hold of each of these workers now, and held when it was read; those that have been moved since then
    are missing from the latter."""
    now, then = ({name: Counter[tuple[str, str]]() for name in read} for _ in range(2))
    spans = {name: (timestamp(at - _BLUR), timestamp(at + _LATE)) for name, at in read.items()}
    amounts: dict[str, int] = {}  # jobs ask for few different amounts, and reading one takes longer than all the rest
    for workload in listed:
        worker = workloads.cluster_name(workload) or ""
        if worker not in read:
            continue
        lives, (begin, end) = workloads.is_live(workload), spans[worker]
        ended = "" if lives else str((condition(workload, "Finished") or {}).get("lastTransitionTime") or "")
        was_there = (lives or ended >= begin) and _since(workload) <= end
        if not lives and not was_there:
            continue
        for resource, flavor, text in _assigned(workload):
            if text not in amounts:
                amounts[text] = thousandths(text)
            now[worker][resource, flavor] += amounts[text] * lives
            then[worker][resource, flavor] += amounts[text] * was_there
    return now, then


def _since(workload: Json) -> str:
    """Since when its worker has it, as placements have it."""
    begun = condition(workload, "Admitted") or condition(workload, "QuotaReserved") or {}
    return str(begun.get("lastTransitionTime") or "")


def _assigned(workload: Json) -> Iterator[tuple[str, str, str]]:
    for pods in dig(workload, "status", "admission", "podSetAssignments") or ():
        flavors = pods.get("flavors") or {}
        for resource, text in (pods.get("resourceUsage") or {}).items():
            yield resource, str(flavors.get(resource) or ""), str(text)
