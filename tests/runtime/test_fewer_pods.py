"""Jobs that may run with fewer pods (partial admission): either Kueue gives as many as it has room for."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.testing import job
from tests.runtime.fleet import Fleet, until

pytestmark = pytest.mark.looptime
KEY = ObjectKey("default", "train")
SHORT = RunnerOptions(minimum=5, maximum=5)


@pytest.mark.parametrize(("here", "there", "runs"), [(16, 3, 3), (3, 16, 8), (3, 4, 4), (16, 16, 8)])
async def test_the_copy_has_as_many_pods_as_its_worker_has_room_for(here: int, there: int, runs: int) -> None:
    """It is made for all of its pods, however many the manager's Kueue had quota for."""
    fleet = await Fleet.connected("worker1", cpu=there, on_manager=here)
    worker = DirectClient(fleet.workers["worker1"])
    made = job("train", cpu="1")
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    made["spec"] |= {"parallelism": 8, "completions": 8}
    await fleet.admin.create(JOB, made)
    async with fleet.kueues(SHORT), fleet.dispatching():
        await until(fleet.ready)
        copies = {(await worker.get(JOB, KEY))["metadata"]["uid"]}

        async def active() -> int:
            copy = await worker.get(JOB, KEY)
            copies.add(copy["metadata"]["uid"])
            return int((copy.get("status") or {}).get("active") or 0)

        await until(active)
        assert await active() == runs
        assert (await fleet.admin.get(JOB, KEY))["spec"]["parallelism"] == min(here, 8)
        await until(fleet.finished)
    assert len(copies) == 1
    assert (await fleet.admin.get(JOB, KEY))["status"]["succeeded"] == 8
