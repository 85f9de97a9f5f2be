"""What a trouble gets to work with."""

from __future__ import annotations

import random

import anyio
import attrs

from multikueue.core.model.names import ObjectKey
from tests.simulation.daemon import Daemon
from tests.simulation.foreign import Foreigners
from tests.simulation.objects import jobs_running_on
from tests.simulation.promises import Promises
from tests.simulation.reach import Reach
from tests.simulation.world import SimCluster, World


@attrs.define(eq=False)
class Scene:
    """The whole of a run, and the dice for what happens in it."""

    world: World
    daemon: Daemon
    promises: Promises
    reach: Reach
    foreigners: Foreigners
    dice: random.Random
    tokens: int = 0
    """How many credentials were replaced."""

    def note(self, text: str) -> None:
        """Tell what is done, as a detail of the trouble."""
        self.promises.note(f"  {text}")

    def worker(self) -> SimCluster:
        """Any worker that is there to stay."""
        return self.world.workers[self.dice.choice(sorted(set(self.world.workers) - self.world.gone))]

    async def job(self, patience: int = 120) -> tuple[SimCluster, ObjectKey] | None:
        """Any of our jobs that runs, and where; None if none does for that many seconds."""
        for _ in range(patience):
            found = [(worker.name, key) for worker in self.world.workers.values() for key in jobs_running_on(worker)]
            if found:
                break
            await anyio.sleep(1.0)
        else:
            return None
        name, key = self.dice.choice(found)
        self.note(f"{key} on {name}")
        return self.world.workers[name], key

    def seconds(self, least: float, most: float) -> float:
        """How long something lasts."""
        return self.dice.uniform(least, most)
