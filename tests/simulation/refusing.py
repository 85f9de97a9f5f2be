"""Statuses that the manager's API server does not take: for what stands there already, or as a policy of its has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import anyio

from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, uid
from multikueue.errors import ApiError
from tests.core.door import SYNC_GRACE
from tests.simulation.breaking import Trouble
from tests.simulation.objects import find, has_ended, objects
from tests.simulation.running_down import end_on_manager, settle_as, write_status
from tests.simulation.scene import Scene
from tests.simulation.virtual_time import wall_clock


async def refuse_statuses(scene: Scene) -> None:
    """A policy of the manager refuses statuses for a while in which one of them runs, and ends or is taken away."""
    run = await scene.running()
    if run is None:
        return
    link, code = scene.world.manager.link, scene.dice.choice((403, 422))
    scene.note(f"with {code}")
    link.change(refusals=dict.fromkeys((kind.resource.plural for kind in scene.world.population.all_kinds), code))
    if scene.dice.random() < 0.3:
        await end_on_manager(scene, run[1], run[2])
    seconds = scene.dice.choice((5.0, 20.0, 120.0))
    await anyio.sleep(seconds)
    link.change(refusals={})
    if code == 422 and seconds > SYNC_GRACE.total_seconds():  # an end is not waited for so long
        jobs = (job for job in objects(scene.world.manager, JOB) if not has_ended(job))
        scene.promises.removed.update(map(ObjectKey.of, jobs))


async def count_by_hand(scene: Scene) -> None:
    """Somebody writes on a Job that runs that more of its pods have ended than have: no counter goes back."""
    job = await _job(scene)
    if job is None:
        return
    counter = scene.dice.choice(("failed", "succeeded"))
    counts = {counter: (dig(job, "status", counter) or 0) + scene.dice.randint(1, 3)}
    before = scene.promises.counted.get(uid(job), {})
    scene.promises.counted[uid(job)] = {**before, **counts}
    try:
        await write_status(scene, job, {**(job.get("status") or {}), **counts})
    except ApiError:
        scene.promises.counted[uid(job)] = before
        raise


async def announce_by_hand(scene: Scene) -> None:
    """Somebody writes on a Job that runs that it can only complete."""
    if (job := await _job(scene)) is not None:
        now = wall_clock(scene.world.manager.skew)()
        await settle_as(scene, job, "Complete", [new_condition("SuccessCriteriaMet", True, "Enough", "", now=now)])


async def end_by_hand(scene: Scene) -> None:
    """Somebody writes on a Job that runs that it has ended."""
    job = await _job(scene)
    if job is None:
        return
    now, end = wall_clock(scene.world.manager.skew)(), scene.dice.choice(("Complete", "Failed"))
    announced = "SuccessCriteriaMet" if end == "Complete" else "FailureTarget"
    conditions = [new_condition(kind, True, "Enough", "by hand", now=now) for kind in (announced, end)]
    started = dig(job, "status", "startTime") or timestamp(now - timedelta(hours=1))
    times = {"startTime": started} | ({"completionTime": timestamp(now)} if end == "Complete" else {})
    await settle_as(scene, job, end, conditions, **times, active=None, ready=None, terminating=None)


async def _job(scene: Scene) -> Json | None:
    """A Job of the manager that runs on a worker."""
    run = await scene.running(plural=JOB.plural)
    job = find(scene.world.manager, JOB, run[1].key) if run is not None else None
    return None if job is None or has_ended(job) else job


TROUBLES: Final[tuple[Trouble, ...]] = (refuse_statuses, refuse_statuses, count_by_hand, announce_by_hand, end_by_hand)
