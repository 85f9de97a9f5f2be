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
from multikueued.reports.remedies.remedy import Finding, filled
from multikueued.settings.config import RetentionSettings

FAILED: Final = "job-failed"
_LOGS: Final = "multikueue logs {job} -n {namespace}"
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
    words = {"job": report.job, "namespace": report.namespace}
    told = plain(_words(job) or report.reason)
    where = f" on worker cluster {report.worker}" if report.worker else ""
    yield Finding(FAILED, report.job, f"it has failed{where}", told, _remedy(report, words, now)).mild()


def still_there(findings: Iterable[Finding], report: JobReport, pods: Collection[object]) -> Iterator[Finding]:
    """The same findings; where the pods of a failed job were just seen, its logs are there, whatever the settings."""
    words = {"job": report.job, "namespace": report.namespace, "worker": report.worker}
    remedy = filled(f"{_LOGS} has its words, as long as {{worker}} keeps its copy", words)
    for one in findings:
        yield attrs.evolve(one, remedy=remedy) if one.id == FAILED and pods else one


def _remedy(report: JobReport, words: dict[str, str], now: datetime) -> str:
    if report.since is None or not report.worker:
        return filled(f"{_LOGS} has its words, if its copy is still kept", words)
    until, setting = report.since + _KEPT, "retention.failed"
    if now < until:
        return filled(
            f"{_LOGS} has its words: they are kept until {timestamp(until)}, unless {setting} says otherwise", words
        )
    return filled(f"its logs were kept until {timestamp(until)}, unless {setting} says otherwise: {_LOGS}", words)


def _words(job: Json) -> str:
    """The job's own: its conditions, else the fields in which kinds say it; of a pod also the exit code."""
    said = condition(job, "Failed") or {}
    status = said if said.get("status") == "True" else dig(job, "status") or {}
    if job.get("kind") == "Pod":
        return reason_of_pod(job).told
    return ": ".join(filter(None, (str(status.get("reason") or ""), str(status.get("message") or ""))))
