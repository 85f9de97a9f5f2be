"""What users and administrators do, to the manager's objects and to the copies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final

import anyio

from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import cluster_name, has_quota, is_evicted, is_finished
from multikueue.errors import NotFound
from multikueue.sandbox.kueue import evict
from tests.simulation.breaking import Trouble
from tests.simulation.objects import find, is_ours, objects
from tests.simulation.promises import GRACE
from tests.simulation.running import workloads_of
from tests.simulation.scene import Scene
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import SimCluster


async def evict_on_worker(scene: Scene) -> None:
    """A worker's Kueue takes a Workload out of its quota."""
    await _evict(scene, scene.worker(), is_ours)


async def evict_on_manager(scene: Scene) -> None:
    """The manager's Kueue does; it has quota again as soon as nothing runs."""
    await _evict(scene, scene.world.manager, lambda workload: True)


async def evict_twice(scene: Scene) -> None:
    """And once more before anybody may have seen the first time."""
    for _ in range(2):
        await _evict(scene, scene.world.manager, lambda workload: cluster_name(workload) is not None)
        await anyio.sleep(scene.seconds(0.0, 0.4))


async def evict_unseen(scene: Scene) -> None:
    """The manager's Kueue evicts what waits for a worker and gives it quota again; the daemon sees what comes of it.

    Nothing runs yet, so nothing keeps the quota from going and coming back at once.
    """
    link = scene.world.manager.link
    link.change(down=True)
    await _evict(
        scene, scene.world.manager, lambda workload: cluster_name(workload) is None and not is_finished(workload)
    )
    await anyio.sleep(scene.seconds(1, 8))
    link.change(down=False)


async def _evict(scene: Scene, where: SimCluster, wanted: Callable[[Json], bool]) -> None:
    keys = sorted(
        ObjectKey.of(workload)
        for workload in objects(where, WORKLOAD)
        if wanted(workload) and is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")
    )
    if keys:
        key = scene.dice.choice(keys)
        scene.note(f"{key} on {where.name}")
        await evict(where.api, key, clock=wall_clock(where.skew))


async def deactivate(scene: Scene) -> None:
    """A user deactivates a Workload, and activates it again."""
    key = _any(scene, scene.world.manager)
    if key is not None:
        await _activate(scene.world.manager, key, active=False)
        await anyio.sleep(scene.seconds(1, 60))
        await _activate(scene.world.manager, key, active=True)


async def deactivate_copy(scene: Scene) -> None:
    """A worker's administrator deactivates a copy."""
    worker = scene.worker()
    key = _any(scene, worker)
    if key is not None:
        scene.taking.excuse(worker.name, key)
        await _activate(worker, key, active=False)


async def _activate(place: SimCluster, key: ObjectKey, *, active: bool) -> None:
    await place.api.merge_patch(WORKLOAD, key, {"spec": {"active": active}})


async def change_priority(scene: Scene) -> None:
    """A user changes the priority of a Workload; a worker that has it is told."""
    manager = scene.world.manager
    key = _any(scene, manager)
    if key is None:
        return
    priority = scene.dice.randint(1, 1000)
    await manager.api.merge_patch(WORKLOAD, key, {"spec": {"priority": priority}})
    changed = anyio.current_time()
    await anyio.sleep(2 * GRACE)
    workload = find(manager, WORKLOAD, key)
    chosen = scene.world.place_of(cluster_name(workload)) if workload is not None else None
    if workload is None or chosen is None or dig(workload, "spec", "priority") != priority:
        return
    copy = find(scene.world.workers[chosen], WORKLOAD, key)
    undisturbed = has_quota(workload) and not is_evicted(workload) and not is_finished(workload)
    steady = scene.reach.longer_than(chosen, anyio.current_time() - changed) and scene.daemon.alive_since < changed
    if copy is not None and undisturbed and steady and dig(copy, "spec", "priority") != priority:
        scene.promises.broken.append(f"{chosen} was not told of the new priority of {key}")


