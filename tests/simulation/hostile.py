"""Workers and their users that mean harm: whatever they do stays with them."""

from __future__ import annotations

import contextlib
from typing import Final

import anyio

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import cluster_name, has_quota, is_finished
from multikueue.errors import NotFound
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from tests.simulation.breaking import Trouble
from tests.simulation.hostility import INVENTED, Hostility
from tests.simulation.objects import IMPOSTOR_LABEL, ORIGIN, find, objects
from tests.simulation.scene import Scene

PATIENCE: Final = 120.0
"""Virtual seconds after which an impostor takes back what nobody else removes."""
FLOOD: Final = 60
"""Workloads that one user invents: the number costs the machine time, and no virtual time."""


async def odd_shapes(scene: Scene) -> None:
    """A worker shows our objects with fields of other types: they are unknown, and nothing is decided by them."""
    await _hostile(scene, Hostility.ODD)


async def endless_lists(scene: Scene) -> None:
    """A worker's lists have no end: it is unreadable, neither absent nor lost."""
    await _hostile(scene, Hostility.ENDLESS)


async def bombs(scene: Scene) -> None:
    """A worker's lists unpack to more than may be read: it is unreadable, too."""
    await _hostile(scene, Hostility.BOMB)


async def no_events(scene: Scene) -> None:
    """A worker's watches send lines that are no events: lists go past them."""
    await _hostile(scene, Hostility.NO_EVENTS)


async def _hostile(scene: Scene, how: Hostility) -> None:
    worker = scene.worker()
    scene.note(f"{worker.name}: {how.value}")
    worker.link.change(hostility=how)
    worker.link.cut()
    await anyio.sleep(scene.dice.choice((20.0, 80.0, 240.0)))
    worker.link.change(hostility=None)
    worker.registry.compact()  # what was shown is shown again
    worker.link.cut()


async def flood(scene: Scene) -> None:
    """A user of a worker invents Workloads with our label, as many as the worker takes, and their deletion hangs."""
    worker = scene.worker()
    scene.note(worker.name)
    worker.link.change(hung_deletes=scene.dice.random() < 0.5)
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    for number in range(FLOOD):
        invented = _workload(f"{INVENTED}{number}", [{"name": "main", "count": 1, "template": template}])
        invented["spec"]["active"] = False
        await worker.api.create(WORKLOAD, invented)
        await anyio.sleep(scene.seconds(0.0, 0.2))
    await anyio.sleep(scene.seconds(10.0, 90.0))
    worker.link.change(hung_deletes=False)


async def impostor(scene: Scene) -> None:
    """A worker's user makes a Workload of a waiting one's name with our label, and lets the Kueue there admit it.

    The daemon removes it, but not on the manager, whose users' it may be: there they take it back.
    """
    names = [ObjectKey.of(workload) for workload in objects(scene.world.manager, WORKLOAD) if _waits(workload)]
    worker = scene.worker()
    free = sorted(key for key in names if find(worker, WORKLOAD, key) is None)
    if not free:
        return
    key = scene.dice.choice(free)
    victim = find(scene.world.manager, WORKLOAD, key)
    assert victim is not None, "it was there just now"
    scene.note(f"{key} on {worker.name}")
    invented = _workload(key.name, victim["spec"]["podSets"])
    if worker.name != scene.world.own:
        await worker.api.create(WORKLOAD, invented)
        return
    invented["metadata"]["labels"][IMPOSTOR_LABEL] = "true"
    await worker.api.create(WORKLOAD, invented)
    try:
        await anyio.sleep(PATIENCE)
    finally:
        with anyio.CancelScope(shield=True), contextlib.suppress(NotFound):
            await worker.api.delete(WORKLOAD, key)


def _waits(workload: Json) -> bool:
    return has_quota(workload) and not is_finished(workload) and cluster_name(workload) is None


def _workload(name: str, pod_sets: list[Json]) -> Json:
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {"name": name, "namespace": "default", "labels": {ORIGIN_LABEL: ORIGIN}},
        "spec": {"queueName": LOCAL_QUEUE_NAME, "podSets": pod_sets},
    }


TROUBLES: Final[tuple[Trouble, ...]] = (odd_shapes, endless_lists, bombs, no_events, flood, impostor)
