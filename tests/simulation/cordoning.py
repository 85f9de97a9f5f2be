"""What operators do to workers: cordon them, and move jobs away, while other things break.

These are not drawn with the others, so that no seed's story changes; `test_cordoning.py` adds them to its seeds.
"""

from __future__ import annotations

import contextlib
from typing import Final

import anyio

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION, MOVE_FROM_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import NotFound
from tests.simulation.breaking import Trouble
from tests.simulation.scene import Scene


async def cordon(scene: Scene) -> None:
    """A worker gets nothing new for a while."""
    await _cordoned(scene, scene.worker().name, scene.seconds(5.0, 50.0))


async def move_a_job(scene: Scene) -> None:
    """A job is moved away from a cordoned worker."""
    await _move(scene, lost=False)


async def move_and_lose(scene: Scene) -> None:
    """And just then the worker it leaves is lost for a while."""
    await _move(scene, lost=True)


async def _move(scene: Scene, *, lost: bool) -> None:
    run = await scene.running()
    if run is None:
        return
    place, key = run[0], run[2]
    scene.note(f"{key} away from {place.name}")
    await scene.world.manager.api.merge_patch(WORKLOAD, key, _moving(place.name))
    if lost:
        await anyio.sleep(scene.seconds(0.0, 3.0))
        place.link.change(down=True)
    await _cordoned(scene, place.name, scene.seconds(20.0, 60.0))
    place.link.change(down=False)
    with contextlib.suppress(NotFound):  # `worker uncordon` does this: no other worker may be large enough
        await scene.world.manager.api.merge_patch(WORKLOAD, key, _moving(None))


def _moving(worker: str | None) -> Json:
    return {"metadata": {"annotations": {MOVE_FROM_ANNOTATION: worker}}}


async def _cordoned(scene: Scene, name: str, seconds: float) -> None:
    scene.note(f"{name} for {seconds:.0f} s")
    key = ObjectKey("", name)
    for value in ("true", None):
        patch: Json = {"metadata": {"annotations": {CORDON_ANNOTATION: value}}}
        await scene.world.manager.api.merge_patch(MULTIKUEUE_CLUSTER, key, patch)
        await anyio.sleep(seconds if value else 0.0)


TROUBLES: Final[tuple[Trouble, ...]] = (cordon, move_a_job, move_a_job, move_and_lose)
