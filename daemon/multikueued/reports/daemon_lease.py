"""Who dispatches, by the daemon's Lease."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueued.reports.remedies.remedy import Finding, finding

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


def daemon_report(lease: Json | None, now: datetime) -> DaemonReport:
    """Read the daemon's Lease."""
    if lease is None:
        return DaemonReport("", None, seen=False, alive=False)
    spec = lease.get("spec") or {}
    renewed = parse_timestamp(spec.get("renewTime"))
    lasts = timedelta(seconds=int(dig(spec, "leaseDurationSeconds") or 0)) + _SILENT
    holder = str(spec.get("holderIdentity") or "")
    return DaemonReport(holder, renewed, True, bool(holder) and renewed is not None and now - renewed < lasts)


def daemon_findings(lease: Json | None, now: datetime, namespace: str) -> list[Finding]:
    """That nobody dispatches, if the Lease says so."""
    daemon = daemon_report(lease, now)
    if daemon.alive or not daemon.seen:
        return []
    since = f" since {daemon.renewed:%Y-%m-%dT%H:%M:%SZ}" if daemon.renewed is not None else ""
    return [finding("daemon-not-running", "the daemon", since=since, namespace=namespace)]
