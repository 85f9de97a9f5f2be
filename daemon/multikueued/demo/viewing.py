"""The live view: the queue, the clusters with their quota, and the progress of all jobs."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from multikueued.demo.tally import Stage, Tally

_SHOWN_NAMES = 5
"""Job names shown in a line; more would wrap."""


def render(tally: Tally, quota: Mapping[str, float], used: Mapping[str, float], elapsed: float) -> RenderableType:
    """The whole view.

    Args:
        tally: what has been seen.
        quota: CPUs of each worker.
        used: CPUs in use on each worker.
        elapsed: seconds since the start.
    """
    return Panel(
        Group(_queue(tally), Text(), _clusters(tally, quota, used), Text(), _progress(tally)),
        title=f"multikueue demo · {elapsed:.0f} s",
        title_align="left",
    )


def _queue(tally: Tally) -> RenderableType:
    waiting = [story.key.name for story in tally.stories.values() if story.stage is Stage.QUEUED]
    return Text.assemble(("manager  ", "bold"), f"{len(waiting)} queued  ", (_names(waiting), "dim"))


def _clusters(tally: Tally, quota: Mapping[str, float], used: Mapping[str, float]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column()
    for worker, total in quota.items():
        in_use = min(used.get(worker, 0.0), total)
        running = [story.key.name for story in tally.running_on(worker)]
        table.add_row(
            Text(worker, style="bold"),
            ProgressBar(total=total, completed=in_use, width=20),
            f"{in_use:g}/{total:g} CPUs",
            Text(_names(running), style="green"),
        )
    return table


def _progress(tally: Tally) -> RenderableType:
    ended = tally.count(Stage.FINISHED, Stage.SERVED, Stage.FAILED)
    failed = tally.count(Stage.FAILED)
    grid = Table.grid(padding=(0, 2))
    text = f"{ended} of {len(tally.stories)} jobs ended" + (f", {failed} failed" if failed else "")
    grid.add_row(ProgressBar(total=max(1, len(tally.stories)), completed=ended, width=40), text)
    return grid


def _names(names: list[str]) -> str:
    shown = " ".join(names[:_SHOWN_NAMES])
    return f"{shown} …" if len(names) > _SHOWN_NAMES else shown
