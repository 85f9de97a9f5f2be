"""What a job's way through proxies, webhooks, finalizers, and the hands of its users brings; what clocks and labels do.

Each row of `DRAWS` is a trouble of its own, with the item of the list of faults that must be mended before every seed
bears it. `python -m tests.simulation --with NAME` adds it to each seed, mended or not.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import ELASTIC_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.workloads import cluster_name, has_quota, is_evicted, is_finished, nominated
from multikueue.errors import ApiError, Conflict, NotFound
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.kueue import evict
from tests.simulation import meddling, population, refusing, running_down, second_names
from tests.simulation.breaking import Trouble
from tests.simulation.choosing import Choosing
from tests.simulation.creating import WAITS, creations
from tests.simulation.daemon import Death
from tests.simulation.nominating import OPEN, ByLabel
from tests.simulation.objects import find, objects
from tests.simulation.promises import HOLD
from tests.simulation.running import KINDS, Item, running_on
from tests.simulation.running_down import end_on_manager
from tests.simulation.scene import Scene
from tests.simulation.shutting import shut_a_queue
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import SimCluster, World

PATIENCE: Final = 120.0
"""Virtual seconds within which a label of a MultiKueueCluster is heeded."""


async def doubled_requests(scene: Scene) -> None:
    """Proxies repeat writes that took effect: the daemon gets the answer to the repetition, a 409 or a 404 perhaps."""
    share = scene.dice.choice((0.2, 0.6, 1.0))
    for place in scene.world.clusters:
        place.link.change(doubled=share)
    await anyio.sleep(scene.seconds(20.0, 150.0))
    for place in scene.world.clusters:
        place.link.change(doubled=0.0)


async def doubled_creation_and_a_loss(scene: Scene) -> None:
    """A proxy repeats the creation of a job, and its worker is lost before its watch shows the job."""
    created = anyio.Event()
    lost: list[SimCluster] = []

    def at_creation(worker: SimCluster, job: Json) -> None:
        if not lost:
            scene.note(f"{ObjectKey.of(job)} on {worker.name}")
            lost.append(worker)
            created.set()

    for worker in scene.world.workers.values():
        worker.link.change(doubled=1.0, lag=20.0)
    with creations(scene, at_creation), anyio.move_on_after(WAITS):
        await created.wait()
        await anyio.sleep(scene.seconds(0.05, 1.0))
    for worker in lost:
        worker.link.change(down=True)
    for worker in scene.world.workers.values():
        worker.link.change(doubled=0.0, lag=0.0)
    await anyio.sleep(scene.dice.choice((20.0, 60.0, 120.0, 250.0)))
    for worker in lost:
        worker.link.change(down=False)


async def refused_deletions(scene: Scene) -> None:
    """A webhook of a worker refuses the deletion of jobs there; what runs is evicted, or its user deletes it."""
    run = await scene.running()
    if run is None:
        return
    worker, item, workload = run
    kept = frozenset(kind.resource.plural for kind in scene.world.population.all_kinds)
    worker.link.change(keeps=kept)
    await end_on_manager(scene, item, workload)
    await anyio.sleep(scene.dice.choice((100.0, 250.0)))
    worker.link.change(keeps=frozenset())


async def holding_finalizer(scene: Scene) -> None:
    """A finalizer of somebody's holds what runs of a Workload on a worker, which is evicted, or deleted by its user."""
    run = await scene.running()
    if run is None:
        return
    worker, item, workload = run
    items = [item for item, of in running_on(worker) if of == workload]
    for held in items:
        await _hold(worker, KINDS[held.plural].resource, held.key, held=True)
    await end_on_manager(scene, item, workload)
    await anyio.sleep(scene.dice.choice((100.0, 250.0)))
    for held in items:
        await _hold(worker, KINDS[held.plural].resource, held.key, held=False)


async def _hold(worker: SimCluster, resource: Resource, key: ObjectKey, *, held: bool) -> None:
    """Set or take away the finalizer."""
    while (obj := find(worker, resource, key)) is not None:
        others = [finalizer for finalizer in obj["metadata"].get("finalizers", ()) if finalizer != HOLD]
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        patch: Json = {"metadata": {**metadata, "finalizers": [*others, *([HOLD] if held else [])]}}
        with contextlib.suppress(Conflict):
            await worker.api.merge_patch(resource, key, patch)
            return


