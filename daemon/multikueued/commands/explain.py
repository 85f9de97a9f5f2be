"""`multikueue explain JOB`, `events JOB` and `retry JOB`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import click

from multikueue.errors import Forbidden
from multikueued.clusters import ClusterClient
from multikueued.commands.exits import FINDING, FINE
from multikueued.commands.job_lookup import Found, find_job
from multikueued.commands.manager_lists import events_of
from multikueued.commands.options import Format, output_option, target_of, target_options, watch_option
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import events_lines, explanation_lines, finding_lines
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, Seen, explain, unqueued
from multikueued.reports.remedies import Finding


@attrs.frozen
class Unqueued:
    """What `multikueue explain` prints for a job without a Workload."""

    job: str
    """TYPE/NAME."""
    namespace: str
    summary: str
    findings: tuple[Finding, ...]


@click.command("explain")
@click.argument("job")
@target_options
@output_option
@watch_option
def explain_command(job: str, output: Format, watch: bool, **options: Any) -> None:
    """Say why JOB is where it is, what happens next, and what to do.

    JOB is TYPE/NAME, as job/train-1 or rayjob/tune; a NAME alone if one job has it; or workload/NAME. It reads the
    manager alone. Exits with 1 if somebody has to act.
    """
    target = target_of(options)

    async def make(client: ClusterClient, now: datetime) -> Explanation | Unqueued:
        return await gather_explanation(client, job, target.namespace, now, target.daemon_namespace)

    raise SystemExit(run(target, Printed(make, _lines, explanation_exit_code, wraps=True), output, watch=watch))


async def gather_explanation(
    client: ClusterClient, job: str, namespace: str, now: datetime, daemon_namespace: str
) -> Explanation | Unqueued:
    """Read the manager and explain a job.

    Raises:
        CommandError: there is no such job, or there are several.
    """
    found = await find_job(client, job, namespace, daemon_namespace)
    if found.workload is None:
        assert found.job is not None, "one of the two was found"
        summary, finding = unqueued(found.job, found.name, found.objects)
        return Unqueued(found.name, namespace, summary, (finding,))
    events, not_checked = await _events_if_permitted(client, found)
    unread = (*found.not_checked, *not_checked)
    seen = Seen(found.workload, found.job, found.objects, events, now, daemon_namespace, unread, found.others)
    return explain(seen)


async def _events_if_permitted(client: ClusterClient, found: Found) -> tuple[tuple[EventReport, ...], tuple[str, ...]]:
    try:
        return await events_of(client, found.about), ()
    except Forbidden:
        return (), ("events, which tell what workers refuse: you may not list events.events.k8s.io",)


def explanation_exit_code(found: Explanation | Unqueued) -> int:
    """1 if somebody has to act."""
    return FINDING if isinstance(found, Unqueued) or found.needs_somebody else FINE


def _lines(found: Explanation | Unqueued, now: datetime, width: int | None) -> list[str]:
    width = width or 160
    if isinstance(found, Explanation):
        return explanation_lines(found, now, width)
    lines = [f"{found.job} in namespace {found.namespace}: {found.summary}", "", "What to do:"]
    for finding in found.findings:
        lines += finding_lines(finding, width)
    return lines


@attrs.frozen
class EventList:
    """What `multikueue events -o json` prints."""

    events: tuple[EventReport, ...]


@click.command("events")
@click.argument("job")
@target_options
@output_option
@watch_option
def events_command(job: str, output: Format, watch: bool, **options: Any) -> None:
    """List the events of JOB and its Workload on the manager, in the order of time.

    JOB is named as for explain. A series is one entry with its count.
    """
    target = target_of(options)

    async def make(client: ClusterClient, now: datetime) -> tuple[EventReport, ...]:
        del now
        found = await find_job(client, job, target.namespace, target.daemon_namespace)
        return await events_of(client, found.about)

    def lines(events: tuple[EventReport, ...], now: datetime, width: int | None) -> list[str]:
        return events_lines(events, now, width or 160, wide=output == "wide")

    printed = Printed(make, lines, value=EventList, wraps=True)
    raise SystemExit(run(target, printed, output, watch=watch))
