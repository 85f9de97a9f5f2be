"""A job that has failed: why, and where its logs are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.outside_text import plain
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.pod_reasons import reason_of_pod
from multikueued.reports.remedies.remedy import REMEDIES, Finding, finding
from multikueued.settings.config import RetentionSettings

FAILED: Final = "job-failed"
_KEPT: Final = RetentionSettings().failed
"""Unless the daemon's settings say otherwise."""


def failure_findings(job: Json, report: JobReport, now: datetime) -> Iterator[Finding]:
    """The finding of it; none if it has not failed.

    Args:
        job: the manager's.
        report: its line.
        now: the wall clock.
    """
    if report.state is not JobState.FAILED:
        return
    told = plain(_words(job) or report.reason)
    there = f" on worker cluster {report.worker}" if report.worker else ""
    instead, until = _kept(report, now)
    yield finding(FAILED, report.job, told, instead=instead, there=there, until=until, **_named(report))


def still_there(findings: Iterable[Finding], report: JobReport, pods: Collection[object]) -> Iterator[Finding]:
    """The same findings; where the pods of a failed job were just seen, its logs are there, whatever the settings."""
    remedy = REMEDIES[f"{FAILED}@seen"].filled([{**_named(report), "worker": report.worker}])
    for one in findings:
        yield attrs.evolve(one, remedy=remedy) if one.id == FAILED and pods else one


def _kept(report: JobReport, now: datetime) -> tuple[str, str]:
    """The key of the row that says how long its logs are kept, and until when; empty: it is not known."""
    if report.since is None or not report.worker:
        return "", ""
    until = report.since + _KEPT
    return f"{FAILED}@{'kept' if now < until else 'over'}", timestamp(until)


def _named(report: JobReport) -> dict[str, str]:
    return {"job": report.job, "namespace": report.namespace}


def _words(job: Json) -> str:
    """The job's own: its conditions, else the fields in which kinds say it; of a pod also the exit code."""
    said = condition(job, "Failed") or {}
    status = said if said.get("status") == "True" else dig(job, "status") or {}
    if job.get("kind") == "Pod":
        return reason_of_pod(job).told
    return ": ".join(filter(None, (str(status.get("reason") or ""), str(status.get("message") or ""))))