async def delete_job(scene: Scene) -> None:
    """A user deletes a job, a pod or a set."""
    kinds = [kind.resource for kind in scene.world.population.all_kinds]
    there = {(kind, ObjectKey.of(job)) for kind in kinds for job in objects(scene.world.manager, kind)}
    if there:
        resource, key = scene.dice.choice(sorted(there, key=str))
        scene.note(f"{resource} {key}")
        await scene.world.manager.api.delete(resource, key, propagation="Background")


async def delete_copy(scene: Scene) -> None:
    """Somebody deletes a copy on a worker."""
    kinds = [kind.resource for kind in scene.world.population.all_kinds]
    worker, resource = scene.worker(), scene.dice.choice((WORKLOAD, scene.dice.choice(kinds)))
    copies = {ObjectKey.of(copy): copy for copy in objects(worker, resource) if is_ours(copy)}
    if copies:
        key = scene.dice.choice(sorted(copies))
        scene.note(f"{resource} {key} on {worker.name}")
        for workload in workloads_of(copies[key], resource):
            scene.taking.excuse(worker.name, workload)
        await worker.api.delete(resource, key, propagation="Background")


async def delete_all_copies(scene: Scene) -> None:
    """All copies of a Workload are deleted at once."""
    key = _any(scene, scene.world.manager)
    resources = [WORKLOAD, *(kind.resource for kind in scene.world.population.all_kinds)]
    if key is None:
        return
    for worker in scene.world.workers.values():
        for resource in resources:
            for copy in list(objects(worker, resource)):
                workloads = list(workloads_of(copy, resource)) if is_ours(copy) else []
                if key in workloads:
                    for workload in workloads:
                        scene.taking.excuse(worker.name, workload)
                    with contextlib.suppress(NotFound):  # it went with the one before
                        await worker.api.delete(resource, ObjectKey.of(copy), propagation="Background")


async def plant_namesake(scene: Scene) -> None:
    """Somebody else's objects take the name of one of ours on a worker."""
    names = sorted(scene.world.workers)
    name = await scene.foreigners.plant_namesake(scene.world.workers[names[-1]])
    scene.note(f"{name or 'none'} on {names[-1]}")


async def recreate_as_namesake(scene: Scene) -> None:
    """Somebody's own job takes the name of a copy that they deleted; the daemon has not seen that when it cleans up."""
    run = await scene.running(plural=JOB.plural)
    if run is None:
        return
    worker, item, workload = run
    scene.taking.excuse(worker.name, workload)
    worker.link.change(lag=25.0)
    await worker.api.delete(JOB, item.key, propagation="Background")
    for _ in range(30):
        if find(worker, JOB, item.key) is None:
            break
        await anyio.sleep(0.1)
    await scene.foreigners.plant_job(worker, item.key.name)
    await scene.world.manager.api.delete(JOB, item.key, propagation="Background")
    await anyio.sleep(scene.seconds(10.0, 40.0))
    worker.link.change(lag=0.0)


async def delete_behind_a_410(scene: Scene) -> None:
    """Copies are deleted while their worker is out of reach, and it remembers no history: only a list can tell."""
    run = await scene.running(plural=JOB.plural)
    if run is None:
        return
    worker, item, workload = run
    scene.taking.excuse(worker.name, workload)
    worker.link.change(down=True)
    for resource, key in ((JOB, item.key), (WORKLOAD, workload)):
        with contextlib.suppress(NotFound):
            await worker.api.delete(resource, key, propagation="Background")
    await anyio.sleep(scene.seconds(1.0, 5.0))
    worker.registry.compact()
    worker.link.change(down=False)


def _any(scene: Scene, place: SimCluster) -> ObjectKey | None:
    ours = place is not scene.world.manager
    keys = sorted(ObjectKey.of(workload) for workload in objects(place, WORKLOAD) if not ours or is_ours(workload))
    if not keys:
        return None
    key = scene.dice.choice(keys)
    scene.note(f"{key} on {place.name}")
    return key


TROUBLES: Final[tuple[Trouble, ...]] = (
    evict_on_worker,
    evict_on_manager,
    evict_on_manager,
    evict_twice,
    evict_unseen,
    deactivate,
    deactivate_copy,
    change_priority,
    delete_job,
    delete_copy,
    delete_all_copies,
    plant_namesake,
)
UNUSUAL: Final[tuple[Trouble, ...]] = (recreate_as_namesake,)
