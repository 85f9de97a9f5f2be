"""What is wrong with a fleet, by what stands on the manager: the table of checks, on what the daemon publishes too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Final

import attrs

from multikueued.diagnosis.checks.jobs import jobs_that_wait
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.facts import Facts
from multikueued.reports.chain import queue_findings
from multikueued.reports.daemon_lease import DaemonReport, daemon_report
from multikueued.reports.jobs import job_report
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.places import starving
from multikueued.reports.queues import QueueReport, queue_reports
from multikueued.reports.remedies.audience import once
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.worker_facts import ShownPods
from multikueued.reports.workers import WorkerReport, worker_reports

MOST: Final = 10
"""Queues that do not exist of which is told, and jobs that starve: anybody may make more."""

_OF_FLEET: Final = tuple(check for check in CHECKS if check is not jobs_that_wait)
"""Why jobs wait is told of fewer of them, see `waiting_jobs.py`: who asks looks again and again."""


@attrs.frozen
class StatusReport:
    """What `multikueue status` prints."""

    now: datetime
    daemon: DaemonReport
    workers: tuple[WorkerReport, ...]
    queues: tuple[QueueReport, ...]
    totals: Mapping[str, int]
    """Jobs by state."""
    findings: tuple[Finding, ...]
    """What somebody has to look after."""
    mirrors: ShownPods | None = None
    """The pods of runs that the manager shows, as the daemon has told last; None: it shows none."""
    not_checked: tuple[str, ...] = ()
    """What was not looked at, and so says nothing."""


def shown_pods(objects: ManagerObjects) -> ShownPods | None:
    """How many pods of runs the manager shows, of all workers that it has."""
    known = (
        published.facts.mirrors for name, published in objects.published.items() if name in objects.clusters_by_name
    )
    counts = [mirrors for mirrors in known if mirrors is not None]
    if not counts:
        return None
    return ShownPods(sum(mirrors.shown for mirrors in counts), sum(mirrors.refused for mirrors in counts))


def fleet_findings(objects: ManagerObjects, now: datetime) -> list[Finding]:
    """What `multikueue doctor` finds wrong, as far as the manager tells it, what the daemon has published included.

    Args:
        objects: of the manager.
        now: the wall clock.
    """
    facts = Facts.on_manager(objects, now)
    findings = once(*(check.findings(facts) for check in _OF_FLEET))
    return [finding for finding in findings if finding.severity is not Severity.INFO]


def status_report(objects: ManagerObjects, now: datetime) -> StatusReport:
    """Report the fleet.

    Args:
        objects: of the manager.
        now: the wall clock.
    """
    jobs = [*map(job_report, objects.chains)]
    totals = dict(sorted(Counter(str(job.state) for job in jobs).items()))
    workers, queues = worker_reports(objects, jobs), queue_reports(objects, jobs)
    findings = [*fleet_findings(objects, now), *without_queue(objects)]
    findings += islice(starving(objects, now), MOST)
    daemon = daemon_report(objects.lease, now)
    return StatusReport(now, daemon, workers, queues, totals, tuple(findings), shown_pods(objects))


def without_queue(objects: ManagerObjects) -> Iterator[Finding]:
    """The queues that jobs name and that do not exist, each once: who submitted those has to act, and no operator."""
    by_queue = {chain.queue: chain for chain in objects.every_chain if chain.has_no_queue}
    for _, chain in sorted(by_queue.items())[:MOST]:
        yield from (finding.mild() for finding in queue_findings(chain))
