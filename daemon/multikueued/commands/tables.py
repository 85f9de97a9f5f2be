"""Tables and paragraphs of text that fit the width of a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import click

from multikueue.core.model.outside_text import one_line

GAP: Final = 2
_LEAST: Final = 8
"""Characters that a column keeps, however narrow the terminal is."""
COLOURS: Final = {
    **dict.fromkeys(("Running", "Connected", "Finished", "Active", "Admitted", "Ready"), "green"),
    **dict.fromkeys(("Lost", "Rejected", "Failed", "Missing", "NotConnected", "Inactive", "Refused"), "red"),
    **dict.fromkeys(("Degraded", "Unusable", "Cordoned", "Retrying", "Stopping", "Waiting", "Warning"), "yellow"),
}
"""Of words that tell a state."""


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, *, wrapped: bool = False
) -> list[str]:
    """Lines with aligned columns. What does not fit is cut in the widest columns, and ends in `…`.

    Args:
        columns: their headings.
        rows: the cells.
        width: of the terminal; None: nothing is cut.
        wrapped: whether the last column goes on in further lines instead of being cut.
    """
    cells = [[one_line(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(columns))]
    if width is not None:
        _fit(widths, width - GAP * (len(columns) - 1))
    lines: list[str] = []
    for number, row in enumerate(cells):
        last = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) if wrapped and widths[-1] else []
        lines.append(_line([*row[:-1], last[0]] if last else row, widths, colour=number > 0))
        lines += [_line([*[""] * (len(row) - 1), more], widths, colour=False) for more in last[1:]]
    return lines


def _fit(widths: list[int], room: int) -> None:
    """Make the widest columns narrower until all fit; changes its argument."""
    while sum(widths) > room and max(widths) > _LEAST:
        widest = max(range(len(widths)), key=lambda number: widths[number])
        widths[widest] = max(_LEAST, widths[widest] - (sum(widths) - room), widths[widest] // 2)


def _line(row: Sequence[str], widths: Sequence[int], *, colour: bool) -> str:
    cut = [cell if len(cell) <= width else cell[: width - 1] + "…" for cell, width in zip(row, widths, strict=True)]
    padding = [" " * (width + GAP - len(cell)) for cell, width in zip(cut, widths, strict=True)]
    painted = [paint(cell) if colour else cell for cell in cut]
    return "".join(cell + space for cell, space in zip(painted, padding, strict=True)).rstrip()


def paint(word: str) -> str:
    """A state's word in its colour; anything else as it is."""
    colour = COLOURS.get(word)
    return click.style(word, fg=colour) if colour is not None else word


def paragraph(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """A text as lines of at most `width` characters; words that are longer stay whole."""
    return textwrap.wrap(
        one_line(text),
        max(width, 40),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, as kubectl writes it: `45s`, `3m20s`, `5h`, `12d`; `-` if it is not known."""
    return "-" if since is None else span(now - since)


def until(moment: datetime, now: datetime) -> str:
    """When, for people: the time of day in UTC and how long that is from now."""
    return f"{moment:%H:%M:%SZ} (in {span(moment - now)})" if moment > now else f"{moment:%H:%M:%SZ}"


def span(length: timedelta) -> str:
    """A length of time in one or two units."""
    seconds = max(0, int(length.total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{days}d"


def listed(amounts: Mapping[str, str], totals: Mapping[str, str] | None = None) -> str:
    """Amounts in a line: `cpu 3, memory 1Gi`, or with totals `cpu 3/8`."""
    if totals is None:
        return ", ".join(f"{name} {amount}" for name, amount in amounts.items()) or "-"
    return ", ".join(f"{name} {amounts.get(name, '0')}/{total}" for name, total in totals.items()) or "-"
