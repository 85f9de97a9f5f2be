"""What running jobs themselves say of trouble, for lists of jobs: each is asked about by its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.model.names import ObjectKey, Resource
from multikueue.errors import ApiError, Invalid, NotFound
from multikueue.protocols import Reader
from multikueued.few_at_a_time import few_at_a_time
from multikueued.reports.jobs import JobReport, JobState
from multikueued.reports.remedies.job_trouble import own_trouble
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.typenames import JobName, resource_of

MOST: Final = 100
"""Running jobs that are asked about, those that are shown first: each costs a request."""
AT_ONCE: Final = 10
"""Requests at the same time."""
PATIENCE: Final = 5.0
"""Seconds for all of them: a list does not wait longer for what it can do without."""


@attrs.frozen
class OwnWords:
    """What jobs say of themselves."""

    troubles: Mapping[JobReport, Finding]
    """By job: those that say nothing of trouble are not in it."""
    not_checked: tuple[str, ...] = ()
    """Which were not asked about."""


async def own_words(client: Reader, reports: Iterable[JobReport], now: datetime) -> OwnWords:
    """What is wrong with jobs that run, by what their own status says. A kind that may not be read says nothing.

    Args:
        client: of the manager.
        reports: jobs, those that matter most first; of those that do not run nothing is told.
        now: the wall clock.
    """
    running = [
        (report, named) for report in reports if report.state in _RUNNING and (named := _named(report)) is not None
    ]
    unread, troubles = set[Resource](), dict[JobReport, Finding]()
    waiting = {report for report, _ in running[:MOST]}

    async def ask(asked: tuple[JobReport, tuple[Resource, ObjectKey]]) -> None:
        report, (resource, key) = asked
        if resource not in unread:
            await look(report, resource, key)
        waiting.discard(report)

    async def look(report: JobReport, resource: Resource, key: ObjectKey) -> None:
        try:
            job = await client.get(resource, key)
        except (NotFound, Invalid):  # it was deleted meanwhile, the kind is not served, or its name is none
            return
        except ApiError:  # not permitted, or no answer: so it is with all of the kind
            unread.add(resource)
            return
        if (trouble := own_trouble(resource.object(job), report, None, now)) is not None:
            troubles[report] = trouble

    with anyio.move_on_after(PATIENCE):
        await few_at_a_time(AT_ONCE, ask, running[:MOST])
    ordered = {report: troubles[report] for report, _ in running if report in troubles}
    return OwnWords(ordered, tuple(_gaps(len(running) - MOST, len(waiting))))


def _gaps(more: int, late: int) -> Iterator[str]:
    if more > 0:
        yield f"what {more} more running jobs say of themselves: only {MOST} are asked about"
    if late:
        yield f"what {late} more running jobs say of themselves: no answer within {PATIENCE:g} s"


_RUNNING: Final = (JobState.RUNNING, JobState.STARTING)


def _named(report: JobReport) -> tuple[Resource, ObjectKey] | None:
    """Where its job is; None: it is of no kind that is known, or several objects."""
    name = JobName.parse(report.job)
    resource = resource_of(name.type)
    return (resource, ObjectKey(report.namespace, name.name)) if resource is not None else None


def with_words(reports: Iterable[JobReport], troubles: Mapping[JobReport, Finding]) -> tuple[JobReport, ...]:
    """The jobs, with what they say of trouble as the reason."""
    words = {report: finding.told or finding.why for report, finding in troubles.items()}
    return tuple(attrs.evolve(report, reason=words.get(report, report.reason)) for report in reports)


def in_sum(troubles: Mapping[JobReport, Finding]) -> list[Finding]:
    """One finding for jobs of one worker that say the same: who submitted them has to act, and no operator."""
    alike: dict[tuple[str, str], list[JobReport]] = defaultdict(list)
    for report, finding in troubles.items():
        alike[finding.id, report.worker].append(report)
    summed = []
    for first, *others in alike.values():
        where = f"{first.namespace}/{first.job}{f' and {len(others)} more' if others else ''}"
        summed.append(attrs.evolve(troubles[first].mild(), where=where))
    return summed
