"""The live view of `multikueue status --watch`: the demo's panel, of clusters that exist."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from multikueue.core.model.outside_text import one_line
from multikueue.core.model.quantities import MILLI, thousandths
from multikueued.commands.report_text import daemon_line, finding_lines, totals_line, workers_table
from multikueued.reports.queues import QueueReport
from multikueued.reports.status import StatusReport

_WIDTH = 76
"""Columns inside of the frame on a terminal of 80."""


def status_panel(status: StatusReport, now: datetime) -> RenderableType:
    """The whole view."""
    lines = workers_table(status.workers, now, _WIDTH, wide=False)
    parts: list[RenderableType] = [
        Text(one_line(daemon_line(status.daemon, now))),
        Text(),
        Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis"),
        Text(),
        _queues(status.queues),
        Text(),
        Text(totals_line(status)),
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
