"""One run."""

from __future__ import annotations

import gc
import math

from tests.dispatch.clock import Clock
from tests.dispatch.load import Load
from tests.dispatch.manager import Manager, Settings
from tests.dispatch.measures import Measures, measure
from tests.dispatch.policies import Build

LONGEST = 60 * 86400.0
"""Seconds after the last arrival when a run ends whatever still waits."""


def simulate(load: Load, build: Build, settings: Settings, horizon: float = math.inf) -> Measures:
    """Until all jobs have ended and those of workers' own users have started, or to the horizon in seconds. The same
    input gives the same measures."""
    clock = Clock()
    manager = Manager(clock, load, settings)
    manager.policy = build(manager)
    jobs = len(load.jobs)
    last = load.jobs[-1].submit if jobs else 0.0
    collected = gc.isenabled()
    gc.disable()  # a third of the time went into looking for garbage among what is none yet
    try:
        clock.run(
            min(horizon, last + LONGEST),
            lambda: manager.finished >= jobs and all(site.all_own_started for site in manager.sites.values()),
        )
    finally:
        if collected:
            gc.enable()
    return measure(manager, load)
