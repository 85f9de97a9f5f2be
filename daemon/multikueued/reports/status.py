"""What the daemon's Lease and its words about workers tell, and the form of `multikueue status`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.queues import QueueReport
from multikueued.reports.remedies.remedy import Finding, finding
from multikueued.reports.worker_facts import ShownPods
from multikueued.reports.workers import WorkerReport

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


def shown_pods(objects: ManagerObjects) -> ShownPods | None:
    """How many pods of runs the manager shows, of all workers that it has."""
    known = (
        published.facts.mirrors for name, published in objects.published.items() if name in objects.clusters_by_name
    )
    counts = [mirrors for mirrors in known if mirrors is not None]
    if not counts:
        return None
    return ShownPods(sum(mirrors.shown for mirrors in counts), sum(mirrors.refused for mirrors in counts))


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
