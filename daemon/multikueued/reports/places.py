"""Places in queues, and when a job starts: of those that wait; and which are held for so long that somebody decides.

A Workload without quota waits in its ClusterQueue here, and Kueue tells its place. One with quota that no worker has
room for is held, in the order of the scored dispatcher: of those ahead only the ones count that share a worker with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

import attrs

from multikueue.core.dispatchers.scored import kueue_objects
from multikueue.core.dispatchers.scored.entries import Rank
from multikueue.core.dispatchers.scored.job_annotations import read
from multikueue.core.dispatchers.scored.starts import Interval, Starts, starves
from multikueue.core.dispatchers.scored.state import State
from multikueue.core.model import workloads
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of, uid
from multikueued.reports.jobs import JobReport, job_report
from multikueued.reports.objects import Chain, ManagerObjects
from multikueued.reports.remedies.remedy import Finding, finding


@attrs.frozen
class Waiting:
    """What is known of how a Workload waits."""

    place: int | None = None
    """1 is next."""
    start: Interval | None = None
    """Seconds since its quota."""

    def on(self, job: JobReport, reserved: datetime | None) -> JobReport:
        """The line of its job with that."""
        first, last = (self.start.earliest, self.start.latest) if self.start is not None else (None, None)
        return attrs.evolve(
            job, place=self.place, start_earliest=_after(reserved, first), start_latest=_after(reserved, last)
        )


def _after(reserved: datetime | None, seconds: float | None) -> datetime | None:
    return None if reserved is None or seconds is None else reserved + timedelta(seconds=seconds)


@attrs.frozen
class _HeldJob:
    key: ObjectKey
    queue: str
    rank: Rank
    reserved: datetime
    workers: frozenset[str]
    """That it may go to, whatever room they have."""


def is_held(chain: Chain) -> bool:
    """Whether a Workload has quota, and the scored dispatcher offers it to nobody."""
    workload = chain.workload
    if not workloads.is_live(workload) or workloads.cluster_name(workload) or workloads.nominated(workload):
        return False
    return State.parse(chain.says.head) is not None


def waiting(
    chosen: Iterable[Json], objects: ManagerObjects, pending: Mapping[ObjectKey, int], now: datetime
) -> dict[ObjectKey, Waiting]:
    """What is known of these Workloads, by key.

    Args:
        chosen: of the manager.
        objects: of the manager. Places among the held need the Workloads of all namespaces.
        pending: the places that Kueue tells.
        now: the wall clock.
    """
    starts = Starts.of(filter(None, map(kueue_objects.waited, objects.workloads)))
    held = _places(objects)
    by_key = {}
    for workload in chosen:
        key = ObjectKey.of(workload)
        place = held.get(key) if workloads.has_quota(workload) else pending.get(key)
        by_key[key] = Waiting(place, _start(workload, starts, now))
    return by_key


def places_told(summary: Json) -> dict[ObjectKey, int]:
    """The places in a PendingWorkloadsSummary: there the first is 0."""
    listed = ((ObjectKey.of(entry), entry.get("positionInClusterQueue")) for entry in summary.get("items") or ())
    return {key: at + 1 for key, at in listed if isinstance(at, int)}


def _start(workload: Json, starts: Starts, now: datetime) -> Interval | None:
    job = kueue_objects.waited(workload)
    if job is None or job.started is not None:
        return None
    return starts.interval(job.key, job.queue, job.size, (now - job.reserved).total_seconds())


def _places(objects: ManagerObjects) -> dict[ObjectKey, int]:
    ahead: dict[frozenset[str], int] = {}
    places = {}
    for job in _in_order(_held_jobs(objects)):
        places[job.key] = 1 + sum(count for workers, count in ahead.items() if workers & job.workers)
        ahead[job.workers] = ahead.get(job.workers, 0) + 1
    return places


def _held_jobs(objects: ManagerObjects) -> Iterator[_HeldJob]:
    for chain in objects.every_chain:
        workload, reserved = chain.workload, workloads.reserved_at(chain.workload)
        if reserved is None or not is_held(chain):
            continue
        key, name = ObjectKey.of(workload), uid(workload)
        rank = Rank(
            -int(dig(workload, "spec", "priority") or 0), kueue_objects.queued_at(workload) or reserved, name, key
        )
        yield _HeldJob(key, workloads.cluster_queue(workload), rank, reserved, _workers(chain))


def _workers(chain: Chain) -> frozenset[str]:
    """Of its config those that its annotations take. What stands on its job alone is not looked at."""
    wanted = read(annotations_of(chain.workload))
    return frozenset(
        name
        for name in chain.workers
        if (cluster := chain.objects.clusters_by_name.get(name)) is not None
        and not wanted.excludes(ClusterName(name), labels_of(cluster), annotations_of(cluster), ClusterName(name))
    )


def _in_order(held: Iterable[_HeldJob]) -> Iterator[_HeldJob]:
    """As the dispatcher looks at them: in a ClusterQueue by rank, between them the head that has had quota longest."""
    queues: dict[str, list[_HeldJob]] = {}
    for job in sorted(held, key=lambda job: job.rank, reverse=True):
        queues.setdefault(job.queue, []).append(job)
    heads = [(ranked[-1].reserved, queue) for queue, ranked in queues.items()]
    heapify(heads)
    while heads:
        ranked = queues[heappop(heads)[1]]
        yield ranked.pop()
        if ranked:
            heappush(heads, (ranked[-1].reserved, ranked[-1].queue))


def starving(objects: ManagerObjects, now: datetime, about: Json | None = None) -> Iterator[Finding]:
    """One finding for each such job, the eldest first.

    Args:
        objects: of the manager.
        now: the wall clock.
        about: only this Workload's, which is one of `objects`.
    """
    known, latest = objects.waited, objects.last_started
    waiting = [
        (job.reserved, name_of(workload), workload, job)
        for workload, job in known
        if about is None or uid(workload) == uid(about)
    ]
    for reserved, _, workload, job in sorted(waiting, key=lambda each: each[:2]):
        is_late = job.started is None and starves(reserved, latest.get(job.queue), now)
        if is_late and is_held(chain := objects.chain(workload)):
            report = job_report(chain)
            where = f"{report.namespace}/{report.job}"
            yield finding("starving", where, job=report.job, namespace=report.namespace)
