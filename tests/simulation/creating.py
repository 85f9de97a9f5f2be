"""What goes wrong at the moment a job is created on a worker: its link is lost, and more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

import anyio

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workloads import has_quota, is_admitted, is_finished
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.kueue import evict
from tests.simulation.breaking import Trouble
from tests.simulation.objects import find, is_ours
from tests.simulation.scene import Scene
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import SimCluster

WAITS: Final = 60.0
"""Virtual seconds for which a creation is waited for."""


async def lose_the_answer(scene: Scene) -> None:
    """The link of the worker is lost before it can answer that it has created the job."""
    await _lose_link_at_creation(scene, lambda: None)


async def crash_with_the_worker(scene: Scene) -> None:
    """The daemon dies as well: the next one does not reach the worker that has the job."""
    await _lose_link_at_creation(scene, scene.daemon.kill_now)


async def evict_out_of_sight(scene: Scene) -> None:
    """And the manager evicts the Workload. Its quota is free at once, for the manager's job shows no pods yet.

    `clusterName` is erased, and the Workload has quota again before the worker can be seen.
    """
    await _lose_link_at_creation(scene, lambda: None, evicts=True)


async def fall_silent_with_the_answer(scene: Scene) -> None:
    """The worker has created the job and says nothing any more: the creation runs into its deadline."""
    await _lose_link_at_creation(scene, lambda: None, how="silent")


async def evict_behind_an_admission(scene: Scene) -> None:
    """A worker admits a copy while the manager evicts the Workload and gives it quota again, behind our back."""
    manager = scene.world.manager
    offered = anyio.Event()
    offered_keys: list[ObjectKey] = []

    def at_offer(worker: SimCluster, copy: Json) -> None:
        del worker
        if not offered_keys:
            offered_keys.append(ObjectKey.of(copy))
            manager.link.change(down=True)
            offered.set()

    with creations(scene, at_offer, WORKLOAD), anyio.move_on_after(WAITS):
        await offered.wait()
    if not offered_keys:
        return
    scene.note(str(offered_keys[0]))
    for _ in range(50):
        copies = [find(worker, WORKLOAD, offered_keys[0]) for worker in scene.world.workers.values()]
        if any(copy is not None and is_admitted(copy) for copy in copies):
            break
        await anyio.sleep(0.1)
    workload = find(manager, WORKLOAD, offered_keys[0])
    if workload is not None and has_quota(workload) and not is_finished(workload):
        await evict(manager.api, offered_keys[0], clock=wall_clock(manager.skew))
    await anyio.sleep(scene.seconds(0.5, 3.0))
    manager.link.change(down=False)


async def _lose_link_at_creation(
    scene: Scene, act: Callable[[], None], *, evicts: bool = False, how: str = "down"
) -> None:
    created = anyio.Event()
    created_jobs: list[tuple[SimCluster, Json]] = []

    def at_creation(worker: SimCluster, job: Json) -> None:
        if not created_jobs:
            created_jobs.append((worker, job))
            worker.link.change(**{how: True})
            act()
            created.set()

    with creations(scene, at_creation), anyio.move_on_after(WAITS):
        await created.wait()
    if not created_jobs:
        return
    worker, job = created_jobs[0]
    key, manager = ObjectKey(job["metadata"]["namespace"], prebuilt_workload(job)), scene.world.manager
    scene.note(f"{ObjectKey.of(job)} on {worker.name}")
    workload = find(manager, WORKLOAD, key)
    if evicts and workload is not None and has_quota(workload) and not is_finished(workload):
        await evict(manager.api, key, clock=wall_clock(manager.skew))
    await anyio.sleep(scene.dice.choice((20, 60, 120, 250)))
    worker.link.change(**{how: False})
    if how == "silent":
        worker.link.cut()


@contextlib.contextmanager
def creations(scene: Scene, created: Callable[[SimCluster, Json], None], resource: Resource = JOB) -> Iterator[None]:
    """Have a function called with each job, or else, of ours that is created on a worker, before the worker answers."""
    listeners = []
    for worker in scene.world.workers.values():

        def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
            if row.plural == resource.plural and old is None and new is not None and is_ours(new):
                created(worker, new)

        listeners.append((worker.registry.cluster.listeners, changed))
    for where, listener in listeners:
        where.append(listener)
    try:
        yield
    finally:
        for where, listener in listeners:
            where.remove(listener)


TROUBLES: Final[tuple[Trouble, ...]] = (
    lose_the_answer,
    crash_with_the_worker,
    crash_with_the_worker,
    evict_out_of_sight,
    evict_out_of_sight,
)
UNUSUAL: Final[tuple[Trouble, ...]] = (fall_silent_with_the_answer, evict_behind_an_admission)
