"""`--break`: takes a worker away while it runs jobs, and gives it back once they have moved."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import anyio
import attrs

from multikueue.errors import SettingsError
from multikueue.sandbox.apiserver.faults import Match, Reset
from multikueued.demo.run import Demo
from multikueued.demo.tally import Stage
from multikueued.settings.config import Settings

LOST_AFTER: Final = timedelta(seconds=2)
"""`workerLostTimeout` of the demo: nobody wants to watch for a quarter of an hour."""
BREAKS_AFTER: Final = 0.5
"""Seconds for which the worker has jobs before it is taken away."""
BACK_AFTER: Final = 2.0
"""Seconds after the last of its jobs has moved until it is back."""
_DISPATCHER = Match(user="multikueue")


def check_broken(worker: str, workers: int) -> None:
    """Refuse a worker that does not exist, or has nobody to take its jobs.

    Raises:
        SettingsError: it cannot be broken.
    """
    names = [f"worker{number}" for number in range(1, workers + 1)]
    if worker not in names:
        raise SettingsError(f"--break: there is no {worker}: the workers are {', '.join(names)}")
    if workers == 1:
        raise SettingsError("--break: its jobs could go nowhere: raise --workers")


def with_short_patience(settings: Settings) -> Settings:
    """The daemon's settings for such a demo."""
    return attrs.evolve(settings, worker_lost_timeout=LOST_AFTER)


async def break_worker(demo: Demo, worker: str) -> None:
    """Cut the way from the manager to a worker while jobs run there; what runs there does not notice.

    It is back once the manager has given its jobs to others, or they have ended.
    """
    while not any(demo.tally.running_on(worker)):
        await demo.changed()
    await anyio.sleep(BREAKS_AFTER)
    there = list(demo.tally.running_on(worker))
    faults = demo.sandbox.workers[worker].server.faults
    fault = faults.add(Reset(), on=_DISPATCHER)
    faults.connections.drop()
    demo.tally.news.append((demo.elapsed, f"the way to {worker} is cut"))
    while any(worker in story.clusters and story.stage is Stage.RUNNING for story in there):
        await demo.changed()
    await anyio.sleep(BACK_AFTER)
    faults.remove(fault)
    demo.tally.news.append((demo.elapsed, f"the way to {worker} is mended"))
