"""What waiting jobs tell: the same reasons as `multikueue explain`, of all of them at once."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.labels import RETRY_ANNOTATION, ToldFinding
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueued.diagnosis.facts import Facts
from multikueued.diagnosis.findings import Spot, check
from multikueued.reports.jobs import JobState, state_of
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.pod_remedies import NEED_MISSING
from multikueued.reports.remedies.remedy import Finding, Severity
from multikueued.reports.remedies.told_findings import told_findings
from multikueued.reports.typenames import title, type_name
from multikueued.reports.waiting_jobs import why_jobs_wait


def rejected(objects: ManagerObjects) -> list[Json]:
    """The Workloads that were rejected or deactivated: the job itself may tell why."""
    ended = (JobState.REJECTED, JobState.INACTIVE)
    return [chain.workload for chain in objects.chains if state_of(chain) in ended]


@check("annotation-unreadable")
def unreadable_annotations(facts: Facts) -> Iterator[Spot]:
    """A Workload's annotation `multikueue.dev/retry-at` is no time."""
    for workload in misdated(facts):
        key, noted = ObjectKey.of(workload), annotations_of(workload)[RETRY_ANNOTATION]
        yield Spot(f"Workload {key}", f"its annotation {RETRY_ANNOTATION} is {noted!r}, which is no time (RFC 3339)")


@check(ToldFinding.STATUS_REFUSED)
def statuses_are_refused(facts: Facts) -> Iterator[Finding]:
    """The manager's API server refuses the status of a job, for what somebody else wrote there, or by a definition of
    another version. Told for as long as the event of it is kept, and until a later status is taken.
    """
    yield from _of_events(facts, ToldFinding.STATUS_REFUSED)


@check(ToldFinding.CONTESTED_FIELD)
def fields_are_contested(facts: Facts) -> Iterator[Finding]:
    """Something on a worker, as an autoscaler, has set a field of a copy each time that it was set back: it is left
    alone. Told for as long as the event of it is kept, and until the job is changed or ends.
    """
    yield from _of_events(facts, ToldFinding.CONTESTED_FIELD)


@check(ToldFinding.COPY_WAITS, Severity.INFO)
def copies_wait(facts: Facts) -> Iterator[Finding]:
    """A large job has waited a minute for its turn to be copied, as its namespace has its share of what is kept in
    memory. Told for as long as the event of it is kept, and until the job is offered.
    """
    yield from (attrs.evolve(problem, severity=Severity.INFO) for problem in _of_events(facts, ToldFinding.COPY_WAITS))


def _of_events(facts: Facts, wanted: ToldFinding) -> Iterator[Finding]:
    for workload in facts.objects.workloads if facts.events else ():
        key = ObjectKey.of(workload)
        events = facts.events.get(key, ())
        for problem in told_findings(events, workload, facts.jobs.get(key), type_name(workload)):
            if problem.id == wanted:
                yield attrs.evolve(problem, where=title(workload))


def misdated(facts: Facts) -> list[Json]:
    """The Workloads with such an annotation."""
    noted = ((workload, annotations_of(workload).get(RETRY_ANNOTATION)) for workload in facts.objects.workloads)
    return [workload for workload, text in noted if text is not None and parse_timestamp(text) is None]


@check("job-waits")
def jobs_that_wait(facts: Facts) -> Iterator[Finding]:
    """Jobs wait or were rejected for a reason that somebody has to mend, as `multikueue explain` tells it; the
    id is the reason's, as `kind-not-enabled`, `not-delegated`, `name-taken`, `webhook`, `namespace-missing`.
    """
    yield from why_jobs_wait(facts.objects, facts.now, facts.jobs)


@check(NEED_MISSING.id)
def needs_are_missing(facts: Facts) -> Iterator[Spot]:
    """A Secret or ConfigMap that pods of a job name is not on the worker that runs it, in the job's namespace there.
    Looked for by name, as far as the user of the worker's kubeconfig may get it.
    """
    for worker in facts.workers.values():
        for need in worker.lacks:
            yield Spot(f"{worker.name}, {need}", f"it is not there, and pods of {need.job} name it")
