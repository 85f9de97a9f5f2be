"""Mappings that change while jobs run: new jobs go to the new place, what runs stays, no mapping gets nothing."""

from __future__ import annotations

import contextlib
import json
from typing import Final

import anyio
import attrs

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.labels import NAMESPACE_ON_ANNOTATION, NAMESPACES_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.core.model.workloads import cluster_name, noted_worker
from multikueue.errors import ApiError
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.breaking import Trouble
from tests.simulation.objects import find, is_made_by_daemon
from tests.simulation.promises import Promises
from tests.simulation.reach import Reach
from tests.simulation.renaming import OTHER, SAID, THERE, called, say
from tests.simulation.scene import Scene
from tests.simulation.world import SimCluster, World

READ: Final = 30.0
"""Seconds after which the daemon knows what a MultiKueueCluster says, and what it did before is over."""
_UNREADABLE: Final = '{"default": '


async def remap(scene: Scene) -> None:
    """A worker calls the namespace otherwise for a while, or nobody can read how."""
    world, dice = scene.world, scene.dice
    able = sorted(world.renamed - world.gone)
    if not able:
        return
    name, image = dice.choice(able), dice.choice((OTHER, OTHER, ""))
    scene.note(f"{name}: {image or 'unreadable'}")
    await _say(world, name, image)
    await anyio.sleep(scene.seconds(40.0, 150.0))
    await _say(world, name, THERE)


async def erase_a_place(scene: Scene) -> None:
    """Somebody removes from a Workload that runs where its copies are."""
    run = await scene.running()
    if run is not None and run[0].name in scene.world.renamed:
        scene.note(f"of {run[2]}")
        patch = {"metadata": {"annotations": {NAMESPACE_ON_ANNOTATION: None}}}
        await scene.world.manager.api.merge_patch(WORKLOAD, run[2], patch)


TROUBLES: Final[tuple[Trouble, ...]] = (remap, remap, erase_a_place)


async def mend(world: World) -> None:
    """Everything is called as at first."""
    for name in sorted(world.renamed - world.gone):
        await _say(world, name, THERE)


async def _say(world: World, name: str, image: str) -> None:
    said = SAID[NAMESPACES_ANNOTATION] if image == THERE else json.dumps({"default": image}) if image else _UNREADABLE
    world.images[name] = (image, anyio.current_time())
    with contextlib.suppress(ApiError):
        await say(world.manager.api, name, said)


@attrs.define(eq=False)
class Mapping:
    """Watches where copies of Workloads are made."""

    world: World
    reach: Reach
    promises: Promises
    _begun: dict[ObjectKey, float] = attrs.field(factory=dict)
    """When a Workload came."""

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for name in sorted(self.world.renamed) if self.world.remapped else ():
            worker = self.world.workers[name]

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                is_new = row.plural == WORKLOAD.plural and old is None
                if is_new and new is not None and is_made_by_daemon(new):  # an impostor can write our label, too
                    self._made(worker.name, new)

            worker.registry.cluster.listeners.append(changed)

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if new is None or old is not None:
            return
        if row.plural == WORKLOAD.plural:
            self._begun[ObjectKey.of(new)] = anyio.current_time()
        elif row.plural == MULTIKUEUE_CLUSTER.plural:  # made again, it says what it said at first
            self.world.images[name_of(new)] = (THERE, anyio.current_time())

    def _made(self, name: str, copy: Json) -> None:
        key, (image, since) = ObjectKey.of(copy), self.world.images.get(name, (THERE, 0.0))
        known = max(since, self.reach.calm_since(self.world.manager.name), self.reach.calm_since(name)) + READ
        workload = find(self.world.manager, WORKLOAD, key)
        if workload is None or anyio.current_time() < known or name in (cluster_name(workload), noted_worker(workload)):
            return
        if not image:
            self.promises.broken.append(f"{key} is offered to {name}, whose mapping cannot be read")
        elif called(copy) != image and self._begun.get(key, 0.0) > since + READ:
            self.promises.broken.append(f"{key} is made in {called(copy)} on {name}, which is called {image} now")
