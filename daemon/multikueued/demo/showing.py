"""The output of a demo: a live view of the queue and the clusters, then a table, or an object for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from multikueued.demo.tally import Stage, Story, Tally

_SHOWN_NAMES = 5
"""Job names shown in a line; more would wrap."""


def render(tally: Tally, quota: Mapping[str, float], elapsed: float) -> RenderableType:
    """The whole view.

    Args:
        tally: the jobs so far.
        quota: CPUs of each worker.
        elapsed: seconds since the start.
    """
    return Panel(
        Group(_queue(tally), Text(), _clusters(tally, quota), Text(), _progress(tally)),
        title=f"multikueue demo · {elapsed:.0f} s",
        title_align="left",
    )


def _queue(tally: Tally) -> RenderableType:
    waiting = [story.key.name for story in tally.stories.values() if story.stage is Stage.QUEUED]
    return Text.assemble(("manager  ", "bold"), f"{len(waiting)} queued  ", (_names(waiting), "dim"))


def _clusters(tally: Tally, quota: Mapping[str, float]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for worker, total in quota.items():
        running = list(tally.running_on(worker))
        in_use = min(sum(story.cpus for story in running), total)
        table.add_row(
            Text(worker, style="bold"),
            ProgressBar(total=total, completed=in_use, width=20),
            f"{in_use:g}/{total:g} CPUs",
            Text(_names([story.key.name for story in running]), style="green"),
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


def summary(tally: Tally, workers: list[str], seconds: float) -> dict[str, Any]:
    """The object `--json` prints."""
    ends = [story.ended for story in tally.stories.values() if story.ended is not None]
    return {
        "jobs": len(tally.stories),
        "finished": tally.count(Stage.FINISHED, Stage.SERVED),
        "failed": tally.count(Stage.FAILED),
        "per_cluster": {worker: sum(worker in story.ran_on for story in tally.stories.values()) for worker in workers},
        "leftovers": tally.leftovers,
        "first_finished_s": round(min(ends), 3) if ends else None,
        "seconds": round(seconds, 3),
    }


def print_table(console: Console, tally: Tally) -> None:
    """One line for each job; with the kinds, and fewer times, if there are several kinds."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    several = len({story.kind for story in tally.stories.values()}) > 1
    columns = ["finished"] if several else ["queued", "admitted", "finished", "ran"]
    for column in ["kind", "job", "cluster"] if several else ["job", "cluster"]:
        table.add_column(column, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("outcome")
    for story in tally.stories.values():
        table.add_row(*_row(story, several=several))
    console.print(table)


def problems(tally: Tally) -> list[str]:
    """What went wrong, one sentence each."""
    return [_problem(story) for story in tally.stories.values() if not story.went_well]


def giving_up(tally: Tally) -> str:
    """The message at the timeout: more time helps only jobs that wait for nothing else."""
    if any(story.waits_for for story in tally.stories.values()):
        return "Gave up waiting: if what the jobs wait for can still come, raise --timeout."
    return "Gave up waiting: raise --timeout to wait longer."


def _row(story: Story, *, several: bool) -> list[str]:
    name, cluster, ended = story.key.name, story.cluster or "-", _seconds(story.ended)
    if several:
        return [story.kind.name, name, cluster, ended, str(story.stage)]
    ran = _difference(story.admitted, story.ended)
    return [name, cluster, _seconds(story.queued), _seconds(story.admitted), ended, ran, str(story.stage)]


def _problem(story: Story) -> str:
    name = f'{story.kind.resource.gvk.kind} "{story.key.name}"'
    if story.stage is Stage.FAILED:
        return f"{name} failed on {story.cluster}"
    if story.stage not in (Stage.FINISHED, Stage.SERVED):
        return f"{name} did not finish: it is {story.stage}" + (f": {story.waits_for}" if story.waits_for else "")
    ran_on = ", ".join(sorted(story.ran_on)) or "no worker"
    return f'{name} was seen running on {ran_on}, but the manager names "{story.cluster}"'


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _difference(start: float | None, end: float | None) -> str:
    return "-" if start is None or end is None else f"{max(0.0, end - start):.1f} s"
