"""Users change the size of what runs: an elastic Job, a Deployment, a LeaderWorkerSet; pods are drained away."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import is_elastic
from multikueue.sandbox.kinds.pods import POD_RESOURCE
from multikueue.sandbox.kinds.sets import DEPLOYMENT, LEADER_WORKER_SET
from tests.simulation.breaking import Trouble
from tests.simulation.objects import objects
from tests.simulation.scene import Scene


async def resize_job(scene: Scene) -> None:
    """An elastic Job grows or shrinks, running or not."""
    jobs = {ObjectKey.of(job): job for job in objects(scene.world.manager, JOB) if is_elastic(job)}
    if jobs:
        key = scene.dice.choice(sorted(jobs))
        size = scene.dice.choice([number for number in (1, 2, 3) if number != dig(jobs[key], "spec", "parallelism")])
        scene.note(f"{key} to {size}")
        await scene.world.manager.api.merge_patch(JOB, key, {"spec": {"parallelism": size}})


async def scale(scene: Scene) -> None:
    """A Deployment or a LeaderWorkerSet gets more replicas, or fewer."""
    manager = scene.world.manager
    kinds = [kind.resource for kind in (DEPLOYMENT, LEADER_WORKER_SET) if manager.serves(kind.resource)]
    there = sorted((kind.plural, ObjectKey.of(obj)) for kind in kinds for obj in objects(manager, kind))
    if there:
        plural, key = scene.dice.choice(there)
        size = scene.dice.choice((1, 2, 3))
        scene.note(f"{plural} {key} to {size}")
        resource = next(kind for kind in kinds if kind.plural == plural)
        await manager.api.merge_patch(resource, key, {"spec": {"replicas": size}})


async def drain_a_pod(scene: Scene) -> None:
    """A pod of ours is deleted on its worker, as when its node is drained."""
    run = await scene.running(60, POD_RESOURCE.plural)
    if run is not None:
        worker, item, workload = run
        scene.taking.excuse(worker.name, workload)
        await worker.api.delete(POD_RESOURCE, item.key, propagation="Background")


ELASTIC: Final[tuple[Trouble, ...]] = (resize_job, resize_job, resize_job, resize_job)
"""For runs with elastic Jobs."""
SETS: Final[tuple[Trouble, ...]] = (scale, scale, drain_a_pod)
"""For runs with pods."""
