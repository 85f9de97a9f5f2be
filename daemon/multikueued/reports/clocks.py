"""Clocks that disagree, as far as times on the manager's objects tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from multikueue.core.model.conditions import conditions, parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import reserved_at
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.remedies import Finding

TOLERATED: Final = timedelta(seconds=10)
"""Times have whole seconds, and what is read is a moment old."""


def clock_findings(workload: Json, job: Json | None, report: JobReport, now: datetime) -> Iterator[Finding]:
    """Times that cannot be.

    The start of a job is copied from its worker, so it is by that worker's clock; the reservation of quota before it
    is by this cluster's. A condition of the Workload that is yet to come shows that this machine's clock is behind.

    Args:
        workload: the manager's.
        job: the manager's job.
        report: its line.
        now: this machine's clock.
    """
    if (ahead := _ahead(workload, now)) > TOLERATED:
        why = f"this cluster's clock is at least {_seconds(ahead)} ahead of this machine's"
        yield Finding("clock-skew", "this machine", why, "", "synchronise them (NTP): ages shown here are wrong", False)
        return
    started, reserved = parse_timestamp(dig(job or {}, "status", "startTime")), reserved_at(workload)
    if report.state is not JobState.RUNNING or started is None or reserved is None:
        return
    remedy = f"synchronise the clocks of {report.worker} and of this cluster (NTP): certificates depend on them"
    clock = f"the clock of {report.worker} is at least"
    if reserved - started > TOLERATED:
        why = f"{clock} {_seconds(reserved - started)} behind: its job started before it got quota"
        yield Finding("clock-skew", report.worker, why, "", remedy, False)
    elif started - now > TOLERATED:
        why = f"{clock} {_seconds(started - now)} ahead: its job is yet to start"
        yield Finding("clock-skew", report.worker, why, "", remedy, False)


def _ahead(workload: Json, now: datetime) -> timedelta:
    times = (parse_timestamp(one.get("lastTransitionTime")) for one in conditions(workload))
    return max((time - now for time in times if time is not None), default=timedelta(0))


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():.0f} s"
