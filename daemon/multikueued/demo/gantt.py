"""A picture of the run: one bar for each job, from its submission to its end, in the colours of its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from string import ascii_uppercase
from typing import Final, TypeAlias

from rich.text import Text

from multikueued.demo.tally import JobRecord, Tally, WorkerStay

Cell: TypeAlias = tuple[str, str]
"""A character and its style."""
COLOURS: Final = ("green", "cyan", "magenta", "yellow", "blue", "bright_green", "bright_cyan", "bright_magenta")
LOST: Final[Cell] = ("x", "red")
MOST_ROWS: Final = 40
"""Jobs shown; the first ones."""


def gantt(tally: Tally, workers: Sequence[str], width: int, *, colours: bool = True) -> list[Text]:
    """The lines of the picture.

    Args:
        tally: the jobs.
        workers: their order gives the colours.
        width: columns there are.
        colours: whether there are any; else each worker has a letter.
    """
    stories = list(tally.stories.values())[:MOST_ROWS]
    end = max((story.ended or 0.0 for story in tally.stories.values()), default=0.0)
    if not stories or not end:
        return []
    names = min(max(len(story.key.name) for story in stories), max(8, width // 3))
    room = max(10, width - names - 2)
    marks = {worker: _mark(number, colours=colours) for number, worker in enumerate(workers)}
    lines = [_bar(story, names, room / end, room, marks) for story in stories]
    lines += [_loss(loss, names, room / end, room) for loss in tally.losses]
    if len(tally.stories) > MOST_ROWS:
        lines.append(Text(f"… and {len(tally.stories) - MOST_ROWS} more jobs", style="dim"))
    return [*lines, *_legend(marks, names, room, end, losses=bool(tally.losses))]


def _mark(number: int, *, colours: bool) -> Cell:
    return ("█", COLOURS[number % len(COLOURS)]) if colours else (ascii_uppercase[number % len(ascii_uppercase)], "")


def _bar(story: JobRecord, names: int, scale: float, room: int, marks: Mapping[str, Cell]) -> Text:
    line: list[Cell] = [(" ", "")] * room
    _fill(line, story.queued, story.ended, scale, ("·", "dim"))
    for stay in story.stays:
        _fill(line, stay.since, stay.until, scale, marks[stay.worker])
    return Text.assemble(f"{story.key.name[:names]:<{names}}  ", *line, no_wrap=True)


def _loss(loss: WorkerStay, names: int, scale: float, room: int) -> Text:
    line: list[Cell] = [(" ", "")] * room
    _fill(line, loss.since, loss.until, scale, LOST)
    return Text.assemble((f"{loss.worker[:names]:<{names}}  ", "red"), *line, no_wrap=True)


def _fill(line: list[Cell], since: float, until: float | None, scale: float, cell: Cell) -> None:
    """Mark a time, with one column at least."""
    first = min(len(line) - 1, int(since * scale))
    last = len(line) if until is None else max(first + 1, ceil(until * scale))
    for column in range(first, min(last, len(line))):
        line[column] = cell


def _legend(marks: Mapping[str, Cell], names: int, room: int, end: float, *, losses: bool) -> list[Text]:
    until = f"{end:.1f} s"
    scale = Text(f"{'':<{names}}  0 s{until:>{max(len(until), room - 3)}}", style="dim", no_wrap=True)
    parts: list[Cell] = []
    for worker, mark in marks.items():
        parts += [mark, (f" {worker}  ", "")]
    parts += [("·", "dim"), (" queued", "")]
    if losses:
        parts += [("  ", ""), LOST, (" out of reach", "")]
    return [scale, Text.assemble(*parts)]
