"""The output of a demo: a live view of the queue and the clusters, then a table, or an object for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from multikueued.demo.tally import JobRecord, Stage, Tally

_WIDE = 70
"""Columns from which on all times of the jobs are shown."""
_NEWS = 4
"""Lines of what happened last, where there is room."""
_FIXED = 5
"""Rows that are always there: the frame, the manager, an empty line, the progress."""


def render(tally: Tally, quota: Mapping[str, float], elapsed: float, *, width: int = 80, height: int = 24) -> Panel:
    """The whole view, in the room there is: what does not fit is counted, not cut off.

    Args:
        tally: the jobs so far.
        quota: CPUs of each worker.
        elapsed: seconds since the start.
        width: columns of the screen.
        height: its rows.
    """
    inner, rows = max(20, width - 4), max(1, height - _FIXED - 1)
    workers = list(quota)
    shown = workers if len(workers) <= rows else workers[: rows - 1]
    lines = [_queue(tally, inner), *(_cluster(tally, name, quota[name], elapsed, inner) for name in shown)]
    if hidden := workers[len(shown) :]:
        running = sum(1 for name in hidden for _ in tally.running_on(name))
        lines.append(Text(f"and {len(hidden)} more workers, which run {running}", style="dim"))
    room = min(_NEWS, height - len(lines) - _FIXED - 1)
    news = [_news(at, event, inner) for at, event in list(tally.news)[-room:]] if room > 0 else []
    body = Group(*lines, *([Text(), *news] if news else []), Text(), _progress(tally, inner))
    return Panel(body, title=f"multikueue demo · {elapsed:.0f} s", title_align="left", width=width)


def _queue(tally: Tally, width: int) -> Text:
    waiting = [story.key.name for story in tally.stories.values() if story.stage is Stage.QUEUED]
    head = f"manager  {len(waiting)} queued  "
    return Text.assemble(("manager", "bold"), head[7:], (_names(waiting, width - len(head)), "dim"), no_wrap=True)


def _cluster(tally: Tally, worker: str, total: float, elapsed: float, width: int) -> Text:
    running = list(tally.running_on(worker))
    in_use = min(sum(story.cpus for story in running), total)
    cells = 12 if width >= 60 else 6
    full = round(cells * in_use / total) if total else 0
    head = f"{worker:<9}"
    bar = (("━" * full, "green"), ("━" * (cells - full), "bright_black"), (f" {in_use:g}/{total:g} CPUs  ", ""))
    room = width - len(head) - sum(len(text) for text, _ in bar)
    if (since := tally.lost.get(worker)) is not None:
        return Text.assemble(
            (head, "bold red"), *bar, (f"out of reach for {elapsed - since:.0f} s", "red"), no_wrap=True
        )
    names = _names([story.key.name for story in running], room)
    offered = [story.key.name for story in tally.offered_to(worker)]
    offers = f"  offered {_names(offered, room - len(names) - 10)}" if offered and room - len(names) > 18 else ""
    return Text.assemble((head, "bold"), *bar, (names, "green"), (offers, "dim"), no_wrap=True)


def _news(at: float, event: str, width: int) -> Text:
    text = Text.assemble((f"{at:5.1f} s  ", "dim"), event, no_wrap=True)
    text.truncate(width, overflow="ellipsis")
    return text


def _progress(tally: Tally, width: int) -> RenderableType:
    ended, failed = tally.count(Stage.FINISHED, Stage.SERVED, Stage.FAILED), tally.count(Stage.FAILED)
    text = f"{ended} of {len(tally.stories)} jobs ended" + (f", {failed} failed" if failed else "")
    bar = ProgressBar(total=max(1, len(tally.stories)), completed=ended, width=max(6, min(40, width - len(text) - 4)))
    grid = Table.grid(padding=(0, 2))
    grid.add_row(bar, text)
    return grid


def progress_line(tally: Tally, workers: Iterable[str], elapsed: float) -> str:
    """The same in one line, for an output that is no terminal."""
    ended = tally.count(Stage.FINISHED, Stage.SERVED, Stage.FAILED)
    jobs = f"{tally.count(Stage.QUEUED)} queued, {ended} of {len(tally.stories)} ended"
    runs = {worker: sum(1 for _ in tally.running_on(worker)) for worker in workers}
    counts = [
        f"{worker} {'is out of reach with' if worker in tally.lost else 'runs'} {count}"
        for worker, count in runs.items()
    ]
    return f"{elapsed:5.1f} s  {', '.join((jobs, *counts))}"


def _names(names: list[str], room: int) -> str:
    """As many names as there is room for."""
    shown = ""
    for number, name in enumerate(names):
        longer = f"{shown} {name}".lstrip()
        rest = "" if number == len(names) - 1 else " …"
        if len(longer) + len(rest) > room:
            return f"{shown} …".lstrip() if room > 0 else ""
        shown = longer
    return shown


def summary(tally: Tally, workers: list[str], seconds: float) -> dict[str, Any]:
    """The object `--json` prints."""
    ends = [story.ended for story in tally.stories.values() if story.ended is not None]
    return {
        "jobs": len(tally.stories),
        "finished": tally.count(Stage.FINISHED, Stage.SERVED),
        "failed": tally.count(Stage.FAILED),
        "per_cluster": {name: sum(story.cluster == name for story in tally.stories.values()) for name in workers},
        "on_several": sum(len(story.clusters) > 1 for story in tally.stories.values()),
        "leftovers": tally.leftovers,
        "ended_out_of_reach": sum(bool(story.ended_out_of_reach) for story in tally.stories.values()),
        "moved": sum(story.moves for story in tally.stories.values()),
        "first_finished_s": round(min(ends), 3) if ends else None,
        "seconds": round(seconds, 3),
        "items": [item(story) for story in tally.stories.values()],
    }


def item(story: JobRecord) -> dict[str, Any]:
    """One job in the object that `--json` prints; times are seconds since the start, null: it never came."""
    return {
        "kind": story.kind.name,
        "namespace": story.key.namespace,
        "name": story.key.name,
        "outcome": str(story.stage),
        "cluster": story.cluster or None,
        "queued_s": _rounded(story.queued),
        "admitted_s": _rounded(story.admitted),
        "finished_s": _rounded(story.ended),
        "placements": [
            {"cluster": stay.worker, "since_s": _rounded(stay.since), "until_s": _rounded(stay.until)}
            for stay in story.stays
        ],
        "waits_for": story.waits_for or None,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def print_table(console: Console, tally: Tally) -> None:
    """One line for each job; with the kinds, and fewer times, if there are several kinds."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    several = len({story.kind for story in tally.stories.values()}) > 1
    texts, times = (["kind"] if several else []) + ["job", "cluster"], _times(several, console.width)
    for column in texts:
        table.add_column(column, no_wrap=True)
    for column in times:
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for story in tally.stories.values():
        row = _row(story)
        table.add_row(*(row[column] for column in (*texts, *times, "outcome")))
    console.print(table)


