"""The leader counts what jobs use, each span of time once."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import anyio
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.names import Json
from multikueued.reports.usage import Payer
from multikueued.run.use_count import UseCount
from tests.reports.objects import NOW, worker
from tests.reports.test_usage import running

pytestmark = pytest.mark.looptime


async def test_use_is_counted_while_a_job_runs_and_one_that_cannot_be_read_stops_nothing() -> None:
    began = anyio.current_time()
    counted: Counter[tuple[str, str]] = Counter()
    broken = running("broken")
    broken["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] = {"cpu": "nonsense"}
    found: list[Json] = [broken, running()]

    def now() -> datetime:
        return NOW + timedelta(seconds=anyio.current_time() - began)

    def count(payer: Payer, resource: str, seconds: float) -> None:
        counted[payer.worker, resource] += round(seconds)

    use = UseCount(lambda: found, lambda: [worker("worker1")], count, now)
    with capture_logs() as lines:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use.run)
            await anyio.sleep(91)
            found[1] = running(finished="Succeeded")  # it ended when it began
            await anyio.sleep(60)
            tasks.cancel_scope.cancel()

    assert counted == {("worker1", "cpu"): 2 * 90, ("worker1", "memory"): 2**30 * 90}
    assert [line["workload"] for line in lines] == ["default/" + broken["metadata"]["name"]]  # once
