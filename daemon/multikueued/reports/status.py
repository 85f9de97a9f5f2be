"""The whole fleet on one screen: workers, queues, totals, and what is wrong with the configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports import clocks
from multikueued.reports.chain import check_findings, queue_findings
from multikueued.reports.jobs import job_report
from multikueued.reports.objects import ManagerObjects, queue_name
from multikueued.reports.places import starving
from multikueued.reports.queues import QueueReport, queue_reports
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.remedies.remedy_table import about_worker, source_names
from multikueued.reports.worker_facts import ShownPods
from multikueued.reports.workers import WorkerReport, worker_reports

MOST: Final = 10
"""Queues that do not exist of which is told, and jobs that starve: anybody may make more."""
_SILENT: Final = timedelta(seconds=30)
"""How long after the end of a Lease its holder is taken for gone: clocks differ, and a write can be late."""


@attrs.frozen
class DaemonReport:
    """Who dispatches, by the Lease."""

    leader: str
    """Holder of the Lease; empty: nobody, or there is no Lease."""
    renewed: datetime | None
    seen: bool
    """Whether there is a Lease at all, and it may be read. Without leader election there is none."""
    alive: bool
    """Whether it was renewed in time."""


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


def status_report(objects: ManagerObjects, now: datetime, daemon_namespace: str) -> StatusReport:
    """Report the fleet.

    Args:
        objects: of the manager.
        now: the wall clock.
        daemon_namespace: where the daemon has its Lease and Secrets.
    """
    jobs = [job_report(workload, objects) for workload in objects.dispatched]
    workers = worker_reports(objects, jobs)
    totals = Counter(str(job.state) for job in jobs)
    queues = queue_reports(objects, jobs)
    findings = [*fleet_findings(objects, workers, now, daemon_namespace), *without_queue(objects)]
    findings += islice(starving(objects, now), MOST)
    daemon = daemon_report(objects.lease, now)
    by_state = dict(sorted(totals.items()))
    return StatusReport(now, daemon, workers, queues, by_state, tuple(findings), shown_pods(objects))


def shown_pods(objects: ManagerObjects) -> ShownPods | None:
    """How many pods of runs the manager shows, of all workers that it has."""
    known = (
        published.facts.mirrors for name, published in objects.published.items() if name in objects.clusters_by_name
    )
    counts = [mirrors for mirrors in known if mirrors is not None]
    if not counts:
        return None
    return ShownPods(sum(mirrors.shown for mirrors in counts), sum(mirrors.refused for mirrors in counts))


def fleet_findings(
    objects: ManagerObjects, workers: Iterable[WorkerReport], now: datetime, daemon_namespace: str
) -> Iterator[Finding]:
    """What is wrong with the daemon, the configuration and the workers."""
    yield from daemon_findings(daemon_report(objects.lease, now), daemon_namespace)
    yield from check_findings(objects)
    yield from clocks.published(objects)
    for worker in workers:
        yield from about(worker, objects, daemon_namespace)


def without_queue(objects: ManagerObjects) -> Iterator[Finding]:
    """The queues that jobs name and that do not exist, each once: who submitted those has to act, and no operator."""
    by_queue = {
        (ObjectKey.of(workload).namespace, queue_name(workload)): workload
        for workload in objects.workloads
        if objects.has_no_queue(workload)
    }
    for _, workload in sorted(by_queue.items())[:MOST]:
        yield from (finding.mild() for finding in queue_findings(workload, objects))


def about(worker: WorkerReport, objects: ManagerObjects, daemon_namespace: str) -> tuple[Finding, ...]:
    """Why a worker is not connected. One that nobody uses, or that lacks a kind alone, needs nobody at once."""
    if not worker.error or worker.state == "Missing":  # that it is missing, the check's findings say
        return ()
    degraded = worker.state == "Degraded"
    finding = about_error(worker.name, worker.error, worker.cause, objects, daemon_namespace, connected=degraded)
    return (finding.mild(degraded or not worker.checks),)


def about_error(
    worker: str, error: str, cause: str, objects: ManagerObjects, daemon_namespace: str, *, connected: bool
) -> Finding:
    """Why a worker is not connected, or not usable for a kind, to somebody who asks about no job."""
    names = source_names(objects.clusters_by_name.get(worker))
    context = {"secrets": daemon_namespace, "job": "JOB", "namespace": "NAMESPACE", **names}
    return about_worker(worker, error, context, connected=connected, cause=cause)


def daemon_report(lease: Json | None, now: datetime) -> DaemonReport:
    """Read the daemon's Lease."""
    if lease is None:
        return DaemonReport("", None, seen=False, alive=False)
    spec = lease.get("spec") or {}
    renewed = parse_timestamp(spec.get("renewTime"))
    lasts = timedelta(seconds=int(dig(spec, "leaseDurationSeconds") or 0)) + _SILENT
    holder = str(spec.get("holderIdentity") or "")
    return DaemonReport(holder, renewed, True, bool(holder) and renewed is not None and now - renewed < lasts)


def daemon_findings(daemon: DaemonReport, namespace: str) -> list[Finding]:
    """That nobody dispatches, if the Lease says so."""
    if daemon.alive or not daemon.seen:
        return []
    since = f" since {daemon.renewed:%Y-%m-%dT%H:%M:%SZ}" if daemon.renewed is not None else ""
    return [finding("daemon-not-running", "the daemon", since=since, namespace=namespace)]
