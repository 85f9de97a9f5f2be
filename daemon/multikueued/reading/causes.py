"""What keeps jobs from running, for lists of jobs: of each the first finding that somebody has to mend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports.explanation import Seen, explain
from multikueued.reports.jobs import WAITING_STATES, JobReport, JobState, state_of
from multikueued.reports.objects import ManagerObjects

HELD_UP: Final = (*WAITING_STATES, JobState.LOST, JobState.REJECTED, JobState.INACTIVE)
"""The states of jobs that something may keep from running."""
MOST: Final = 200
"""Jobs that are explained, those that have waited longest: each takes about a millisecond."""


def causes(objects: ManagerObjects, now: datetime, daemon_namespace: str) -> dict[ObjectKey, str]:
    """What keeps jobs from running, by their Workloads. Those that nobody has to look after are not in it.

    Args:
        objects: of the manager.
        now: the wall clock.
        daemon_namespace: for remedies.
    """
    held_up = [workload for workload in objects.dispatched if state_of(workload, objects) in HELD_UP]
    held_up.sort(key=lambda workload: str(dig(workload, "metadata", "creationTimestamp") or ""))
    explained = {
        ObjectKey.of(workload): explain(Seen(workload, None, objects, (), now, daemon_namespace, others_named=None))
        for workload in held_up[:MOST]
    }
    first = {key: next((one for one in made.findings if one.blocking), None) for key, made in explained.items()}
    return {key: finding.why for key, finding in first.items() if finding is not None}


def with_causes(jobs: Iterable[JobReport], known: Mapping[ObjectKey, str]) -> tuple[JobReport, ...]:
    """The jobs, with what keeps them from running as the reason."""
    keyed = ((ObjectKey(job.namespace, job.workload), job) for job in jobs)
    return tuple(attrs.evolve(job, reason=known.get(key, job.reason)) for key, job in keyed)