async def meddle_unwatched(scene: Scene) -> None:
    """Users and the manager's Kueue go on while no daemon runs."""
    if await scene.running() is None:
        return
    await _leave(scene, scene.dice.choice((30.0, 90.0, 250.0)))
    for _ in range(scene.dice.randint(1, 3)):
        meddler = scene.dice.choice((meddling.delete_job, meddling.evict_on_manager, meddling.delete_copy))
        scene.note(meddler.__name__)
        await meddler(scene)
        await anyio.sleep(scene.seconds(0.0, 8.0))


async def evict_twice_unwatched(scene: Scene) -> None:
    """The manager's Kueue evicts what runs twice while no daemon runs: a copy is of the attempt before the last."""
    run = await scene.running()
    if run is None:
        return
    manager = scene.world.manager
    await _leave(scene, scene.dice.choice((10.0, 60.0, 250.0)))
    for _ in range(2):
        if (workload := find(manager, WORKLOAD, run[2])) is not None and has_quota(workload):
            await evict(manager.api, run[2], clock=wall_clock(manager.skew))
        await anyio.sleep(scene.seconds(0.0, 8.0))


async def recreate_unwatched(scene: Scene) -> None:
    """A user deletes a Job that runs on a worker and creates another of its name, while no daemon runs."""
    run = await scene.running(plural=JOB.plural)
    if run is None:
        return
    manager, key = scene.world.manager, run[1].key
    job = find(manager, JOB, key)
    if job is None:
        return
    await _leave(scene, scene.dice.choice((30.0, 90.0)))
    scene.promises.recreated.add(run[1])
    await manager.api.delete(JOB, key, propagation="Background")
    for _ in range(60):
        if find(manager, JOB, key) is None:
            break
        await anyio.sleep(0.2)
    else:
        return
    made = population.draw_job(scene.dice, 0).objects[0]
    made["metadata"]["name"] = key.name
    await manager.api.create(JOB, made)


async def stop_unwatched(scene: Scene) -> None:
    """Somebody deletes the Workload of a Job that runs while no daemon does: its Kueue stops it, and it ends on its
    worker. Its Kueue makes another Workload once the job shows no run.
    """
    run = await scene.running(plural=JOB.plural)
    manager = scene.world.manager
    job = find(manager, JOB, run[1].key) if run is not None else None
    if run is None or job is None or ELASTIC_ANNOTATION in annotations_of(job):
        return
    await _leave(scene, 250.0)
    await manager.api.delete(WORKLOAD, run[2], propagation="Background")


async def act_unwatched(scene: Scene) -> None:
    """A Job comes while no daemon runs, and a controller of the manager that does not heed `managedBy` acts on it."""
    await _leave(scene, scene.dice.choice((30.0, 90.0)))
    made = population.draw_job(scene.dice, 0).objects[0]
    made["metadata"]["name"] = f"acted-on-{anyio.current_time():.0f}"
    manager, key = scene.world.manager, ObjectKey.of(made)
    await manager.api.create(JOB, made)
    controller = DirectClient(manager.registry, user="kube-controller-manager")
    suspended = new_condition("Suspended", True, "JobSuspended", "Job suspended", now=wall_clock(manager.skew)())
    await controller.merge_patch(JOB, key, {"status": {"conditions": [suspended]}}, subresource="status")
    scene.promises.run_here.add(Item(JOB.plural, key))


async def _leave(scene: Scene, seconds: float) -> None:
    scene.note(f"no daemon for {seconds:g} s")
    scene.daemon.absence = seconds
    await scene.daemon.kill(scene.dice.choice((Death.CRASH, Death.CANCEL)))


async def step_a_cluster_clock(scene: Scene) -> None:
    """Somebody sets the wall clock of a cluster, and sets it right again."""
    place = scene.dice.choice(scene.world.clusters)
    await _step(scene, place.name, scene.dice.choice((-100.0, 60.0, 300.0)))


async def step_our_clock(scene: Scene) -> None:
    """Somebody sets the wall clock of the daemon's host while a worker is lost, and sets it right again."""
    run = await scene.running()
    if run is None:
        return
    link = run[0].link
    link.change(down=True)
    await anyio.sleep(scene.seconds(20.0, 60.0))
    await _step(scene, "", scene.dice.choice((-300.0, 240.0, 3_600.0)))
    link.change(down=False)


