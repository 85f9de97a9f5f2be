"""What waiting jobs tell: the same reasons as `multikueue explain`, of all of them at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueued.reports import remedies
from multikueued.reports.doctor.configuration import spot_of
from multikueued.reports.doctor.facts import Facts
from multikueued.reports.doctor.findings import Spot
from multikueued.reports.explaining import Seen, explain
from multikueued.reports.jobs import RUNNING_STATES, JobState, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.typenames import type_name

MOST: Final = 500
"""Jobs that are looked at; as a rule many wait for the same reason."""
_PASSING: Final = ("quota-in-use", "connecting", "cordoned", "clock-skew", "queue-without-check")
"""What is no fault, or is told elsewhere."""
_AT_REST: Final = (*RUNNING_STATES, JobState.FINISHED, JobState.FAILED, JobState.STOPPING, JobState.LOCAL)


def rejected(objects: ManagerObjects) -> list[Json]:
    """The Workloads that were rejected or deactivated: the job itself may tell why."""
    ended = (JobState.REJECTED, JobState.INACTIVE)
    return [one for one in objects.dispatched if state_of(one, objects) in ended]


def waiting(facts: Facts) -> list[Json]:
    """The Workloads of jobs that wait, or were rejected: the ones that waited longest first."""
    kept = [one for one in facts.objects.dispatched if state_of(one, facts.objects) not in _AT_REST]
    return sorted(kept, key=lambda one: str(dig(one, "metadata", "creationTimestamp") or ""))


def why_jobs_wait(facts: Facts) -> Iterator[Spot]:
    """Why jobs wait, in the words of their checks and workers: each reason once, with how many jobs it has."""
    found: dict[tuple[str, str, str], list[tuple[str, remedies.Finding]]] = defaultdict(list)
    for one in waiting(facts)[:MOST]:
        name = f"{dig(one, 'metadata', 'namespace')}/{type_name(one)}"
        behind = facts.jobs.get(ObjectKey.of(one))
        for finding in explain(Seen(one, behind, facts.objects, (), facts.now, facts.daemon_namespace)).findings:
            if finding.id not in _PASSING:
                where = "jobs" if finding.where.startswith("Workload ") else finding.where
                found[finding.id, where, finding.why].append((name, finding))
    for (_, where, _), jobs in found.items():
        name, finding = max(jobs, key=lambda job: job[1].blocking)
        spot = spot_of(finding)
        others = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        told = f"{spot.what}; it concerns {name}{others}"
        yield Spot(where, told, severity=spot.severity, id=spot.id, remedy=spot.remedy)
