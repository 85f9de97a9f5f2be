"""When a job that waits will start: by how long others of its queue and size have waited.

As a backlog grows, those that have started had waited for less than those that wait will: so a wait is counted per job
of the kind that waited before it. An interval is taken from what was seen, without a model of the queue. It is told of
jobs in the order in which they come and start; nothing reads a clock.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import attrs

from multikueue.core.model.names import ObjectKey

Size: TypeAlias = tuple[tuple[str, int], ...]
"""What all pods of a job need together, by resource in their order: `size` makes it."""

KINDS: Final = 1_000
"""Of how many queues and sizes: those of which one has come last."""
KEPT: Final = 2_000
"""How many jobs of a queue and size count: those that started last."""
LEAST: Final = 20
"""An interval of fewer says nothing."""
FEW: Final = 10
"""With fewer ahead than so many a wait depends on other things: so many more are counted."""
OUTSIDE: Final = 15
"""One in so many of those seen is left out on each side. One in ten would do if the next were like them: waits come in
busy hours, and `tests.dispatch` finds four of five in this."""

STARVES_AFTER: Final = timedelta(hours=1)
STARVING: Final = "held for more than an hour, while jobs of its queue that came later have started"


def size(total: Mapping[str, int]) -> Size:
    """Of a request's total."""
    return tuple(sorted(total.items()))


def starves(reserved: datetime, latest: datetime | None, now: datetime) -> bool:
    """Whether one that is held since then is held for too long.

    Args:
        reserved: when it got its quota.
        latest: when the last one of its ClusterQueue did that has started; None: none has.
        now: the manager's wall clock.
    """
    return latest is not None and latest > reserved and now - reserved >= STARVES_AFTER


def looked_at_again(reserved: datetime, now: datetime) -> float:
    """Seconds until a held one is looked at for that: after an hour, and twice as long each time."""
    wait = STARVES_AFTER
    while reserved + wait <= now:
        wait *= 2
    return (reserved + wait - now).total_seconds()


@attrs.frozen
class Interval:
    """Seconds since the quota on the manager: four of five jobs that had waited so long started in it."""

    earliest: float
    latest: float


@attrs.frozen
class Waited:
    """A job that waits for a worker, or has waited."""

    key: ObjectKey
    queue: str
    """Its ClusterQueue on the manager."""
    size: Size
    reserved: datetime
    """When it got its quota there."""
    started: datetime | None
    """None: it waits."""


@attrs.define(eq=False)
class _Kind:
    """Of one queue and size."""

    waiting: dict[ObjectKey, int] = attrs.field(factory=dict)
    """How many waited when each got its quota."""
    seen: deque[tuple[float, float]] = attrs.field(factory=deque)
    """Of those that have started the wait for each one ahead, and the wait: in the order of the starts."""
    ranked: list[tuple[float, float]] = attrs.field(factory=list)
    """The same in their order."""

    def start(self, ahead: int, wait: float) -> None:
        sample = wait / (ahead + FEW), wait
        self.seen.append(sample)
        insort(self.ranked, sample)
        if len(self.seen) > KEPT:
            del self.ranked[bisect_left(self.ranked, self.seen.popleft())]


class Starts:
    """What is remembered of jobs that have quota on the manager. Driven by one task."""

    def __init__(self) -> None:
        """Of none."""
        self._kinds: dict[tuple[str, Size], _Kind] = {}

    @classmethod
    def of(cls, jobs: Iterable[Waited]) -> Starts:
        """As if it had been told of them."""
        starts, events = cls(), list[tuple[datetime, bool, Waited]]()
        for job in jobs:
            events.append((job.reserved, False, job))
            if job.started is not None:
                events.append((max(job.reserved, job.started), True, job))
        for at, is_start, job in sorted(events, key=lambda event: event[:2]):
            if is_start:
                starts.left(job.key, job.queue, job.size, (at - job.reserved).total_seconds())
            else:
                starts.reserved(job.key, job.queue, job.size)
        return starts

    def reserved(self, key: ObjectKey, queue: str, size: Size) -> None:
        """One has got quota on the manager, and waits for a worker."""
        kind = queue, size
        self._kinds[kind] = waits = self._kinds.pop(kind, None) or _Kind()
        waits.waiting.setdefault(key, len(waits.waiting))
        if len(self._kinds) > KINDS:
            del self._kinds[next(iter(self._kinds))]

    def left(self, key: ObjectKey, queue: str, size: Size, wait: float | None) -> None:
        """It waits no more.

        Args:
            key: of its Workload.
            queue: its ClusterQueue on the manager.
            size: what all its pods need.
            wait: the seconds from its quota to its start; None: it has not started.
        """
        waits = self._kinds.get((queue, size))
        ahead = waits.waiting.pop(key, None) if waits is not None else None
        if waits is not None and ahead is not None and wait is not None:
            waits.start(ahead, wait)

    def interval(self, key: ObjectKey, queue: str, size: Size, waited: float) -> Interval | None:
        """When one starts that has waited so many seconds, by those that waited longer; None: by too few."""
        waits = self._kinds.get((queue, size))
        ahead = waits.waiting.get(key) if waits is not None else None
        if waits is None or ahead is None:
            return None
        each = [share for share, wait in waits.ranked if wait > waited]
        outside = (len(each) + 1) // OUTSIDE - 1
        if len(each) < LEAST:
            return None
        first, last = (per_job * (ahead + FEW) for per_job in (each[outside], each[len(each) - 1 - outside]))
        return Interval(max(waited, first), max(waited, last))
