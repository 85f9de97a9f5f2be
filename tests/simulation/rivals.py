"""Jobs of a worker's own users, of higher and lower priority: they take the place of ours, and ours theirs."""

from __future__ import annotations

from typing import Final

import anyio

from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import PRIORITY_CLASS_LABEL
from multikueue.core.model.names import ObjectKey
from multikueue.errors import NotFound
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from tests.simulation.breaking import Trouble
from tests.simulation.population import PRIORITIES, template
from tests.simulation.scene import Scene
from tests.simulation.world import SimCluster


async def rival_everywhere(scene: Scene) -> None:
    """Every worker gets a job of its own: nobody has room without taking somebody's place."""
    async with anyio.create_task_group() as tasks:
        for worker in scene.world.workers.values():
            tasks.start_soon(_rival, scene, worker, "low")


async def rival(scene: Scene) -> None:
    """One worker gets a job of its own."""
    await _rival(scene, scene.worker(), scene.dice.choice(sorted(PRIORITIES)))


async def _rival(scene: Scene, worker: SimCluster, priority: str) -> None:
    seconds = scene.seconds(20.0, 200.0)
    labels = {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME}
    if scene.world.population.preempting:
        labels[PRIORITY_CLASS_LABEL] = priority
    name = f"rival-{anyio.current_time():.3f}".replace(".", "-")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": {DURATION_ANNOTATION: f"{seconds:.0f}s"},
        },
        "spec": {"suspend": True, "parallelism": scene.world.quota, "template": template("1")},
    }
    scene.note(f"{name} on {worker.name}, {priority}")
    await worker.api.create(JOB, job)
    await anyio.sleep(300.0)  # it may have been kept from running: it goes before everything is mended
    try:
        await worker.api.delete(JOB, ObjectKey("default", name), propagation="Background")
    except NotFound:
        return


TROUBLES: Final[tuple[Trouble, ...]] = (rival, rival, rival_everywhere)
