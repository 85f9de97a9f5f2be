"""`multikueue explain JOB`, `events JOB` and `retry JOB`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import click

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import ApiError, Forbidden
from multikueued.clusters import ClusterClient
from multikueued.commands.exits import FINDING, FINE
from multikueued.commands.job_lookup import Found, find_job
from multikueued.commands.manager_lists import events_of
from multikueued.commands.options import JOB_NAME, Format, output_option, target_of, target_options, watch_option
from multikueued.commands.queue_places import read_waiting
from multikueued.commands.remote_api import RemoteApi, api_first
from multikueued.commands.report_runner import Printed, run
from multikueued.commands.report_text import events_lines, explanation_lines, finding_lines, not_checked_lines
from multikueued.commands.structured import read_as
from multikueued.commands.tables import paragraph
from multikueued.remote.command import origin_option
from multikueued.remote.explained_pods import JobPods, job_named
from multikueued.remote.pod_lookup import Asked
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation, Seen, Unqueued, explain, unqueued, with_job
from multikueued.reports.jobs import JobState, state_of
from multikueued.reports.jobs_alone import summary_alone
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.remedies.audience import audience_of


@click.command("explain")
@JOB_NAME
@target_options
@origin_option
@output_option
@watch_option
def explain_command(job: str, origin: str, output: Format, watch: bool, **options: Any) -> None:
    """Say why JOB is where it is, what happens next, and what to do.

    JOB is TYPE/NAME, as job/train-1 or rayjob/tune; a NAME alone if one job has it; or workload/NAME. It reads the
    manager; of a job that has failed, or of which no pod is ready for minutes, also its pods as multikueue pods does,
    if you may read them. Exits with 1 if somebody has to act.
    """
    target = target_of(options)
    asked = Asked(job, target, origin)

    printed = Printed[Explanation | Unqueued](
        lambda client, now: gather_explanation(
            client, job, target.namespace, now, target.daemon_namespace, JobPods(client, asked, now)
        ),
        _lines,
        explanation_exit_code,
        wraps=True,
    )
    raise SystemExit(run(target, printed, output, watch=watch))


async def gather_explanation(
    client: ClusterClient,
    job: str,
    namespace: str,
    now: datetime,
    daemon_namespace: str,
    pods: JobPods | None = None,
) -> Explanation | Unqueued:
    """Explain a job by the manager's API, or by what may be read there; and by its pods, if these may be read.

    Raises:
        CommandError: there is no such job, or there are several.
    """

    async def with_pods(explained: Explanation, workload: Json | None, behind: Json | None) -> Explanation:
        return explained if pods is None else await pods.added_to(explained, workload, behind)

    async def ask(api: RemoteApi) -> Explanation | Unqueued | None:
        found = await api.find(job, namespace)
        if found is None:
            return None
        explained = read_as(Explanation, await api.part(found, "explain"))
        behind = await job_named(client, explained.job.job, namespace)  # which the API does not read
        explained = explained if behind is None else with_job(explained, behind, now)
        return await with_pods(explained, None, behind)

    async def otherwise() -> Explanation | Unqueued:
        found = await find_job(client, job, namespace, daemon_namespace)
        if found.workload is None:
            return _without_workload(found, namespace)
        explained = await _explained(client, found, found.workload, now, daemon_namespace)
        return await with_pods(explained, found.workload, found.job)

    return await api_first(client, ask, otherwise)


def _without_workload(found: Found, namespace: str) -> Unqueued:
    assert found.job is not None, "one of the two was found"
    if WORKLOAD in found.objects.unread:
        summary = summary_alone(found.job)
        return Unqueued(job=found.name, namespace=namespace, summary=summary, not_checked=found.unread)
    return unqueued(found.job, found.name, found.objects)


async def _explained(
    client: ClusterClient, found: Found, workload: Json, now: datetime, daemon_namespace: str
) -> Explanation:
    events, not_checked = await _events_if_permitted(client, found)
    unread = (*found.unread, *not_checked)
    waits = await read_waiting(client, (workload,), found.objects, found.namespace, now)
    objects = await _with_other_jobs(client, workload, found.objects)
    about = (workload, found.job, objects, events, now, daemon_namespace, unread, found.others)
    return explain(Seen(*about, waits[ObjectKey.of(workload)], audience_of(objects.unread)))


async def _with_other_jobs(client: ClusterClient, workload: Json, objects: ManagerObjects) -> ManagerObjects:
    """The objects with the Workloads of all namespaces where these may hold the quota that one waits for."""
    if state_of(workload, objects) is not JobState.QUEUED:
        return objects
    try:
        return attrs.evolve(objects, workloads=tuple((await client.list(WORKLOAD)).items))
    except ApiError:  # it may be told without them
        return objects


async def _events_if_permitted(client: ClusterClient, found: Found) -> tuple[tuple[EventReport, ...], tuple[str, ...]]:
    try:
        return await events_of(client, found.about), ()
    except Forbidden:
        return (), ("events, which tell what workers refuse: you may not list events.events.k8s.io",)


def explanation_exit_code(found: Explanation | Unqueued) -> int:
    """1 if somebody has to act."""
    return FINDING if any(one.blocking for one in found.findings) else FINE


def _lines(found: Explanation | Unqueued, now: datetime, width: int | None) -> list[str]:
    width = width or 160
    if isinstance(found, Explanation):
        return explanation_lines(found, now, width)
    lines = paragraph(f"{found.job} in namespace {found.namespace}: {found.summary}", width)
    lines += ["", "What to do:"] if found.findings else []
    for finding in found.findings:
        lines += finding_lines(finding, width)
    return lines + not_checked_lines(found.not_checked, width)


@attrs.frozen
class EventList:
    """What `multikueue events -o json` prints."""

    events: tuple[EventReport, ...]


@click.command("events")
@JOB_NAME
@target_options
@output_option
@watch_option
def events_command(job: str, output: Format, watch: bool, **options: Any) -> None:
    """List the events of JOB and its Workload on the manager, in the order of time.

    JOB is named as for explain. A series is one entry with its count.
    """
    target = target_of(options)

    printed = Printed[tuple[EventReport, ...]](
        lambda client, _: _gather_events(client, job, target.namespace, target.daemon_namespace),
        lambda events, now, width: events_lines(events, now, width or 160, wide=output == "wide"),
        value=EventList,
        wraps=True,
    )
    raise SystemExit(run(target, printed, output, watch=watch))


async def _gather_events(
    client: ClusterClient, job: str, namespace: str, daemon_namespace: str
) -> tuple[EventReport, ...]:
    async def ask(api: RemoteApi) -> tuple[EventReport, ...] | None:
        found = await api.find(job, namespace)
        return read_as(RemoteEvents, await api.part(found, "events")).items if found is not None else None

    async def otherwise() -> tuple[EventReport, ...]:
        found = await find_job(client, job, namespace, daemon_namespace)
        return await events_of(client, found.about)

    return await api_first(client, ask, otherwise)


@attrs.frozen
class RemoteEvents:
    """What the API answers of events."""

    items: tuple[EventReport, ...]
