"""The leader counts what jobs use, each span of time once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.conditions import condition, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.quantities import MILLI
from multikueued.reports.usage import Holding, Payer, holdings, used
from multikueued.run import use_count
from multikueued.run.use_count import EVERY, UseCount
from tests.reports.objects import NOW, worker
from tests.reports.test_usage import place, running

pytestmark = pytest.mark.looptime


async def test_use_is_counted_while_a_job_runs_and_one_that_cannot_be_read_stops_nothing() -> None:
    began = anyio.current_time()
    counted: Counter[tuple[str, str]] = Counter()
    broken = [_holding(name, cpu) for name, cpu in (("broken", "nonsense"), ("less", "-2"), ("more", "1e400"))]
    workloads: list[Json] = [running(), *broken]

    def now() -> datetime:
        return NOW + timedelta(seconds=anyio.current_time() - began)

    def count(payer: Payer, resource: str, seconds: float) -> None:
        counted[payer.worker, resource] += round(seconds)

    use = UseCount(lambda: workloads, lambda: [worker("worker1")], count, now)
    with capture_logs() as lines:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use.run)
            await anyio.sleep(91)
            workloads[0] = running(finished="Succeeded")  # it ended when it began
            await anyio.sleep(60)
            del workloads[1:]
            await anyio.sleep(60)
            tasks.cancel_scope.cancel()

    assert counted == {("worker1", "cpu"): 2 * 90, ("worker1", "memory"): 2**30 * 90}
    assert [line["workload"] for line in lines] == [
        "default/" + workload["metadata"]["name"] for workload in broken
    ]  # once


async def test_what_only_runs_on_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon with 50,000 of them did little else while nothing happened. What is counted is the same."""
    began, looked = anyio.current_time(), list[str]()
    workloads = {name: running(name) for name in ("same", "moved", "ended", "removed")}
    workloads["later"] = _at(running("later"), "QuotaReserved", 100)
    counted: Counter[tuple[str, str]] = Counter()
    expected: Counter[tuple[str, str]] = Counter()

    def looked_at(workload: Json) -> Iterator[Holding]:
        looked.append(workload["metadata"]["ownerReferences"][0]["name"])
        return holdings(workload)

    def count(payer: Payer, resource: str, seconds: float) -> None:
        counted[payer.worker, resource] += round(seconds * MILLI)

    def now() -> datetime:
        return NOW + timedelta(seconds=anyio.current_time() - began)

    async def look() -> None:
        """One more, and what all would count that are looked at one by one."""
        begin = now()
        await anyio.sleep(EVERY)
        for workload in workloads.values():
            for payer, _, amounts in used(workload, begin, now(), {}):
                expected.update({(payer.worker, resource): amount for resource, amount in amounts.items()})

    monkeypatch.setattr(use_count, "holdings", looked_at)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(UseCount(workloads.values, lambda: [worker("worker1")], count, now).run)
        await anyio.lowlevel.checkpoint()
        await look()
        await look()
        workloads["moved"] = running("moved", before=(place("worker2", -1, 40 / 3600),))
        workloads["ended"] = _at(running("ended", finished="Succeeded"), "Finished", 130)  # by a clock that is ahead
        del workloads["removed"]
        for _ in range(4):
            await look()
        await anyio.sleep(1)
        tasks.cancel_scope.cancel()

    assert counted == expected
    assert Counter(looked) == {"same": 1, "moved": 3, "ended": 5, "removed": 2, "later": 5}


def _holding(name: str, cpu: str) -> Json:
    made = running(name)
    made["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": cpu}
    return made


def _at(workload: Json, kind: str, seconds: float) -> Json:
    changed = condition(workload, kind)
    assert changed is not None
    changed["lastTransitionTime"] = timestamp(NOW + timedelta(seconds=seconds))
    return workload
