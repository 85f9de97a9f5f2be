"""What the end of a run lets pass: what has not ended must be what no worker can take, and its user must know."""

from __future__ import annotations

from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.labels import REFUSAL_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.sandbox.jobs import RunnerOptions
from tests.simulation.endings import unfinished
from tests.simulation.foreign import Foreigners
from tests.simulation.virtual_time import run_on_virtual_time
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
