"""Clocks that differ: what was measured of a worker, and times of a job that cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import conditions, parse_timestamp
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import reserved_at
from multikueued.reports.jobs import JobState
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.seen import Seen
from multikueued.reports.worker_facts import ClockBound

TOLERATED: Final = timedelta(seconds=10)
"""Clocks may differ by it: times have whole seconds, and what is read is a moment old."""


def measured(worker: str, ahead: ClockBound | None) -> Iterator[Finding]:
    """That a worker's clock differs from the manager's.

    Args:
        worker: its name.
        ahead: how far its clock is ahead of the manager's; None: that is not known.
    """
    if ahead is not None and abs(ahead.at_least) > TOLERATED.total_seconds():
        yield _of_worker("worker-clock", worker, timedelta(seconds=ahead.at_least))


def clock_findings(seen: Seen) -> Iterator[Finding]:
    """Clocks of the workers that have a job, or are asked, as the daemon has measured them; and times that cannot be.

    The start of a job is copied from its worker, so it is by that worker's clock; the reservation of quota before it
    is by this cluster's. A condition of the Workload that is yet to come shows that this machine's clock is behind.
    """
    objects, line, now = seen.objects, seen.line, seen.now
    for worker in dict.fromkeys((line.worker, *line.offered_to)):
        if worker in objects.published and worker in objects.clusters_by_name:
            yield from measured(worker, objects.published[worker].facts.clock)
    times = (parse_timestamp(entry.get("lastTransitionTime")) for entry in conditions(seen.workload))
    ahead = max((time - now for time in times if time is not None), default=timedelta(0))
    if ahead > TOLERATED:
        yield finding("clock-skew@here", "this machine", seconds=_seconds(ahead))
        return
    started, reserved = parse_timestamp(dig(seen.job or {}, "status", "startTime")), reserved_at(seen.workload)
    if line.state is not JobState.RUNNING or started is None or reserved is None:
        return
    if reserved - started > TOLERATED:
        yield _of_worker("clock-skew", line.worker, started - reserved, "its job started before it got quota")
    elif started - now > TOLERATED:
        yield _of_worker("clock-skew", line.worker, started - now, "its job is yet to start")


def _of_worker(id: str, worker: str, ahead: timedelta, sign: str = "") -> Finding:
    side = "ahead of" if ahead > timedelta(0) else "behind"
    skew = finding(id, worker, worker=worker, seconds=_seconds(abs(ahead)), side=side, sign=sign)
    return attrs.evolve(skew, workers=(worker,))


def _seconds(span: timedelta) -> str:
    return str(int(span.total_seconds()))