async def _step(scene: Scene, name: str, seconds: float) -> None:
    scene.note(f"{name or 'the daemon'} by {seconds:g} s")
    steps = scene.world.steps
    restarts = scene.daemon.restarts
    steps[name] = steps.get(name, 0.0) + seconds
    scene.promises.most_stepped = max(scene.promises.most_stepped, abs(steps[name]))
    await anyio.sleep(scene.seconds(30.0, 100.0))
    steps[name] -= seconds
    if scene.daemon.restarts != restarts:  # what a process notes for the next one is on the clock it has then
        scene.promises.stepped += abs(seconds)


async def relabel_clusters(scene: Scene) -> None:
    """Labels and annotations of MultiKueueClusters change; where they name those that are open, jobs go there."""
    manager, names = scene.world.manager, sorted(set(scene.world.workers) - scene.world.gone)
    by_label = isinstance(scene.world.dispatcher, ByLabel)
    for name in scene.dice.sample(names, scene.dice.randint(1, len(names))):
        value = scene.dice.choice((None, "true"))
        scene.note(f"{name}: {value}")
        metadata: Json = {"labels": {OPEN: value}, "annotations": {OPEN: value}}
        with contextlib.suppress(NotFound):
            await manager.api.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), {"metadata": metadata})
        await anyio.sleep(scene.seconds(0.0, 2.0))
    changed = anyio.current_time()
    await anyio.sleep(PATIENCE)
    for workload in objects(manager, WORKLOAD) if by_label else ():
        if _waits(workload) and not nominated(workload):
            able = [name for name in names if _is_open(scene, name) and scene.reach.longer_than(name, PATIENCE)]
            steady = scene.daemon.alive_since < changed and (scene.reach.manager_since or changed) < changed
            if able and steady and scene.reach.calm_since(manager.name) < changed:
                scene.promises.broken.append(f"nobody offers {ObjectKey.of(workload)} to {able}, which are open")


def _waits(workload: Json) -> bool:
    over = is_finished(workload) or is_evicted(workload)
    return has_quota(workload) and not over and cluster_name(workload) is None


def _is_open(scene: Scene, name: str) -> bool:
    cluster = find(scene.world.manager, MULTIKUEUE_CLUSTER, ObjectKey("", name)) or {}
    return OPEN in (cluster.get("metadata", {}).get("labels") or {})


async def open_all(scene: Scene) -> None:
    """In the end every worker is open."""
    for name in sorted(set(scene.world.workers) - scene.world.gone):
        with contextlib.suppress(ApiError):
            patch: Json = {"metadata": {"labels": {OPEN: "true"}}}
            await scene.world.manager.api.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", name), patch)


@attrs.frozen
class Draw:
    """One row."""

    trouble: Trouble
    prepare: Callable[[World], None] = lambda _: None
    """What the world is to be like for those who want to see it."""


def _label(world: World) -> None:
    world.dispatcher, world.choosing = ByLabel(), None


def _speak_http(world: World) -> None:
    """Only a real list leaves out who wrote what."""
    world.over_http = True


ENDS: Final = (*running_down.TROUBLES, refused_deletions, holding_finalizer)
"""What is drawn where pods take time to end."""


def _slow(world: World) -> None:
    if not world.ending:
        world.end_slowly(random.Random(f"ends/{world.seed}"))


DRAWS: Final[Mapping[str, Draw]] = MappingProxyType(
    {
        draw.trouble.__name__: draw
        for draw in (
            Draw(doubled_requests),
            Draw(doubled_creation_and_a_loss),
            Draw(refused_deletions),
            Draw(holding_finalizer),
            Draw(meddle_unwatched),
            Draw(recreate_unwatched),
            Draw(act_unwatched, _speak_http),
            Draw(step_a_cluster_clock),
            Draw(step_our_clock),
            Draw(relabel_clusters, _label),
        )
    }
)


def _choose(world: World) -> None:
    if world.inventory is None:
        world.choose_by(Choosing.made(world))


ROWS: Final[Mapping[str, Draw]] = MappingProxyType(
    {
        **DRAWS,
        shut_a_queue.__name__: Draw(shut_a_queue, _choose),
        evict_twice_unwatched.__name__: Draw(evict_twice_unwatched),
        stop_unwatched.__name__: Draw(stop_unwatched),
        second_names.rename_a_worker.__name__: Draw(second_names.rename_a_worker, second_names.fit),
        **{act.__name__: Draw(act) for act in (meddling.delete_copy, meddling.delete_behind_a_410)},
        **{trouble.__name__: Draw(trouble, _slow) for trouble in (*running_down.TROUBLES, *refusing.TROUBLES)},
    }
)
"""With what is drawn elsewhere: what `--with` knows."""
