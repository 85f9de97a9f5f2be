"""Virtual time: what is due next."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
Call = Callable[..., None]


def moment(seconds: float) -> datetime:
    """The manager's wall clock."""
    return EPOCH + timedelta(seconds=seconds)


class Clock:
    """Calls functions at their times; those of the same moment in the order in which they were asked for."""

    def __init__(self) -> None:
        self.now = 0.0
        """Seconds since the first arrival."""
        self._due: list[tuple[float, int, Call, tuple[Any, ...]]] = []
        self._number = itertools.count()

    def at(self, moment: float, call: Call, *args: Any) -> None:
        """Call it then; now, if that has passed."""
        heapq.heappush(self._due, (max(moment, self.now), next(self._number), call, args))

    def after(self, seconds: float, call: Call, *args: Any) -> None:
        """Call it in so many seconds."""
        self.at(self.now + seconds, call, *args)

    def run(self, horizon: float, over: Callable[[], bool]) -> None:
        """Until nothing is due before the horizon, or it is over."""
        due, pop = self._due, heapq.heappop
        while due and due[0][0] <= horizon and not over():
            self.now, _, call, args = pop(due)
            call(*args)
