"""How runs end where their pods take time: nodes die, Kueues are away, copies are held, jobs are stopped or settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import anyio

from multikueue.core.model.conditions import new_condition
from multikueue.core.model.eviction import ADMISSION_CHECK
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ELASTIC_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, uid
from multikueue.core.model.workloads import ON_HOLD, evictions, has_quota, is_evicted, is_finished, is_on_hold
from multikueue.errors import ApiError
from multikueue.sandbox.apiserver.faults import Delay, Match
from multikueue.sandbox.kueue import evict
from tests.simulation.breaking import Trouble
from tests.simulation.objects import find, has_ended
from tests.simulation.running import KINDS, Item, running_on
from tests.simulation.scene import Scene
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import SimCluster

STOPPED: Final = 60.0
"""Virtual seconds after which what its Kueue has stopped does not run."""


async def end_on_manager(scene: Scene, item: Item, workload: ObjectKey) -> None:
    """Evict a Workload, as a rule, or delete its job."""
    manager = scene.world.manager
    await anyio.sleep(scene.seconds(0.0, 5.0))
    obj = find(manager, WORKLOAD, workload)
    if obj is None or is_finished(obj):
        return
    if scene.dice.random() < 0.7 and has_quota(obj):
        await evict(manager.api, workload, clock=wall_clock(manager.skew))
    elif find(manager, KINDS[item.plural].resource, item.key) is not None:
        await manager.api.delete(KINDS[item.plural].resource, item.key, propagation="Background")


async def dead_node(scene: Scene) -> None:
    """The node of what runs on a worker dies, and the run is taken away: no pod ends before the node is back."""
    run = await scene.running()
    if run is None or run[0].name not in scene.world.runners:
        return
    worker, item, workload = run
    runner = scene.world.runners[worker.name]
    runner.node_is_dead = True
    if scene.dice.random() < 0.8:
        await end_on_manager(scene, item, workload)
    await anyio.sleep(scene.dice.choice((100.0, 250.0, 500.0)))
    runner.node_is_dead = False


async def evict_slowly(scene: Scene) -> None:
    """What runs is evicted, or deleted, and its pods take their time."""
    run = await scene.running()
    if run is not None:
        await end_on_manager(scene, run[1], run[2])


async def absent_kueue(scene: Scene) -> None:
    """A worker's Kueue is away while what runs there ends, or is taken away: of two Finished the manager's is first."""
    run = await scene.running()
    if run is None or run[0].name not in scene.world.runners or run[0].name in scene.world.away:
        return
    back = scene.world.stop_kueue(run[0].name)
    if scene.dice.random() < 0.5:
        await end_on_manager(scene, run[1], run[2])
    await anyio.sleep(scene.dice.choice((2.0, 20.0, 90.0)))
    back.set()


async def stop_without_eviction(scene: Scene) -> None:
    """A user gives a Job no pods: its Kueue stops it, and deletes its Workload without an eviction. Then it goes on.

    A Kueue stops a Job by several writes, and each takes a while: somebody may write what the next one is refused for.
    """
    manager, run = scene.world.manager, await scene.running(plural=JOB.plural)
    job = find(manager, JOB, run[1].key) if run is not None else None
    if job is None or ELASTIC_ANNOTATION in annotations_of(job) or not job["spec"]["parallelism"]:
        return  # else somebody has stopped it so: he gives it its pods back
    key, wanted = ObjectKey.of(job), job["spec"]["parallelism"]
    began, seconds = anyio.current_time(), scene.dice.choice((5.0, 60.0, 150.0))
    slow = scene.world.kueue_faults.add(Delay(0.5), on=Match(verbs=("update",), resource="jobs.batch"))
    await manager.api.merge_patch(JOB, key, {"spec": {"parallelism": 0}})
    await anyio.sleep(seconds)
    scene.world.kueue_faults.remove(slow)
    if seconds >= STOPPED and run is not None and scene.is_steady(run[0].name, began):
        _check_stopped(scene, run[1])
    await manager.api.merge_patch(JOB, key, {"metadata": {"uid": uid(job)}, "spec": {"parallelism": wanted}})


def _check_stopped(scene: Scene, item: Item) -> None:
    runs = (
        worker.name for worker in scene.world.workers.values() for running, _ in running_on(worker) if running == item
    )
    scene.promises.broken.extend(f"{item} runs on {name} though its Kueue has stopped it" for name in runs)


async def settle(scene: Scene) -> None:
    """Somebody who may write a Job's status settles that it fails."""
    manager, run = scene.world.manager, await scene.running(plural=JOB.plural)
    job = find(manager, JOB, run[1].key) if run is not None else None
    if job is None or has_ended(job):
        return
    target = new_condition("FailureTarget", True, "Terminated", "by hand", now=wall_clock(manager.skew)())
    await settle_as(scene, job, "Failed", (target,))


