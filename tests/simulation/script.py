"""What happens in a run besides the daemon's work: jobs come, users interfere, things break and are mended."""

from __future__ import annotations

import random
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from multikueue.errors import ApiError
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from tests.simulation import breaking, creating, meddling
from tests.simulation.breaking import Trouble, fine_weather
from tests.simulation.scene import Scene

TROUBLE_ENDS: Final = 420.0
"""Virtual seconds after which nothing breaks any more."""
TROUBLES: Final = (*breaking.TROUBLES, *creating.TROUBLES, *meddling.TROUBLES)
CALM: Final = 0.05
"""Share of runs without any trouble: what the daemon costs when all is well is counted in these."""


def draw_job(dice: random.Random, number: int) -> Json:
    """A Job as a user writes it; the smallest worker has room for it."""
    cpu, pods = dice.choice((("1", 1), ("1", 1), ("1", 2), ("2", 1), ("500m", 2)))
    request = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": request}}
    duration = dice.choice((None, None, "2s", "90s", "240s"))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"job-{number}",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": LOCAL_QUEUE_NAME},
            "annotations": {DURATION_ANNOTATION: duration} if duration else {},
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


@attrs.define(eq=False)
class Script:
    """Draws what happens and lets it happen."""

    scene: Scene
    left_out: frozenset[int] = frozenset()
    """Events that do not happen, by number: this is how a failing run is made smaller."""
    events: int = 0
    """How many were drawn."""
    calm: bool = attrs.field(init=False)
    """Whether there are no troubles."""

    def __attrs_post_init__(self) -> None:
        self.calm = self.scene.dice.random() < CALM

    async def run(self) -> None:
        """Play the whole script; at its end everything is mended."""
        dice = self.scene.dice
        async with anyio.create_task_group() as tasks:
            for number in range(1, dice.randint(3, 8) + 1):
                job, seconds = draw_job(dice, number), dice.uniform(0, 240)
                if self._happens():
                    tasks.start_soon(self._submit, job, seconds)
            for _ in range(0 if self.calm else dice.randint(2, 9)):
                trouble, seconds = dice.choice(TROUBLES), dice.uniform(0, TROUBLE_ENDS - 60)
                if self._happens():
                    tasks.start_soon(self._later, trouble, seconds)
        await anyio.sleep_until(max(TROUBLE_ENDS, anyio.current_time()))
        if not self.calm:
            await self._mend()

    def _happens(self) -> bool:
        self.events += 1
        return self.events - 1 not in self.left_out

    async def _submit(self, job: Json, seconds: float) -> None:
        await anyio.sleep(seconds)
        await self.scene.world.manager.api.create(JOB, job)
        self.scene.promises.note(f"{job['metadata']['name']} is submitted")

    async def _later(self, trouble: Trouble, seconds: float) -> None:
        await anyio.sleep(seconds)
        self.scene.promises.note(trouble.__name__)
        try:
            await trouble(self.scene)
        except ApiError as error:  # what a user does may fail as well: the object may be gone
            self.scene.note(str(error))

    async def _mend(self) -> None:
        world = self.scene.world
        self.scene.promises.note("everything is mended")
        fine_weather(self.scene)
        for place in world.clusters:
            place.link.change(down=False, silent=False, deaf=False)
        await world.configure(sorted(world.workers))
        for name in world.workers:
            await world.write_kubeconfig(name)
