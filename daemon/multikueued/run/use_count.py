"""Counts for as long as a process leads what jobs use of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

import anyio
import anyio.lowlevel
import attrs
import structlog

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.quantities import MILLI
from multikueued.reports.usage import Payer, costs_of, used

EVERY: Final = 30.0
"""Seconds between two looks: what is removed in between is counted up to the last one."""
BREATH: Final = 100
"""Workloads that are looked at before others run."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class UseCount:
    """Adds up the use of all Workloads, again and again. Each span of time is counted once."""

    workloads: Callable[[], Iterable[Json]]
    clusters: Callable[[], Iterable[Json]]
    count: Callable[[Payer, str, float], None]
    """Is told whose use it is, the resource, and resource-seconds."""
    now: Callable[[], datetime]
    _unreadable: set[ObjectKey] = attrs.field(factory=set, init=False)

    async def run(self) -> None:
        """Count until cancelled; what was used before this began, an earlier leader has counted."""
        begin = self.now()
        while True:
            await anyio.sleep(EVERY)
            end = self.now()
            costs = costs_of(self.clusters())
            listed = list(self.workloads())
            if self._unreadable:
                self._unreadable.intersection_update(map(ObjectKey.of, listed))
            for number, workload in enumerate(listed, 1):
                self._count(workload, begin, end, costs)
                if number % BREATH == 0:
                    await anyio.lowlevel.checkpoint()
            begin = max(begin, end)  # a clock that was set back counts nothing twice

    def _count(self, workload: Json, begin: datetime, end: datetime, costs: dict[str, str]) -> None:
        try:
            for payer, _, amounts in used(workload, begin, end, costs):
                for resource, amount in amounts.items():
                    self.count(payer, resource, amount / MILLI)
        except Exception as error:  # whoever wrote it must not stop what others' are counted by
            if (key := ObjectKey.of(workload)) not in self._unreadable:
                self._unreadable.add(key)
                log.error("the use of a workload cannot be counted", workload=str(key), exc_info=error)
