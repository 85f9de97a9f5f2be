"""How long a job runs, and when one that waits will start: from the jobs of its queue and size that have ended.

A median and an 80 % interval of what was seen, no model of the queue. Values and two calls; nothing reads a clock.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Final, TypeAlias

import attrs

KEPT: Final = 200
"""How many jobs of a queue and size count: those that ended last."""
KINDS: Final = 1_000
"""Of how many queues and sizes: those of which one has ended last."""
LEAST: Final = 20
"""An interval of fewer says nothing."""

Size: TypeAlias = tuple[tuple[str, int], ...]
"""What all pods of a job need together, by resource in their order: `size` makes it."""


@attrs.frozen
class Ended:
    """A job that has run to its end."""

    queue: str
    """Its ClusterQueue on the manager."""
    size: Size
    run_time: float
    """Seconds from its start to its end."""
    wait: float
    """Seconds from the quota on the manager to its start."""


@attrs.frozen
class Interval:
    """Seconds since the quota on the manager: four of five jobs that had waited so long started in it."""

    earliest: float
    latest: float


class RunTimes:
    """What is remembered of jobs that have ended. Driven by one task."""

    def __init__(self) -> None:
        """Of none."""
        self._seen: dict[tuple[str, Size], deque[Ended]] = {}
        self._medians: dict[tuple[str, Size], float] = {}

    def add(self, ended: Ended) -> None:
        """One more: in the order in which they end."""
        kind = ended.queue, ended.size
        self._seen[kind] = kept = self._seen.pop(kind, deque(maxlen=KEPT))
        kept.append(ended)
        self._medians.pop(kind, None)
        if len(self._seen) > KINDS:
            eldest = next(iter(self._seen))
            del self._seen[eldest]
            self._medians.pop(eldest, None)

    def run_time(self, queue: str, size: Size) -> float | None:
        """The median, in seconds; None: none has ended yet."""
        kind = queue, size
        if kind not in self._medians and kind in self._seen:
            self._medians[kind] = median(one.run_time for one in self._seen[kind])
        return self._medians.get(kind)

    def start(self, queue: str, size: Size, waited: float) -> Interval | None:
        """When a job starts that has waited so many seconds since its quota, by those that waited longer; None: by too
        few."""
        waits = sorted(one.wait for one in self._seen.get((queue, size), ()) if one.wait > waited)
        return interval(waits)


def interval(waits: list[float]) -> Interval | None:
    """From the tenth to the ninetieth percentile of sorted waits, where the next one lies with four of five; None of
    fewer than `LEAST`."""
    count = len(waits)
    outside = (count + 1) // 10 - 1
    return Interval(waits[outside], waits[count - 1 - outside]) if count >= LEAST else None


def size(total: dict[str, int]) -> Size:
    """Of a request's total."""
    return tuple(sorted(total.items()))
