"""What workers refuse waiting jobs for, of the whole fleet: a worker may be connected, and take nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs

from multikueued.reports.explanation import Seen, explain
from multikueued.reports.jobs import WAITING_STATES, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies import Finding
from multikueued.reports.status import StatusReport

MOST: Final = 200
"""Jobs that are looked at; as a rule many wait for the same reason."""


def with_refusals(report: StatusReport, objects: ManagerObjects, now: datetime, daemon_namespace: str) -> StatusReport:
    """The report, with what keeps workers from taking jobs that wait: each once, as the first such job tells it."""
    waiting = [one for one in objects.dispatched if state_of(one, objects) in WAITING_STATES][:MOST]
    known = {(one.where, one.id) for one in report.findings}
    found: dict[tuple[str, str], Finding] = {}
    for workload in waiting:
        for one in explain(Seen(workload, None, objects, (), now, daemon_namespace)).findings:
            place = one.where, one.id
            if one.where in objects.clusters_by_name and place not in known and one.blocking:
                found.setdefault(place, one)
    return attrs.evolve(report, findings=(*report.findings, *found.values()))
