"""What a trouble gets to work with."""

from __future__ import annotations

import random

import anyio
import attrs

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import ObjectKey
from tests.simulation.daemon import Daemon
from tests.simulation.foreign import Foreigners
from tests.simulation.promises import Promises
from tests.simulation.reach import Reach
from tests.simulation.running import Item, running_on
from tests.simulation.taking import Taking
from tests.simulation.world import SimCluster, World


@attrs.define(eq=False)
class Scene:
    """The whole of a run, and the dice for what happens in it."""

    world: World
    daemon: Daemon
    promises: Promises
    taking: Taking
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
        """Any of our Jobs that runs, and where; None if none does for that many seconds."""
        run = await self.running(patience, JOB.plural)
        return None if run is None else (run[0], run[1].key)

    async def running(self, patience: int = 120, plural: str = "") -> tuple[SimCluster, Item, ObjectKey] | None:
        """Anything of ours that runs, where, and its Workload; None if nothing does for that many seconds.

        Args:
            patience: seconds to wait for one.
            plural: of its kind; empty for any.
        """
        for _ in range(patience):
            runs = [
                (worker.name, item, workload)
                for worker in self.world.workers.values()
                for item, workload in running_on(worker)
                if plural in ("", item.plural)
            ]
            if runs:
                break
            await anyio.sleep(1.0)
        else:
            return None
        name, item, workload = self.dice.choice(runs)
        self.note(f"{item} on {name}")
        return self.world.workers[name], item, workload

    def is_steady(self, worker: str, since: float) -> bool:
        """Whether the daemon has run since then, and nothing was wrong on its way to the manager and a worker."""
        reached = (self.reach.manager_since, self.reach.since(worker))
        calm = (self.reach.calm_since(name) for name in (worker, self.world.manager.name))
        return None not in reached and max(self.daemon.alive_since, *filter(None, reached), *calm) <= since

    def seconds(self, least: float, most: float) -> float:
        """How long something lasts."""
        return self.dice.uniform(least, most)