def _times(several: bool, width: int) -> tuple[str, ...]:
    if width < _WIDE:
        return ()
    return ("finished",) if several else ("queued", "admitted", "finished", "ran")


def problems(tally: Tally) -> list[str]:
    """What went wrong, one sentence each."""
    return [_problem(story) for story in tally.stories.values() if not story.went_well]


def sentences_of(tally: Tally, workers: Iterable[str], *, broken: str = "") -> list[str]:
    """What became of the jobs, a sentence each.

    Args:
        tally: the jobs.
        workers: all of them, for the sum.
        broken: the worker that was to be taken away; empty: none.
    """
    ended = [story for story in tally.stories.values() if story.stage in (Stage.FINISHED, Stage.SERVED)]
    counts = [f"{sum(story.cluster == name for story in ended)} on {name}" for name in workers]
    if several := sum(len(story.clusters) > 1 for story in ended):
        counts.append(f"{several} with pods on several")
    spread = f": {', '.join(counts)}" if ended else ""
    sentences = [f"{len(ended)} of {len(tally.stories)} jobs finished{spread}."]
    if out_of_reach := sum(bool(story.ended_out_of_reach) for story in tally.stories.values()):
        sentences.append(f"{out_of_reach} ended on a worker while it could not be reached.")
    if moved := sum(story.moves for story in tally.stories.values()):
        sentences.append(f"{moved} moved to another worker: theirs could not be reached.")
    if broken and broken not in {*tally.lost, *(loss.worker for loss in tally.losses)}:
        sentences.append(f"The way to {broken} was not cut: it had no job for long enough. More --jobs give it some.")
    return sentences


def print_problems(console: Console, lines: Iterable[str]) -> None:
    """Print what is wrong."""
    for line in lines:
        console.print(line, style="red", markup=False, highlight=False, soft_wrap=True)


def giving_up(tally: Tally) -> str:
    """The message at the timeout: more time helps only jobs that wait for nothing else."""
    if any(story.waits_for for story in tally.stories.values()):
        return "Gave up waiting: if what the jobs wait for can still come, raise --timeout."
    return "Gave up waiting: raise --timeout to wait longer."


def _row(story: JobRecord) -> dict[str, str]:
    """By column."""
    return {
        "kind": story.kind.name,
        "job": story.key.name,
        "cluster": story.cluster or "-",
        "queued": _seconds(story.queued),
        "admitted": _seconds(story.admitted),
        "finished": _seconds(story.ended),
        "ran": _seconds(ran(story)),
        "outcome": str(story.stage),
    }


def _problem(story: JobRecord) -> str:
    name = f'{story.kind.resource.gvk.kind} "{story.key.name}"'
    if story.stage is Stage.FAILED:
        return f"{name} failed on {story.cluster}"
    if story.stage not in (Stage.FINISHED, Stage.SERVED):
        return f"{name} did not finish: it is {story.stage}" + (f": {story.waits_for}" if story.waits_for else "")
    ran_on = ", ".join(sorted(story.ran_on)) or "no worker"
    return f'{name} was seen running on {ran_on}, but the manager names "{story.cluster}"'


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def ran(story: JobRecord) -> float | None:
    """Seconds for which some worker had a job; None: it has not ended, or none had it."""
    if story.ended is None or not story.stays:
        return None
    total, reached = 0.0, 0.0
    for stay in sorted(story.stays, key=lambda stay: stay.since):
        until = story.ended if stay.until is None else stay.until
        total, reached = total + max(0.0, until - max(reached, stay.since)), max(reached, until)
    return total
