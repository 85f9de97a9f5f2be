"""The ways of a Job on real servers, when nothing is broken; those that each kind goes are in `test_kinds`."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import condition
from tests.integration.fleet import fleet
from tests.integration.planes import Planes

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


async def test_many_jobs_at_once_are_spread_and_each_runs_once(planes: Planes) -> None:
    """Twelve Jobs fill more than one worker: both have a part, and no Job runs on both."""
    names = [f"many-{number}" for number in range(12)]
    async with fleet(planes) as real:
        async with anyio.create_task_group() as users:
            for name in names:
                users.start_soon(real.submit, name)
        used = {name: await real.running(name) for name in names}
        for name in names:
            real.kubelet.end(name, "Succeeded")
        for name in names:
            await real.ended(name)
        await real.cleaned()

        assert set(used.values()) == {"worker1", "worker2"}
        assert {name: real.ran_on(name) for name in names} == {name: [worker] for name, worker in used.items()}


async def test_a_job_that_fails_fails_on_the_manager_and_is_not_tried_elsewhere(planes: Planes) -> None:
    """Whether a failed Job is tried again is the Job's own business (`backoffLimit`)."""
    async with fleet(planes) as real:
        worker = await real.run("fails")
        real.kubelet.end("fails", "Failed")
        done = await real.ended("fails", "Failed")
        await real.cleaned()

        assert done["status"] == real.status_on(worker, "fails")
        assert (condition(done, "Failed") or {})["reason"] == "BackoffLimitExceeded"
        assert (condition(real.manager.workload_of("fails") or {}, "Finished") or {})["reason"] == "Failed"
        assert real.ran_on("fails") == [worker]
