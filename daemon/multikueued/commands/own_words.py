"""What running jobs themselves say of trouble, for lists of jobs: one list for each kind that runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model.labels import QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ApiError
from multikueue.protocols import Reader
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.remedies.job_trouble import trouble_findings
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.typenames import JobName, resource_of

MOST: Final = 500
"""Running jobs that are looked at: of more the lists would cost as much as those of Workloads again."""


async def own_words(
    client: Reader, reports: Sequence[JobReport], namespace: str, now: datetime
) -> dict[JobReport, Finding]:
    """What is wrong with jobs that run, by what their own status says. A kind that may not be listed says nothing.

    Args:
        client: of the manager.
        reports: jobs; of those that do not run nothing is told.
        namespace: of the jobs; empty: all.
        now: the wall clock.
    """
    running = [one for one in reports if one.state in (JobState.RUNNING, JobState.STARTING)]
    by_kind: dict[Resource, list[JobReport]] = defaultdict(list)
    for report in running if len(running) <= MOST else ():
        if (resource := resource_of(JobName.parse(report.job).type)) is not None:
            by_kind[resource].append(report)
    jobs: dict[tuple[Resource, ObjectKey], Json] = {}

    async def read(resource: Resource) -> None:
        kind = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
        with suppress(ApiError):  # not served, or not permitted
            listed = await client.list(resource, namespace=namespace, label_selector=QUEUE_LABEL)
            jobs.update(((resource, ObjectKey.of(one)), kind | one) for one in listed.items)

    async with anyio.create_task_group() as tasks:
        for resource in by_kind:
            tasks.start_soon(read, resource)
    found: dict[JobReport, Finding] = {}
    for resource, of_kind in by_kind.items():
        for report in of_kind:
            job = jobs.get((resource, ObjectKey(report.namespace, JobName.parse(report.job).name)))
            told = [*trouble_findings(job, report, (), now)] if job is not None else []
            if told:
                found[report] = told[0]
    return found


def with_words(reports: Iterable[JobReport], found: Mapping[JobReport, Finding]) -> tuple[JobReport, ...]:
    """The jobs, with what they say of trouble as the reason."""
    words = {report: finding.told or finding.why for report, finding in found.items()}
    return tuple(attrs.evolve(one, reason=words.get(one, one.reason)) for one in reports)


def in_sum(found: Mapping[JobReport, Finding]) -> list[Finding]:
    """One finding for jobs of one worker that say the same: who submitted them has to act, and no operator."""
    alike: dict[tuple[str, str], list[JobReport]] = defaultdict(list)
    for report, finding in found.items():
        alike[finding.id, report.worker].append(report)
    summed = []
    for first, *others in alike.values():
        where = f"{first.namespace}/{first.job}{f' and {len(others)} more' if others else ''}"
        summed.append(attrs.evolve(found[first], where=where, blocking=False))
    return summed
