"""`multikueue explain JOB`, `events JOB` and `retry JOB`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import click

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.core.model.workloads import was_rejected
from multikueue.errors import Conflict, Forbidden, NotFound
from multikueued.clusters import ClusterClient
from multikueued.commands.exits import FINDING, FINE, NOT_FOUND, CommandError
from multikueued.commands.job_lookup import Found, find_job
from multikueued.commands.manager_lists import events_of
from multikueued.commands.options import Format, output_option, target_of, target_options, watch_option
from multikueued.commands.queue_places import read_waiting
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import events_lines, explanation_lines, finding_lines
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, Seen, explain, unqueued
from multikueued.reports.jobs import WAITING_STATES, JobState, state_of
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
    waits = await read_waiting(client, (found.workload,), found.objects, namespace, now)
    about = (found.workload, found.job, found.objects, events, now, daemon_namespace, unread, found.others)
    return explain(Seen(*about, waits[ObjectKey.of(found.workload)]))


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


@attrs.frozen
class Retried:
    """What `multikueue retry` prints."""

    job: str
    """TYPE/NAME."""
    namespace: str
    workload: str
    retry_at: datetime
    told: str
    """What was done, in a sentence."""


@click.command("retry")
@click.argument("job")
@target_options
@output_option
def retry_command(job: str, output: Format, **options: Any) -> None:
    """Ask the workers that refuse JOB again, now; or have a JOB that was rejected looked at again.

    It writes the annotation multikueue.dev/retry-at on the Workload, and makes one active again that a check has
    rejected; the daemon does the rest. JOB is named as for explain.
    """
    target = target_of(options)

    async def make(client: Any, now: datetime) -> Retried:
        return await ask_again(client, job, target.namespace, now, target.daemon_namespace)

    def lines(done: Retried, now: datetime, width: int | None) -> list[str]:
        del now, width
        return [done.told]

    raise SystemExit(run(target, Printed(make, lines), output))


async def ask_again(client: ClusterClient, job: str, namespace: str, now: datetime, daemon_namespace: str) -> Retried:
    """Write the annotation.

    Raises:
        CommandError: there is no such job, or nothing to ask again.
    """
    found = await find_job(client, job, namespace, daemon_namespace)
    if found.workload is None:
        raise CommandError(f"{found.name} has no Workload: multikueue explain {found.name} says why", NOT_FOUND)
    state = state_of(found.workload, found.objects)
    rejected = state is JobState.INACTIVE and was_rejected(found.workload)
    if state not in (*WAITING_STATES, JobState.STARTING) and not rejected:
        raise CommandError(f"{found.name} is {state}: there is no worker to be asked again", FINDING)
    key = ObjectKey.of(found.workload)
    metadata: Json = {"uid": uid(found.workload), "annotations": {RETRY_ANNOTATION: timestamp(now)}}
    patch: Json = {"metadata": metadata, **({"spec": {"active": True}} if rejected else {})}
    try:
        await client.merge_patch(WORKLOAD, key, patch)
    except (Conflict, NotFound) as error:
        raise CommandError(f"{found.name} was deleted, or made again, meanwhile: try once more", NOT_FOUND) from error
    told = f"wrote {RETRY_ANNOTATION}={timestamp(now)} on Workload {key}: "
    told += f"{found.name} is active again" if rejected else f"workers that refuse {found.name} are asked again"
    return Retried(found.name, namespace, key.name, now, told)
