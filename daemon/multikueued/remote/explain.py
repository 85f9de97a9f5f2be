"""`multikueue explain JOB`, `events JOB` and `retry JOB`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs
import click

from multikueued.clusters import ClusterClient
from multikueued.commands.options import JOB_NAME, OUTPUT, WATCH, Format, target_of, target_options
from multikueued.commands.report_runner import Printed, exit_code_of, run
from multikueued.commands.report_text import events_lines, explanation_lines, finding_lines, not_checked_lines
from multikueued.commands.tables import paragraph
from multikueued.reading.api_first import ask
from multikueued.reading.asked import Asked
from multikueued.remote.command import ORIGIN
from multikueued.remote.explained_pods import JobPods
from multikueued.reports.events import EventReport
from multikueued.reports.explanation import Explanation
from multikueued.reports.unqueued import Unqueued


@click.command("explain")
@JOB_NAME
@target_options
@ORIGIN
@OUTPUT
@WATCH
def explain_command(job: str, origin: str, output: Format, watch: bool, **options: Any) -> None:
    """Say why JOB is where it is, what happens next, and what to do.

    JOB is TYPE/NAME, as job/train-1 or rayjob/tune; a NAME alone if one job has it; or workload/NAME. It reads the
    manager; of a job that has failed, or of which no pod is ready for minutes, also its pods as multikueue pods does,
    if you may read them. Exits with 1 if somebody has to act.
    """
    target = target_of(options)
    asked = Asked(job, target, origin)

    printed = Printed[Explanation | Unqueued](
        lambda client, now: gather_explanation(client, asked, now),
        _lines,
        lambda explanation: exit_code_of(explanation.findings),
        wraps=True,
    )
    raise SystemExit(run(target, printed, output, watch=watch))


async def gather_explanation(client: ClusterClient, asked: Asked, now: datetime) -> Explanation | Unqueued:
    """Explain a job, and by its pods if these may be read.

    Raises:
        CommandError: there is no such job, or there are several.
    """
    answer = await ask(client, lambda source: source.explanation(asked, now))
    if isinstance(answer.made, Unqueued):
        return answer.made
    return await JobPods(client, asked, now).added_to(answer.made, answer.workload, answer.job)


def _lines(explanation: Explanation | Unqueued, now: datetime, width: int | None) -> list[str]:
    width = width or 160
    if isinstance(explanation, Explanation):
        return explanation_lines(explanation, now, width)
    lines = paragraph(f"{explanation.job} in namespace {explanation.namespace}: {explanation.summary}", width)
    lines += ["", "What to do:"] if explanation.findings else []
    for finding in explanation.findings:
        lines += finding_lines(finding, width)
    return lines + not_checked_lines(explanation.not_checked, width)


@attrs.frozen
class EventList:
    """What `multikueue events -o json` prints."""

    events: tuple[EventReport, ...]


@click.command("events")
@JOB_NAME
@target_options
@OUTPUT
@WATCH
def events_command(job: str, output: Format, watch: bool, **options: Any) -> None:
    """List the events of JOB and its Workload on the manager, in the order of time.

    JOB is named as for explain. A series is one entry with its count.
    """
    target = target_of(options)
    asked = Asked(job, target)

    printed = Printed[tuple[EventReport, ...]](
        lambda client, _: ask(client, lambda source: source.events(asked)),
        lambda events, now, width: events_lines(events, now, width or 160, wide=output == "wide"),
        value=EventList,
        wraps=True,
    )
    raise SystemExit(run(target, printed, output, watch=watch))
