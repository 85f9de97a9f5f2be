"""Jobs that are held for long while others of their queue, which came later, have started: somebody has to decide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from multikueue.core.dispatchers.scored.starts import starves
from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of
from multikueued.reports.jobs import job_report
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.places import is_held
from multikueued.reports.remedies.remedy import Finding, finding


def starving(objects: ManagerObjects, now: datetime, about: Json | None = None) -> Iterator[Finding]:
    """One finding for each such job, the eldest first.

    Args:
        objects: of the manager.
        now: the wall clock.
        about: only this Workload's.
    """
    known, latest = objects.waited, objects.last_started
    waiting = [(job.reserved, name_of(one), one, job) for one, job in known if about in (None, one)]
    for reserved, _, workload, job in sorted(waiting, key=lambda each: each[:2]):
        is_late = job.started is None and starves(reserved, latest.get(job.queue), now)
        if is_late and is_held(workload, objects):
            report = job_report(workload, objects)
            where = f"{report.namespace}/{report.job}"
            yield finding("starving", where, job=report.job, namespace=report.namespace)
