"""What waiting jobs tell: the same reasons as `multikueue explain`, of all of them at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.labels import RETRY_ANNOTATION, ToldFinding
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of
from multikueued.doctor.checks.configuration import spot_of
from multikueued.doctor.facts import Facts
from multikueued.doctor.findings import Severity, Spot, check
from multikueued.reports.explanation import Seen, explain
from multikueued.reports.jobs import RUNNING_STATES, JobState, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies import remedy as remedies
from multikueued.reports.remedies.earlier_runs import EARLIER_RUN
from multikueued.reports.remedies.pod_remedies import NEED_MISSING
from multikueued.reports.remedies.told_findings import told_findings
from multikueued.reports.typenames import title, type_name

MOST: Final = 500
"""Jobs that are looked at; as a rule many wait for the same reason."""
_PASSING: Final = ("quota-in-use", "connecting", "cordoned", "clock-skew", "queue-without-check", EARLIER_RUN)
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


@check(
    "annotation-unreadable",
    Severity.WARNING,
    "workers that refuse the job are not asked again before their time",
    "multikueue retry JOB -n NAMESPACE writes it as it must be; multikueue doctor --fix takes it off",
)
def unreadable_annotations(facts: Facts) -> Iterator[Spot]:
    """A Workload's annotation `multikueue.dev/retry-at` is no time."""
    for workload in misdated(facts):
        key, noted = ObjectKey.of(workload), annotations_of(workload)[RETRY_ANNOTATION]
        yield Spot(f"Workload {key}", f"its annotation {RETRY_ANNOTATION} is {noted!r}, which is no time (RFC 3339)")


@check(
    ToldFinding.STATUS_REFUSED,
    Severity.ERROR,
    "these jobs do not show what becomes of them, and a finished one may look as if it ran",
)
def statuses_are_refused(facts: Facts) -> Iterator[Spot]:
    """The manager's API server refuses the status of a job, for what somebody else wrote there, or by a definition of
    another version. Told for as long as the event of it is kept, and until a later status is taken.
    """
    yield from _told(facts, ToldFinding.STATUS_REFUSED)


@check(
    ToldFinding.CONTESTED_FIELD,
    Severity.WARNING,
    "the job does not have there what it says here, and the worker's Kueue may stop it for that",
)
def fields_are_contested(facts: Facts) -> Iterator[Spot]:
    """Something on a worker, as an autoscaler, has set a field of a copy each time that it was set back: it is left
    alone. Told for as long as the event of it is kept, and until the job is changed or ends.
    """
    yield from _told(facts, ToldFinding.CONTESTED_FIELD)


@check(
    ToldFinding.COPY_WAITS,
    Severity.INFO,
    "these jobs start later; those of other namespaces do not wait for them",
)
def copies_wait(facts: Facts) -> Iterator[Spot]:
    """A large job has waited a minute for its turn to be copied, as its namespace has its share of what is kept in
    memory. Told for as long as the event of it is kept, and until the job is offered.
    """
    yield from _told(facts, ToldFinding.COPY_WAITS)


def _told(facts: Facts, wanted: ToldFinding) -> Iterator[Spot]:
    for workload in facts.objects.workloads:
        key = ObjectKey.of(workload)
        for told, found in told_findings(facts.told.get(key, ()), workload, facts.jobs.get(key), type_name(workload)):
            if told is wanted:
                yield Spot(title(workload), f"{found.why}: {found.told}", remedy=found.remedy)


def misdated(facts: Facts) -> list[Json]:
    """The Workloads with such an annotation."""
    noted = ((one, annotations_of(one).get(RETRY_ANNOTATION)) for one in facts.objects.workloads)
    return [one for one, text in noted if text is not None and parse_timestamp(text) is None]


@check("job-waits", Severity.ERROR, "these jobs do not run")
def why_jobs_wait(facts: Facts) -> Iterator[Spot]:
    """Jobs wait or were rejected for a reason that somebody has to mend, as `multikueue explain` tells it; the
    id is the reason's, as `kind-not-enabled`, `not-delegated`, `name-taken`, `webhook`, `namespace-missing`.
    """
    found: dict[tuple[str, str, str], list[tuple[str, remedies.Finding]]] = defaultdict(list)
    for one in waiting(facts)[:MOST]:
        name = title(one)
        behind = facts.jobs.get(ObjectKey.of(one))
        about = (one, behind, facts.objects, (), facts.now, facts.daemon_namespace)
        for finding in explain(Seen(*about, others_named=None)).findings:
            if finding.id not in _PASSING:
                where = "jobs" if finding.where == f"Workload {name_of(one)}" else finding.where
                found[finding.id, where, finding.why].append((name, finding))
    for (_, where, _), jobs in found.items():
        name, finding = max(jobs, key=lambda job: job[1].blocking)
        spot = spot_of(finding)
        others = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        told = f"{spot.what}; it concerns {name}{others}"
        yield attrs.evolve(spot, where=where, what=told)


@check(
    NEED_MISSING.id,
    Severity.ERROR,
    "pods that name it do not start there, and their jobs look as if they ran",
    "create it there, as in the job's namespace here; dependencies of the settings has ConfigMaps copied, and a worker "
    "that lacks a Secret is then offered no such job",
    side="worker",
)
def needs_are_missing(facts: Facts) -> Iterator[Spot]:
    """A Secret or ConfigMap that pods of a job name is not on the worker that runs it, in the job's namespace there.
    Looked for by name, as far as the user of the worker's kubeconfig may get it.
    """
    for worker in facts.workers.values():
        for need in worker.lacks:
            yield Spot(f"{worker.name}, {need}", f"it is not there, and pods of {need.job} name it")
