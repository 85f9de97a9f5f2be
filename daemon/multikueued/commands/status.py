"""`multikueue status`: the fleet on one screen."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import attrs
import click
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from multikueue.core.model.outside_text import one_line
from multikueue.core.model.quantities import MILLI, thousandths
from multikueued.clusters import ClusterClient
from multikueued.commands.options import OUTPUT, WATCH, Format, target_of, target_options
from multikueued.commands.report_runner import Printed, exit_code_of, run
from multikueued.commands.report_text import (
    daemon_line,
    finding_lines,
    mirrors_lines,
    status_lines,
    totals_line,
    workers_table,
)
from multikueued.diagnosis.fleet import StatusReport, status_report
from multikueued.reading.manager_lists import read_objects
from multikueued.reading.own_words import in_sum, own_words
from multikueued.reports.jobs import JobFilter, job_reports
from multikueued.reports.queues import QueueReport
from multikueued.reports.waiting_jobs import with_waiting

_WIDTH = 76
"""Columns inside of the frame on a terminal of 80."""


@click.command("status")
@target_options
@OUTPUT
@WATCH
def status(output: Format, watch: bool, **options: Any) -> None:
    """Show the workers, the queues, and what needs somebody.

    It reads the manager alone. Exits with 1 if somebody has to act, as when a worker is not connected.
    """
    target = target_of(options)

    printed = Printed[StatusReport](
        lambda client, now: gather_status(client, now, target.daemon_namespace),
        lambda report, _, width: status_lines(report, width, wide=output == "wide"),
        lambda report: exit_code_of(report.findings),
        panel=status_panel,
    )
    raise SystemExit(run(target, printed, output, watch=watch))


async def gather_status(client: ClusterClient, now: datetime, daemon_namespace: str) -> StatusReport:
    """Read the manager and report."""
    objects = await read_objects(client, "", daemon_namespace)
    report = status_report(objects, now)
    words = await own_words(client, job_reports(objects.chains, JobFilter()), now)
    findings = with_waiting(report.findings, objects, now)
    return attrs.evolve(report, findings=(*findings, *in_sum(words.troubles)), not_checked=words.not_checked)


def status_panel(status: StatusReport, now: datetime) -> RenderableType:
    """The live view of --watch: the demo's panel, of clusters that exist."""
    lines = workers_table(status.workers, now, _WIDTH, wide=False)
    parts: list[RenderableType] = [
        Text(one_line(daemon_line(status.daemon, now))),
        Text(),
        Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis"),
        Text(),
        _queues(status.queues),
        Text(),
        Text("\n".join((totals_line(status), *mirrors_lines(status)))),
    ]
    for finding in status.findings:
        parts.append(Text("\n".join(finding_lines(finding, _WIDTH)), style="red" if finding.blocking else "dim"))
    return Panel(Group(*parts), title=f"multikueue status · {now:%H:%M:%SZ}", title_align="left")


def _queues(queues: Iterable[QueueReport]) -> RenderableType:
    """A bar for each resource of each queue: quota in use."""
    grid = Table.grid(padding=(0, 2))
    for queue in queues:
        waiting = Text(f"{queue.queued + queue.waiting} waiting", style="dim")
        for number, (resource, total) in enumerate(queue.total.items()):
            used = queue.used.get(resource, "0")
            amount, most = thousandths(used) / MILLI, thousandths(total) / MILLI
            bar = ProgressBar(total=most or 1, completed=min(amount, most), width=20)
            name = Text(queue.name if number == 0 else "", style="bold")
            grid.add_row(name, bar, f"{resource} {used}/{total}", waiting if number == 0 else Text())
    return grid