async def settle_as(scene: Scene, job: Json, end: str, conditions: Sequence[Json], **fields: Any) -> None:
    """Write conditions on a job of the manager after which it can only end in one way."""
    status: Json = {**(job.get("status") or {}), **fields}
    status["conditions"] = [*(status.get("conditions") or ()), *conditions]
    settled, before = scene.promises.settled, scene.promises.settled.get(uid(job))
    settled[uid(job)] = end
    try:
        await write_status(scene, job, status)
    except ApiError:
        del settled[uid(job)]
        if before is not None:
            settled[uid(job)] = before
        raise


async def write_status(scene: Scene, job: Json, status: Json) -> None:
    """Write the status of a job of the manager, which is as it was read."""
    metadata = {"uid": uid(job), "resourceVersion": job["metadata"]["resourceVersion"]}
    patch = {"metadata": metadata, "status": status}
    await scene.world.manager.api.merge_patch(JOB, ObjectKey.of(job), patch, subresource="status")


async def hold_copy(scene: Scene) -> None:
    """A worker's Kueue takes the quota of a copy, and does not evict it: it is held for a while, and runs again."""
    run = await scene.running(plural=JOB.plural)
    if run is None or scene.world.choosing is not None or run[0].name == scene.world.own:
        return
    worker, item, workload = run
    scene.taking.excuse(worker.name, workload)
    began, before = anyio.current_time(), _tries(scene, workload)
    await _take_quota(worker, workload, ON_HOLD)
    for _ in range(scene.dice.choice((30, 100))):
        await anyio.sleep(1.0)
        copy, tries = find(worker, WORKLOAD, workload), _tries(scene, workload)
        lasted = anyio.current_time() - began
        steady = scene.reach.longer_than(worker.name, lasted + 30.0) and scene.daemon.alive_since < began
        if scene.taking.excused_at(worker.name, workload) != began:  # somebody has deleted the copy
            break
        if not dig(find(scene.world.manager, JOB, item.key), "spec", "parallelism"):  # its user stops it
            break
        if tries[1] != before[1]:
            break  # its manager has evicted it: it begins anew, and may be refused elsewhere
        if not is_evicted(copy or {}) and steady and tries[0] > before[0]:
            scene.promises.broken.append(f"{workload} is sent round while {worker.name} holds it")
            break
    if is_on_hold(find(worker, WORKLOAD, workload) or {}):
        await _take_quota(worker, workload, "Pending")


async def _take_quota(worker: SimCluster, key: ObjectKey, reason: str) -> None:
    copy = find(worker, WORKLOAD, key)
    if copy is None:
        return
    now = wall_clock(worker.skew)()
    kept = [
        condition
        for condition in copy["status"]["conditions"]
        if condition["type"] not in ("QuotaReserved", "Admitted")
    ]
    held = [new_condition(kind, False, reason, reason, now=now) for kind in ("QuotaReserved", "Admitted")]
    status: Json = {"conditions": [*kept, *held], "admission": None}
    metadata = {"resourceVersion": copy["metadata"]["resourceVersion"]}
    await worker.api.merge_patch(WORKLOAD, key, {"metadata": metadata, "status": status}, subresource="status")


def _tries(scene: Scene, key: ObjectKey) -> tuple[int, int]:
    """How often the daemon has sent a Workload back, and how often it was evicted for another reason."""
    workload = find(scene.world.manager, WORKLOAD, key) or {}
    counted = dig(workload, "status", "schedulingStats", "evictions") or []
    sent_back = sum(entry["count"] for entry in counted if entry["reason"] == ADMISSION_CHECK)
    return sent_back, evictions(workload) - sent_back


TROUBLES: Final[tuple[Trouble, ...]] = (
    evict_slowly,
    dead_node,
    absent_kueue,
    stop_without_eviction,
    settle,
    hold_copy,
)
