"""How a demo ended: a table for people, an object for programs."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from multikueued.demo.tally import Stage, Story, Tally


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
    """The stories, one line each; with the kinds, and less about times, if there are several."""
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
    """What did not go as it should, one sentence each."""
    return [_problem(story) for story in tally.stories.values() if not story.went_well]


def giving_up(tally: Tally) -> str:
    """What is said when the time is over: more of it helps only those that wait for nothing else."""
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
