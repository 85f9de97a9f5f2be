"""Counts for as long as a process leads what jobs use of workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import anyio
import anyio.lowlevel
import attrs
import structlog

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.quantities import MILLI
from multikueued.reports.usage import Holding, Payer, costs_of, holdings

EVERY: Final = 30.0
"""Seconds between two looks: what is removed in between is counted up to the last one."""
BREATH: Final = 100
"""Workloads that are looked at before others run."""
MOST: Final = 2**63 * MILLI
"""Thousandths: no quantity of Kubernetes is larger. One that is would be all that is left of a sum."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class UseCount:
    """Adds up the use of all Workloads, again and again. Each span of time is counted once.

    Most Workloads only run on: what these hold together is kept, and only those that have changed are looked at.
    """

    workloads: Callable[[], Iterable[Json]]
    """Those of a cache: one that has changed is another object there."""
    clusters: Callable[[], Iterable[Json]]
    count: Callable[[Payer, str, float], None]
    """Is told whose use it is, the resource, and resource-seconds."""
    now: Callable[[], datetime]
    _settled: dict[int, Json] = attrs.field(factory=dict, init=False)
    """By its identity, each Workload that holds what it holds until it changes."""
    _held: dict[Payer, Counter[str]] = attrs.field(factory=dict, init=False)
    """What these hold together, in thousandths."""
    _unreadable: set[ObjectKey] = attrs.field(factory=set, init=False)

    async def run(self) -> None:
        """Count until cancelled; what was used before this began, an earlier leader has counted."""
        begin = self.now()
        while True:
            end = max(begin, self.now())  # a clock that was set back counts nothing twice
            await self._look(begin, end)
            begin = end
            await anyio.sleep(EVERY)

    async def _look(self, begin: datetime, end: datetime) -> None:
        costs, listed = costs_of(self.clusters()), {id(workload): workload for workload in self.workloads()}
        async for number in _unhurried(self._settled.keys() - listed.keys()):
            self._add(self._holdings(self._settled.pop(number)), -1)
        if self._unreadable:
            self._unreadable.intersection_update(map(ObjectKey.of, listed.values()))
        for payer, amounts in self._held.items():
            self._tell(payer, amounts, (end - begin).total_seconds(), costs)
        async for number in _unhurried([number for number in listed if number not in self._settled]):
            held = self._holdings(listed[number])
            for holding in held:
                self._tell(holding.payer, holding.amounts, holding.within(begin, end), costs)
            if all(holding.is_settled(end) for holding in held):
                self._settled[number] = listed[number]
                self._add(held, 1)

    def _add(self, held: Iterable[Holding], sign: int) -> None:
        for holding in held:
            if holding.until is None:
                total = self._held.setdefault(holding.payer, Counter())
                for resource, amount in holding.amounts.items():
                    total[resource] += sign * amount
                if sign < 0 and not any(total.values()):
                    del self._held[holding.payer]

    def _tell(self, payer: Payer, amounts: Mapping[str, int], seconds: float, costs: Mapping[str, str]) -> None:
        if seconds:
            whose = attrs.evolve(payer, cost=costs.get(payer.worker, ""))
            for resource, amount in amounts.items():
                self.count(whose, resource, amount * seconds / MILLI)

    def _holdings(self, workload: Json) -> tuple[Holding, ...]:
        try:
            held = tuple(holdings(workload))
            if any(not 0 <= amount <= MOST for holding in held for amount in holding.amounts.values()):
                raise ValueError("an amount that no quota can be")
            return held
        except Exception as error:  # whoever wrote it must not stop what others' are counted by
            if (key := ObjectKey.of(workload)) not in self._unreadable:
                self._unreadable.add(key)
                log.error("the use of a workload cannot be counted", workload=str(key), exc_info=error)
            return ()


async def _unhurried(numbers: Iterable[int]) -> AsyncIterator[int]:
    """The same ones; after each `BREATH` of them others run."""
    for place, number in enumerate(numbers, 1):
        yield number
        if place % BREATH == 0:
            await anyio.lowlevel.checkpoint()
