"""A worker gets another name: a second MultiKueueCluster for its cluster, while jobs run there and other things break.

Who does so lists the second in place of the first, or both by mistake. The daemon is restarted in the middle, perhaps
while the first cannot be reached; somebody may say that they are two clusters; and the cluster may not say which it is.
In the end the first has its name again, and the second is removed: once nothing runs under it, or before.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from typing import Final

import anyio

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET, WORKLOAD
from multikueue.core.model.labels import DIFFERENT_ANNOTATION
from multikueue.core.model.marks import Proof
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.second_names import second_name
from multikueue.core.model.workloads import cluster_name, component_index, is_elastic, is_finished
from multikueue.errors import ApiError
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.simulation.daemon import Death
from tests.simulation.objects import MARKS, find, objects
from tests.simulation.scene import Scene
from tests.simulation.world import CANARY, SimCluster, World, kubeconfig

KNOWN: Final = 35.0
"""Virtual seconds after which no request is on its way that was sent before a worker was told to be a second name, and
no status that says that it is the first again."""


def fits(world: World) -> bool:
    """Whether its workers are looked after by hand, and by their names."""
    return not (world.inventory or world.choosing or world.own or world.remapped)


def fit(world: World) -> None:
    """Have nobody else look after the workers; the cluster may refuse to say which it is."""
    world.choosing, world.over_http = None, False


async def rename_a_worker(scene: Scene) -> None:
    """A worker has two names for a while."""
    if not fits(scene.world):
        return
    worker = scene.worker()
    name = f"{worker.name}-again"
    if worker.names:
        return
    worker.names.add(name)
    with _watched(scene, worker, name):
        try:
            await _add(scene, worker, name)
            await _live_with_both(scene, worker, name)
        finally:
            worker.link.change(nameless=0)
            await _remove(scene, worker, name)


async def _add(scene: Scene, worker: SimCluster, name: str) -> None:
    dice, made = scene.dice, scene.world.cluster_of(worker.name)
    wrong = {DIFFERENT_ANNOTATION: worker.name} if dice.random() < 0.3 else {}
    code = dice.choice((0, 0, 403, 503))
    scene.note(f"{worker.name}{', said to be another one' if wrong else ''}{f', {code}' if code else ''}")
    worker.link.change(nameless=code)
    metadata = {**made["metadata"], "name": name, "annotations": {**made["metadata"].get("annotations", {}), **wrong}}
    source = {"kubeConfig": {"locationType": "Secret", "location": f"{name}-secret"}}
    text = json.dumps(kubeconfig(worker.name, worker.link.token))
    data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": KUEUE_NAMESPACE, "name": f"{name}-secret"},
    }
    await scene.world.manager.api.create(SECRET, {**secret, "data": data})
    await scene.world.manager.api.create(
        MULTIKUEUE_CLUSTER, {**made, "metadata": metadata, "spec": {**made["spec"], "clusterSource": source}}
    )


async def _live_with_both(scene: Scene, worker: SimCluster, name: str) -> None:
    dice, world = scene.dice, scene.world
    names = sorted(world.workers)
    both = dice.random() < 0.5
    await world.configure([*names, name] if both else [name if known == worker.name else known for known in names])
    await anyio.sleep(scene.seconds(5.0, 60.0))
    if dice.random() < 0.6:
        breaks = dice.random() < 0.5
        scene.note(f"a restart{' without the first' if breaks else ''}")
        if breaks:
            await world.write_kubeconfig(worker.name, json.dumps(kubeconfig(worker.name, f"{CANARY}-old")))
        await scene.daemon.kill(dice.choice(list(Death)))
        await anyio.sleep(scene.seconds(20.0, 100.0))
        await world.write_kubeconfig(worker.name)
    await anyio.sleep(scene.seconds(5.0, 60.0))
    if dice.random() < 0.4:
        worker.link.change(nameless=0)
    await anyio.sleep(scene.seconds(5.0, 60.0))


async def _remove(scene: Scene, worker: SimCluster, name: str) -> None:
    """The first has its name again."""
    manager = scene.world.manager
    with contextlib.suppress(ApiError):
        await scene.world.configure(sorted(scene.world.workers))
    waits = scene.dice.choice((0, 10, 200))
    for _ in range(waits):
        if not any(
            cluster_name(workload) == name and not is_finished(workload) for workload in objects(manager, WORKLOAD)
        ):
            break
        await anyio.sleep(1.0)
    with contextlib.suppress(ApiError):
        await manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", name))


@contextlib.contextmanager
def _watched(scene: Scene, worker: SimCluster, name: str) -> Iterator[None]:
    """Whichever is the second name is offered nothing new, however often the daemon is restarted."""
    since: dict[str, float] = {}
    offers: list[tuple[float, ObjectKey, str]] = []

    def note_condition(row: ResourceType, old: Json | None, new: Json | None) -> None:
        del old
        if row.plural == MULTIKUEUE_CLUSTER.plural and new is not None:
            cluster = new["metadata"]["name"]
            if second_name(new) is not None:
                since.setdefault(cluster, anyio.current_time())
                return
            since.pop(cluster, None)
            # The daemon had made it the first; it offers at once, and this status came a moment later.
            offers[:] = [offer for offer in offers if offer[2] != cluster or anyio.current_time() - offer[0] >= KNOWN]

    def note_offer(resource: Resource, obj: Json) -> None:
        workload = find(scene.world.manager, WORKLOAD, ObjectKey.of(obj)) if resource == WORKLOAD else None
        if workload is None or is_elastic(workload) or component_index(workload) is not None:
            return  # what belongs to a running one goes there
        now = anyio.current_time()
        for cluster in (worker.name, name):
            if now - since.get(cluster, now) >= KNOWN and MARKS.proof(obj, workload, cluster) is Proof.EXACT:
                offers.append((now, ObjectKey.of(obj), cluster))

    manager = scene.world.manager.registry.cluster.listeners
    manager.append(note_condition)
    before, worker.link.on_create = worker.link.on_create, note_offer
    try:
        yield
    finally:
        worker.link.on_create = before
        manager.remove(note_condition)
        scene.promises.broken += [f"{key} is offered to {cluster}, a second name" for _, key, cluster in offers]
