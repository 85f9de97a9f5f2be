"""What is measured: the daemon's memory, tasks, keys, series and timers."""

from __future__ import annotations

import asyncio
import functools
import gc
from typing import Any, Final

from multikueue.runtime.manager import Manager
from multikueued.metrics.hooks import Metrics
from tests.soak.reachable import globals_of, reachable

MEASURES: Final = {
    "objects": "objects that can be reached from the daemon (gc.get_referents)",
    "bytes": "their size (sys.getsizeof)",
    "tasks": "tasks of the event loop",
    "timers": "timers of the event loop that are not cancelled",
    "queue entries": "entries of the work queues, stale ones included",
    "metric series": "series of a scrape",
}
"""By name, what each is, and must not grow."""
_CACHED: Final = type(functools.lru_cache(str))
"""Functions that know a number of results: they look like a leak until there are so many."""
PROCESS: Final = "process objects"
"""All that the garbage collector knows, the simulated clusters included. They may grow: their caches fill up."""


def sample(manager: Manager, metrics: Metrics) -> dict[str, float]:
    """Measure the daemon as it is now."""
    gc.collect()
    kept = reachable(
        (manager, metrics, *globals_of("multikueue", "multikueue.sandbox"), *globals_of("multikueued", "-")),
        outside=(_CACHED,),
    )
    loop: Any = asyncio.get_running_loop()
    return {
        "objects": kept.objects,
        "bytes": kept.size,
        PROCESS: len(gc.get_objects()),
        "tasks": len(asyncio.all_tasks(loop)),
        "timers": sum(not timer.cancelled() for timer in loop._scheduled),
        "queue entries": sum(controller.queue.entries for controller in manager._controllers),
        "metric series": sum(len(family.samples) for family in metrics.snapshot().collect()),
    }
