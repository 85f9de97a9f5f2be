"""Several Workloads of one job, from the caches to the clusters: slices of an elastic job, parts of a group."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import (
    COMPONENT_INDEX_ANNOTATION,
    JOB_OWNER_GVK_ANNOTATION,
    JOB_OWNER_NAME_ANNOTATION,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check_state, nominated
from multikueue.sandbox.setting_up import CHECK
from multikueue.testing import job
from tests.runtime.fleet import Fleet, until
from tests.runtime.test_pods import AT, Bench, said

pytestmark = pytest.mark.looptime

JOB_KEY = ObjectKey("default", "train")


async def make_job(bench: Bench) -> Json:
    return await bench.client().create(JOB, job())


async def ready(bench: Bench, name: str) -> None:
    """Wait until the check of a Workload is Ready."""

    async def is_ready() -> bool:
        return check_state(await bench.get(WORKLOAD, name) or {}, CHECK) == "Ready"

    await until(is_ready)


async def test_what_an_earlier_job_of_the_same_name_did_is_not_told_of_the_new_one() -> None:
    """Its Workload lingers until it is collected: the new job would look finished before it began."""
    fleet = await Fleet.connected("worker1")
    bench = Bench(fleet)
    async with fleet.dispatching():
        await bench.make_workload("old", [await make_job(bench)], {})
        await bench.admit("old", "worker1")
        await ready(bench, "old")
        await bench.client().delete(JOB, JOB_KEY, propagation="Background")
        await make_job(bench)
        ended: Json = {"startTime": AT, "completionTime": AT, "succeeded": 1}
        ended["conditions"] = said("SuccessCriteriaMet", "Complete")
        await bench.client("worker1").merge_patch(JOB, JOB_KEY, {"status": ended}, subresource="status")
        await anyio.sleep(60)
        assert not dig(await bench.get(JOB, "train"), "status")


async def test_a_group_goes_to_one_worker_and_nobody_polls() -> None:
    """The first part finds it, the second follows at once, and then it is quiet (item 7)."""
    fleet = await Fleet.connected("worker1", "worker2")
    bench = Bench(fleet)
    async with fleet.dispatching() as manager:
        made = await make_job(bench)
        for index in ("1", "0"):
            marks = {COMPONENT_INDEX_ANNOTATION: index}
            marks |= {JOB_OWNER_GVK_ANNOTATION: str(JOB.gvk), JOB_OWNER_NAME_ANNOTATION: "train"}
            await bench.make_workload(f"part-{index}", [made], marks)
        await bench.admit("part-0", "worker2")
        await bench.placed("part-0", "worker2")
        await bench.admit("part-1", "worker2")
        await bench.placed("part-1", "worker2")
        await ready(bench, "part-1")
        assert nominated(await bench.get(WORKLOAD, "part-1") or {}) == ()
        assert await bench.get(WORKLOAD, "part-1", "worker1") is None

        await anyio.sleep(10)
        quiet = fleet.requests("worker2", "patch", JOB), manager.statistics()["multikueue_workload"]
        await anyio.sleep(30)
        assert (fleet.requests("worker2", "patch", JOB), manager.statistics()["multikueue_workload"]) == quiet

        await bench.client().delete(WORKLOAD, ObjectKey("default", "part-0"))
        await anyio.sleep(30)
        assert await bench.get(WORKLOAD, "part-0", "worker2") is None
        assert await bench.get(JOB, "train", "worker2") is not None
        await bench.client().delete(WORKLOAD, ObjectKey("default", "part-1"))
        await anyio.sleep(30)
        assert await bench.get(JOB, "train", "worker2") is None
