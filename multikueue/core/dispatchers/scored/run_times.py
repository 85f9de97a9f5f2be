"""How long a job runs: the median of the jobs of its queue and size that have ended."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from statistics import median
from typing import Final, TypeAlias

import attrs

KEPT: Final = 200
"""How many jobs of a queue and size count: those that ended last."""
KINDS: Final = 1_000
"""Of how many queues and sizes: those of which one has ended last."""

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


class RunTimes:
    """What is remembered of jobs that have started, and ended. Driven by one task."""

    def __init__(self) -> None:
        """Of none."""
        self._seen: dict[tuple[str, Size], deque[Ended]] = {}
        self._medians: dict[tuple[str, Size], float] = {}
        self.latest: dict[str, datetime] = {}
        """By ClusterQueue: when the last one got its quota that has started."""

    def started(self, queue: str, reserved: datetime) -> None:
        """One has that got its quota then."""
        self.latest[queue] = max(reserved, self.latest.get(queue, reserved))

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


def size(total: dict[str, int]) -> Size:
    """Of a request's total."""
    return tuple(sorted(total.items()))
