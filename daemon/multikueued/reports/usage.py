"""What jobs have used of workers, in resource-seconds: one sum for `multikueue usage` and the leader's metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import attrs

from multikueue.core.dispatchers.scored.score import COST
from multikueue.core.model import workloads
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.quantities import MILLI
from multikueued.reports.jobs import placements
from multikueued.reports.quotas import held
from multikueued.reports.worker_queues import local_queue_of
from multikueued.reports.workers import reserved


@attrs.frozen(order=True)
class Payer:
    """Whose jobs have used what."""

    namespace: str
    queue: str
    """The LocalQueue."""
    worker: str
    cost: str
    """`multikueue.dev/cost` of the worker; empty: it has none, or is not known any more."""


@attrs.frozen
class Use:
    """What the jobs of one queue have used of one worker."""

    namespace: str
    queue: str
    worker: str
    cost: str
    jobs: int
    seconds: Mapping[str, float]
    """By resource: its amount, in its own unit (cores, bytes, pieces), times the seconds for which it was held."""


@attrs.frozen
class UsageReport:
    """What `multikueue usage -o json` prints."""

    since: datetime | None
    """When the first placement that is counted began, or from when on it counts; null: there is none."""
    until: datetime
    uses: tuple[Use, ...]


def costs_of(clusters: Iterable[Json]) -> dict[str, str]:
    """What an hour costs on each worker, as its MultiKueueCluster says it."""
    return {ObjectKey.of(cluster).name: annotations_of(cluster).get(COST, "") for cluster in clusters}


@attrs.frozen
class Holding:
    """What a Workload holds of a worker, or has held of it."""

    payer: Payer
    """Without the cost: that is the worker's."""
    since: datetime
    until: datetime | None
    """None: it lasts."""
    amounts: Mapping[str, int]
    """Thousandths by resource."""

    def within(self, begin: datetime | None, end: datetime) -> float:
        """For how many seconds of a span of time; None: it has no beginning."""
        since = self.since if begin is None else max(begin, self.since)
        return max(0.0, (min(end, self.until or end) - since).total_seconds())

    def is_settled(self, now: datetime) -> bool:
        """Whether it is over, or goes on from now until the Workload changes."""
        return self.since <= now and (self.until is None or self.until <= now)


def holdings(workload: Json) -> Iterator[Holding]:
    """What a Workload has held of workers, the earliest first.

    Its placements say when it had which worker; how much it held before its last admission is not noted, so that counts
    for all of them; of one without quota, what it asks for as Kueue notes it.
    """
    amounts, asked = Counter[str](), dig(workload, "status", "resourceRequests")
    for place in placements(workload):
        if place.since is not None:
            amounts = amounts or reserved(workload) or held(asked, "resources")
            payer = Payer(ObjectKey.of(workload).namespace, local_queue_of(workload).name, place.worker, "")
            yield Holding(payer, place.since, place.until, amounts)


def used(
    workload: Json, begin: datetime | None, end: datetime, costs: Mapping[str, str]
) -> Iterator[tuple[Payer, datetime, Counter[str]]]:
    """What a Workload has held of workers in a span of time: whose, from when on, and thousandths of resource-seconds.

    Args:
        workload: the manager's.
        begin: of the span; None: as far back as its placements are noted.
        end: of the span.
        costs: by worker.
    """
    for holding in holdings(workload):
        if seconds := holding.within(begin, end):
            since = holding.since if begin is None else max(begin, holding.since)
            amounts = Counter({name: round(amount * seconds) for name, amount in holding.amounts.items()})
            yield attrs.evolve(holding.payer, cost=costs.get(holding.payer.worker, "")), since, amounts


def usage_report(
    listed: Iterable[Json],
    costs: Mapping[str, str],
    begin: datetime | None,
    now: datetime,
    *,
    queue: str = "",
    worker: str = "",
) -> UsageReport:
    """Sum up what the Workloads that are still there have used.

    Args:
        listed: the Workloads, of the manager.
        costs: by worker.
        begin: from when on it counts; None: from the first placement that is noted.
        now: the wall clock.
        queue: only this LocalQueue or ClusterQueue; empty: all.
        worker: only this one; empty: all.
    """
    sums: dict[Payer, Counter[str]] = {}
    jobs: Counter[Payer] = Counter()
    first = begin
    for workload in listed:
        if queue not in ("", local_queue_of(workload).name, workloads.cluster_queue(workload)):
            continue
        payers = set()
        for payer, since, amounts in used(workload, begin, now, costs):
            if worker in ("", payer.worker):
                sums.setdefault(payer, Counter()).update(amounts)
                payers.add(payer)
                first = since if first is None else min(first, since)
        jobs.update(payers)
    uses = (
        Use(
            **attrs.asdict(payer),
            jobs=jobs[payer],
            seconds={name: amount / MILLI for name, amount in sorted(total.items())},
        )
        for payer, total in sorted(sums.items())
    )
    return UsageReport(first, now, tuple(uses))
