"""Jobs whose pods name ConfigMaps: these come along, go with them, and what is somebody else's stays as it was."""

from __future__ import annotations

import random
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import CONFIG_MAP, JOB
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import clone, dig
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.foreign import Foreigners
from tests.simulation.objects import find, is_ours
from tests.simulation.population import Submission
from tests.simulation.promises import Promises
from tests.simulation.world import SimCluster, World

CHANGED: Final = "settings"
"""One whose content its user changes."""
KEPT: Final = "constants"
"""One that a worker has already, from somebody else."""
CHANGES: Final = 3
"""How often the user does so."""


def with_needs(submission: Submission, dice: random.Random) -> Submission:
    """The same with pods that mount a ConfigMap, if it is a Job."""
    if submission.resource != JOB:
        return submission
    made = [clone(obj) for obj in submission.objects]
    for obj in made:
        named = {"name": "needed", "configMap": {"name": dice.choice((CHANGED, CHANGED, KEPT))}}
        obj["spec"]["template"]["spec"]["volumes"] = [named]
    return attrs.evolve(submission, objects=tuple(made))


def needs_others(world: World, worker: SimCluster, job: Json | None) -> bool:
    """Whether what a Job mounts is on a worker with other content: it is refused there while somebody uses that."""
    volumes = dig(job, "spec", "template", "spec", "volumes") or ()
    named = [_key(str(dig(volume, "configMap", "name"))) for volume in volumes]
    pairs = ((find(world.manager, CONFIG_MAP, key), find(worker, CONFIG_MAP, key)) for key in named)
    return any(there is not None and dig(here, "data") != dig(there, "data") for here, there in pairs)


@attrs.define(eq=False)
class Needs:
    """What jobs of a run need, and what becomes of it."""

    world: World
    promises: Promises
    foreigners: Foreigners

    async def begin(self, tasks: anyio.abc.TaskGroup) -> None:
        """Create what jobs need on the manager, and beside it what somebody else has on a worker."""
        if not self.world.needing:
            return
        for name in (CHANGED, KEPT):
            await self.world.manager.api.create(CONFIG_MAP, _config_map(name, "0"))
        first = next(iter(self.world.workers.values()))
        if not (self.world.remapped and first.name in self.world.renamed):  # its two namespaces are one in truth
            await self.foreigners.plant(first, CONFIG_MAP, _config_map(KEPT, "0"))
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if row.plural == JOB.plural and new is not None and old is None:
                    self._made(worker, new)
                if row.plural == CONFIG_MAP.plural and old is not None and new is not None and _is_orphaned(old, new):
                    self.world.orphaned.add(new["metadata"]["uid"])

            worker.registry.cluster.listeners.append(changed)
        tasks.start_soon(self._run)

    async def _run(self) -> None:
        """Change the content of one, as its user does."""
        dice = random.Random(f"needs/{self.world.seed}")
        for number in range(1, CHANGES + 1):
            await anyio.sleep(dice.uniform(30, 150))
            await self.world.manager.api.merge_patch(CONFIG_MAP, _key(CHANGED), {"data": {"text": str(number)}})
            self.promises.note(f"ConfigMap {CHANGED} gets the content {number}")

    def _made(self, worker: SimCluster, job: Json) -> None:
        """A job is made on a worker: what its pods mount is there."""
        if not is_ours(job):
            return
        for volume in dig(job, "spec", "template", "spec", "volumes") or ():
            named = str(dig(volume, "configMap", "name"))
            if find(worker, CONFIG_MAP, _key(named)) is None:
                self.promises.broken.append(f"{ObjectKey.of(job)} is made on {worker.name} without ConfigMap {named}")


def _is_orphaned(old: Json, new: Json) -> bool:
    before, after = (dig(version, "metadata", "ownerReferences") for version in (old, new))
    return bool(before) and not after


def _key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


def _config_map(name: str, text: str) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
