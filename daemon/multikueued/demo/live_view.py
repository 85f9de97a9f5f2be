"""Shows a demo while it runs: a view that is drawn again and again, or a line each second."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from rich.console import Console
from rich.live import Live

from multikueued.demo.jobs import Submission
from multikueued.demo.output import progress_line, render
from multikueued.demo.run import Demo

_FRAMES_PER_SECOND = 8


@asynccontextmanager
async def shown(running: Demo, console: Console) -> AsyncIterator[None]:
    """Show the demo for as long as the body runs."""
    async with anyio.create_task_group() as drawing:
        drawing.start_soon(_draw if console.is_terminal else _print_progress, running, console)
        yield
        drawing.cancel_scope.cancel()


async def watch(
    running: Demo, jobs: Sequence[Submission], timeout: float, console: Console, *, pace: float = 0.0
) -> bool:
    """Submit the jobs, with a pause after each, and show them until all have ended; False if that takes too long."""
    async with shown(running, console):
        await running.submit(jobs, pace)
        with anyio.move_on_after(timeout) as limit:
            await running.wait()
    return not limit.cancelled_caught


async def _draw(running: Demo, console: Console) -> None:
    quota = dict.fromkeys(running.sandbox.workers, running.cpus)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            size = console.size
            view = render(running.tally, quota, running.elapsed, width=size.width, height=size.height)
            live.update(view, refresh=True)
            await anyio.sleep(1 / _FRAMES_PER_SECOND)


async def _print_progress(running: Demo, console: Console) -> None:
    """A line each second in which something has changed."""
    said = ""
    while True:
        await anyio.sleep(1)
        line = progress_line(running.tally, running.sandbox.workers, running.elapsed)
        if line.partition("  ")[2] != said:
            console.print(line, highlight=False, soft_wrap=True)
        said = line.partition("  ")[2]
