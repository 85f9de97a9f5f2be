"""Why jobs wait: the reasons that `multikueue explain` gives, of all jobs at once, or of each the first in a list."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueued.reports.job_findings import EARLIER_RUN, findings_of
from multikueued.reports.jobs import ENDED_STATES, RUNNING_STATES, WAITING_STATES, JobReport, JobState, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.audience import for_operators_alone, once
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.seen import Seen
from multikueued.reports.typenames import title

MOST: Final = 500
"""Jobs that are looked at; as a rule many wait for the same reason."""
AT_A_LOOK: Final = 200
"""The same of `status`, lists of jobs and the page, which look again and again: each takes about a millisecond."""
MOST_ALIKE: Final = 10
"""Findings of one id: anybody may submit more jobs that are too large."""
SETTLED: Final = (JobState.REJECTED, JobState.INACTIVE)
"""The states that last until somebody does something about them."""
HELD_UP: Final = (*WAITING_STATES, JobState.LOST, *SETTLED)
"""The states of jobs that something may keep from running."""
_PASSING: Final = ("quota-in-use", "connecting", "clock-skew", "queue-without-check", EARLIER_RUN)
"""What is no fault, or is told elsewhere."""
_MEANT: Final = ("cordoned",)
"""What an operator does for a while."""
_ON_WORKERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "namespace-missing": "worker-namespace-missing",
        "namespace-terminating": "namespace-terminating",
        "local-queue-missing": "worker-local-queue-missing",
    }
)
"""What a job's worker has said of its namespace and queue there, and the id under which that is seen by who looks."""
_AT_REST: Final = (*RUNNING_STATES, *ENDED_STATES, JobState.STOPPING, JobState.LOCAL)


def waiting(objects: ManagerObjects) -> list[Json]:
    """The Workloads of jobs that wait, or were rejected: the ones that waited longest first."""
    return sorted((chain.workload for chain in objects.chains if state_of(chain) not in _AT_REST), key=_age)


def _age(workload: Json) -> str:
    return str(dig(workload, "metadata", "creationTimestamp") or "")


def why_jobs_wait(
    objects: ManagerObjects,
    now: datetime,
    behind: Mapping[ObjectKey, Json] = MappingProxyType({}),
    most: int = MOST,
) -> Iterator[Finding]:
    """What somebody has to mend: one finding for each cause, with a job that it concerns.

    Args:
        objects: of the manager.
        now: the wall clock.
        behind: the jobs, as far as they were read, by the Workload.
        most: how many jobs are looked at.
    """
    by_cause: dict[tuple[str, ...], list[tuple[str, Finding]]] = defaultdict(list)
    for workload in waiting(objects)[:most]:
        job = behind.get(ObjectKey.of(workload))
        for finding in findings_of(Seen(workload, job, objects, (), now, others_named=None)):
            if finding.id not in _PASSING:
                where = "jobs" if finding.where == f"Workload {name_of(workload)}" else finding.where
                alike = (finding.id, finding.object or where, "" if finding.object else finding.why)
                by_cause[alike].append((title(workload), attrs.evolve(finding, where=where)))
    for jobs in by_cause.values():
        name, finding = max(jobs, key=lambda job: job[1].blocking)
        others = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        yield attrs.evolve(finding, why=f"{finding.why}; it concerns {name}{others}")


def causes(objects: ManagerObjects, now: datetime, namespace: str = "") -> dict[ObjectKey, str]:
    """What keeps jobs from running, by their Workloads: of each the first finding that somebody has to mend. Those that
    nobody has to look after are not in it; those that wait are looked at before those that are settled.

    Args:
        objects: of the manager: what keeps a job from running may be those of other namespaces.
        now: the wall clock.
        namespace: the only one whose jobs are told of; empty: all are.
    """
    states = ((chain.workload, state_of(chain)) for chain in objects.chains if namespace in ("", chain.queue.namespace))
    held_up = [(state in SETTLED, _age(workload), workload) for workload, state in states if state in HELD_UP]
    known: dict[ObjectKey, str] = {}
    for *_, workload in sorted(held_up, key=lambda each: each[:2])[:AT_A_LOOK]:
        findings = findings_of(Seen(workload, None, objects, (), now, others_named=None))
        if (first := next((finding for finding in findings if finding.blocking), None)) is not None:
            known[ObjectKey.of(workload)] = first.sentence
    return known


def with_causes(jobs: Iterable[JobReport], known: Mapping[ObjectKey, str]) -> tuple[JobReport, ...]:
    """The jobs, with what keeps them from running as the reason.

    Causes may be older than the list: what runs has none.
    """
    keyed = ((ObjectKey(job.namespace, job.workload), job) for job in jobs)
    return tuple(
        attrs.evolve(job, reason=known.get(key, job.reason)) if job.state in HELD_UP else job for key, job in keyed
    )


def with_waiting(findings: Iterable[Finding], objects: ManagerObjects, now: datetime) -> list[Finding]:
    """Findings about a fleet, with what keeps jobs waiting: each cause once, as the first such job tells it. What is
    about the jobs alone, and their submitters can mend, is no operator's.
    """
    alike: Counter[str] = Counter()
    grave = list[Finding]()
    seen = [*findings]
    for told in why_jobs_wait(objects, now, most=AT_A_LOOK):
        finding = as_seen_since(told, seen)
        alike[finding.id] += 1
        if finding.blocking and alike[finding.id] <= MOST_ALIKE:
            own = not finding.workers and not for_operators_alone(finding)
            grave.append(finding.mild(own or finding.id in _MEANT))
    return once(seen, grave)


def as_seen_since(told: Finding, seen: Iterable[Finding]) -> Finding:
    """What a job tells of its namespace or queue on a worker, as one with what was seen of these since.

    The worker is asked again after a while only: until then the job tells what has passed.
    """
    if (own := _ON_WORKERS.get(told.id)) is None:
        return told
    here = _namespace_in(told.object)
    by_now = [
        each
        for each in seen
        if each.id in _ON_WORKERS.values() and {*told.workers} <= {*each.workers} and _namespace_in(each.object) == here
    ]
    if not by_now or any(each.id == own for each in by_now):
        return told
    return attrs.evolve(told, id=by_now[0].id, object=by_now[0].object)


def _namespace_in(about: str) -> str:
    """The manager's namespace of `Namespace NAME` and `LocalQueue NAMESPACE/NAME`."""
    return about.partition(" ")[2].partition("/")[0]
