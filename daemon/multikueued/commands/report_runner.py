"""Runs a command: connects to the manager, makes its report, prints it once or again and again."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

import anyio
import attrs
import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from multikueue.core.model.outside_text import without_controls
from multikueue.kube import KubeClient
from multikueue.runtime.loop import utc_now
from multikueued.clusters import ClusterClient
from multikueued.commands.options import CLIENT, Format
from multikueued.exits import FINDING, FINE, NOT_REACHABLE, CommandError, for_people
from multikueued.reading.asked import ReportTarget
from multikueued.reading.structured import as_json, as_yaml
from multikueued.reports.remedies.remedy import Finding

R = TypeVar("R")

EVERY: Final = 2.0
"""Seconds between two looks of --watch, at least."""
SHARE: Final = 10
"""A look that takes long is followed by a pause that is so many times as long, less one: a manager with very many jobs
is read a tenth of the time at most."""


@attrs.frozen
class Printed(Generic[R]):
    """How a report is made, printed and judged."""

    make: Callable[[ClusterClient, datetime], Awaitable[R]]
    lines: Callable[[R, datetime, int | None], list[str]]
    """As text, for a terminal of that width; None: nothing is cut."""
    exit_code: Callable[[R], int] = lambda _: FINE
    panel: Callable[[R, datetime], RenderableType] | None = None
    """For --watch at a terminal; None: the text."""
    value: Callable[[R], Any] = lambda report: report
    """What -o json and yaml print."""
    names: Callable[[R], Iterable[str]] = lambda _: ()
    """What -o name prints, a line each, for commands that have it."""
    wraps: bool = False
    """Whether lines go on in the next one; otherwise tables are cut at a terminal, and nowhere else."""


def run(target: ReportTarget, printed: Printed[R], output: Format, *, watch: bool = False) -> int:
    """Run a command; returns its exit code."""
    return anyio.run(_run, target, printed, output, watch)


async def _run(target: ReportTarget, printed: Printed[R], output: Format, watch: bool) -> int:
    with for_people(target.config.server):
        async with KubeClient(target.config, name="manager", options=CLIENT) as client:
            if watch:
                await _watch(client, target, printed, output)
            report = await printed.make(client, utc_now())
    text = text_of(report, printed, output)
    if text or output != "name":  # a loop over no names does nothing
        echo(text)
    return printed.exit_code(report)


def text_of(report: R, printed: Printed[R], output: Format) -> str:
    """A report as text of the format that is asked for."""
    if output == "json":
        return as_json(printed.value(report))
    if output == "yaml":
        return as_yaml(printed.value(report))
    if output == "name":
        return "\n".join(printed.names(report))
    whole = output == "wide" or not (printed.wraps or sys.stdout.isatty())
    return "\n".join(printed.lines(report, utc_now(), None if whole else terminal_width()))


_COLOUR: Final = re.compile("(\x1b\\[[0-9;]{1,8}m)")
"""What `paint` puts around words; cells of tables have none of their own, see `tables`."""


def for_terminal(text: str) -> str:
    """A text without anything that a terminal acts on, but for colours."""
    return "".join(part if _COLOUR.fullmatch(part) else without_controls(part) for part in _COLOUR.split(text))


def echo(text: str) -> None:
    """Print, with colours only at a terminal and without NO_COLOR, and nothing else that a terminal acts on."""
    click.echo(for_terminal(text), color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def terminal_width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return Console().width if sys.stdout.isatty() else 80


async def _watch(client: ClusterClient, target: ReportTarget, printed: Printed[R], output: Format) -> None:
    """Print again and again until cancelled. At a terminal a manager that is away is told, and asked again."""
    if sys.stdout.isatty() and output in ("table", "wide"):
        with Live(console=LiveConsole(), refresh_per_second=4) as live:
            while True:
                began = anyio.current_time()
                live.update(await _view(client, target, printed, output))
                await _pause(began)
    last = ""
    while True:
        began = anyio.current_time()
        text = text_of(await printed.make(client, utc_now()), printed, output)
        if text != last:
            echo(f"{text}\n")
        last = text
        await _pause(began)


async def _pause(began: float) -> None:
    took = anyio.current_time() - began
    await anyio.sleep(max(EVERY, took * (SHARE - 1)))


async def _view(client: ClusterClient, target: ReportTarget, printed: Printed[R], output: Format) -> RenderableType:
    try:
        with for_people(target.config.server):
            report = await printed.make(client, utc_now())
    except CommandError as error:
        if error.exit_code != NOT_REACHABLE:
            raise
        return Text(f"{error}\nIt is asked again every {EVERY:g} s; Ctrl-C ends this.", style="red")
    if printed.panel is not None:
        return printed.panel(report, utc_now())
    return Text.from_ansi(text_of(report, printed, output))


def exit_code_of(findings: Iterable[Finding]) -> int:
    """1 if somebody has to act."""
    return FINDING if any(finding.blocking for finding in findings) else FINE


class LiveConsole(Console):
    """The console of --watch."""

    def on_broken_pipe(self) -> None:
        """The reader is gone: the command line ends without an error message."""
        raise BrokenPipeError(errno.EPIPE, "the reader of our output is gone")
