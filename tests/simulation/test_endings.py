"""What the end of a run lets pass: what has not ended must be what no worker can take, and its user must know."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import EVENT, JOB, WORKLOAD
from multikueue.core.model.labels import REFUSAL_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.sandbox.jobs import RunnerOptions
from tests.simulation.endings import SHOWN, unfinished, unshown, wait_until_shown
from tests.simulation.foreign import Foreigners
from tests.simulation.population import template
from tests.simulation.reach import Reach
from tests.simulation.virtual_time import run_on_virtual_time, wall_clock
from tests.simulation.world import World

REFUSED = ObjectKey("default", "refused")


async def _submitted(world: World) -> Json:
    """The Workload of the Job `train`."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-of-job", "controller": True}
    container = {"name": "main", "image": "busybox"}
    pods = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    workload = {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {"name": "job-train", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"queueName": "user-queue", "podSets": [pods]},
    }
    return await world.manager.api.create(WORKLOAD, workload)


async def _tell(world: World, workload: Json, worker: str) -> None:
    """The event of a worker's refusal."""
    event = {
        "apiVersion": EVENT.gvk.api_version,
        "kind": EVENT.gvk.kind,
        "metadata": {
            "name": REFUSED.name,
            "namespace": REFUSED.namespace,
            "annotations": {REFUSAL_ANNOTATION: '{"cause":"NameTaken"}'},
        },
        "regarding": {"kind": "Workload", "name": "job-train", "namespace": "default", "uid": uid(workload)},
        "related": {"kind": "MultiKueueCluster", "name": worker},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Warning",
        "reason": "MultiKueue",
        "action": "Refused",
        "reportingController": "multikueue",
        "reportingInstance": "multikueue",
    }
    await world.manager.api.create(EVENT, event)


async def _look() -> None:
    world = World.build(1, (0.0, 0.0, 0.0), 2, RunnerOptions())
    workload = await _submitted(world)
    world.gone.add("worker2")
    world.own, world.pool_checked = "worker3", True
    await _tell(world, workload, "worker1")
    assert unfinished(world)  # its name is free

    await Foreigners(world).plant_job(world.workers["worker1"], "train")
    assert not unfinished(world)

    world.pool_checked = False
    assert unfinished(world)
    world.pool_checked = True
    world.gone.clear()
    assert unfinished(world)
    world.gone.add("worker2")
    await world.manager.api.delete(EVENT, REFUSED)
    assert unfinished(world)


def test_only_a_job_that_no_worker_can_take_may_be_left_over_and_only_if_that_is_told() -> None:
    run_on_virtual_time(_look)


@pytest.mark.parametrize(
    ("after", "expected"), [(SHOWN / 2, []), (SHOWN * 2, ["default/train"])], ids=["late", "never"]
)
def test_an_end_that_was_refused_till_the_last_moment_has_time_to_be_sent_again(
    after: float, expected: list[str]
) -> None:
    """A Workload was finished while nobody might write its job, which was mended at the very end (seed 20225)."""

    async def look() -> list[str]:
        world = World.build(1, (0.0, 0.0), 2, RunnerOptions())
        metadata = {"name": "train", "namespace": "default"}
        made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template("1")}}
        job, workload, now = await world.manager.api.create(JOB, made), await _submitted(world), wall_clock()()
        owner = {**workload["metadata"]["ownerReferences"][0], "uid": uid(job)}
        key, patch = ObjectKey.of(workload), {"metadata": {"ownerReferences": [owner]}}
        await world.manager.api.merge_patch(WORKLOAD, key, patch)
        over: Json = {"status": {"conditions": [new_condition("Finished", True, "Succeeded", "", now=now)]}}
        await world.manager.api.merge_patch(WORKLOAD, key, over, subresource="status")

        async def show() -> None:
            await anyio.sleep(after)
            ends = [new_condition(kind, True, "Done", "", now=now) for kind in ("SuccessCriteriaMet", "Complete")]
            status: Json = {"startTime": timestamp(now), "completionTime": timestamp(now), "conditions": ends}
            await world.manager.api.merge_patch(JOB, ObjectKey.of(job), {"status": status}, subresource="status")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(show)
            await wait_until_shown(world, (), Reach(world), 0.0)
            left = unshown(world, (), Reach(world))
            tasks.cancel_scope.cancel()
        return left

    assert run_on_virtual_time(look) == expected
