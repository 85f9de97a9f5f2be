"""What happens in a run besides the daemon's work: jobs come, users interfere, things break and are mended."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.errors import ApiError, NotFound
from multikueue.sandbox.kinds.sets import SetKind
from tests.simulation import (
    breaking,
    creating,
    hostile,
    meddling,
    operating,
    placing,
    refusing,
    remapping,
    resizing,
    rivals,
    second_names,
    shutting,
)
from tests.simulation.adversity import DRAWS, ENDS, ROWS, open_all
from tests.simulation.breaking import Trouble, fine_weather
from tests.simulation.needing import with_needs
from tests.simulation.nominating import ByLabel
from tests.simulation.objects import objects
from tests.simulation.population import Submission, with_grace
from tests.simulation.scene import Scene

TROUBLE_ENDS: Final = 420.0
"""Virtual seconds after which nothing breaks any more."""
TROUBLES: Final = (*breaking.TROUBLES, *creating.TROUBLES, *meddling.TROUBLES, *operating.TROUBLES)
UNUSUAL: Final = (*2 * creating.UNUSUAL, *2 * meddling.UNUSUAL, *hostile.TROUBLES)
"""Drawn by dice of their own, in runs that are unusual: seeds without them are what they were before these came."""
UNLISTED: Final = 0.4
"""Share of unusual runs in which deletions are not told by a watch."""
ADVERSE: Final = 0.5
"""Share of unusual runs with a row of `adversity.DRAWS`."""
REFUSING: Final = 0.3
"""Share of the runs with pods that take time to end in which the manager refuses statuses."""
SECOND_NAMES: Final = 0.06
"""Share of those that somebody looks after by hand in which a worker gets another name."""
CALM: Final = 0.05
"""Share of runs without any trouble: what the daemon costs when all is well is counted in these."""


@attrs.define(eq=False)
class Script:
    """Draws what happens and lets it happen."""

    scene: Scene
    left_out: frozenset[int] = frozenset()
    """Events that do not happen, by number: this is how a failing run is made smaller."""
    extra: tuple[str, ...] = ()
    """Rows of `adversity.ROWS` that happen in any case."""
    events: int = 0
    """How many were drawn."""
    calm: bool = attrs.field(init=False)
    """Whether there are no troubles."""

    def __attrs_post_init__(self) -> None:
        self.calm = self.scene.dice.random() < CALM

    async def run(self) -> None:
        """Play the whole script; at its end everything is mended."""
        dice, world = self.scene.dice, self.scene.world
        async with anyio.create_task_group() as tasks:
            for submission, seconds in self._submissions():
                if self._happens():
                    tasks.start_soon(self._submit, submission, seconds)
            for _ in range(0 if self.calm else dice.randint(2, 9)):
                trouble, seconds = dice.choice(self._troubles), dice.uniform(0, TROUBLE_ENDS - 60)
                if self._happens():
                    tasks.start_soon(self._later, trouble, seconds)
            for trouble in () if self.calm else self._certain:
                if self._happens():
                    tasks.start_soon(self._later, trouble, dice.uniform(20, TROUBLE_ENDS - 60))
            for trouble, seconds in (
                *self._unusual(),
                *self._of_the_inventory(),
                *self._of_the_chooser(),
                *self._of_the_mapping(),
                *self._adverse(),
                *self._of_ends(),
                *self._of_statuses(),
                *self._of_names(),
            ):
                if self._happens():
                    tasks.start_soon(self._later, trouble, seconds)
        await anyio.sleep_until(max(TROUBLE_ENDS, anyio.current_time()))
        if world.choosing is not None:
            await world.choosing.open(world)
        if not self.calm:
            await self._mend()

    def _submissions(self) -> Iterator[tuple[Submission, float]]:
        """What users submit, and when."""
        dice, world = self.scene.dice, self.scene.world
        for number in range(1, dice.randint(3, 8) + 1):
            draw = dice.choice(world.population.draws)
            submission, seconds = draw(dice, number), dice.uniform(0, 240)
            if world.ending:
                with_grace(submission, random.Random(f"grace/{world.seed}/{number}"))
            needs = random.Random(f"needed/{world.seed}/{number}")
            yield with_needs(submission, needs) if world.needing else submission, seconds
        if world.choosing is not None:
            yield from world.choosing.burst(world)

    @property
    def _troubles(self) -> tuple[Trouble, ...]:
        """What may be drawn: some are for what users submit in this run."""
        population = self.scene.world.population
        return (
            *TROUBLES,
            *(2 * rivals.TROUBLES if population.preempting else rivals.TROUBLES[:1]),
            *(resizing.ELASTIC if population.elastic else ()),
            *(resizing.SETS if population.kinds else ()),
        )

    @property
    def _certain(self) -> tuple[Trouble, ...]:
        """What a run is there for, given what users submit in it."""
        population = self.scene.world.population
        resized = resizing.ELASTIC if population.elastic else ()
        return (*resized, *(rivals.TROUBLES[-1:] if population.preempting else ()))

    def _unusual(self) -> list[tuple[Trouble, float]]:
        """What is drawn beside, and when."""
        world = self.scene.world
        if self.calm or not world.unusual:
            return []
        dice = random.Random(f"unusual script/{world.seed}")
        elected = operating.ELECTION if world.replica_skews else ()
        drawn = [*elected, *(dice.choice(UNUSUAL) for _ in range(dice.randint(1, 3)))]
        timed = [(trouble, dice.uniform(5, TROUBLE_ENDS - 60)) for trouble in drawn]
        if dice.random() < UNLISTED:
            timed.append((meddling.delete_behind_a_410, dice.uniform(5, TROUBLE_ENDS - 60)))
        return timed

    def _adverse(self) -> list[tuple[Trouble, float]]:
        """What is drawn beside in some of the unusual runs, and what somebody wants to see."""
        wanted = [ROWS[name].trouble for name in self.extra]
        dice = random.Random(f"adverse script/{self.scene.world.seed}")
        if self.scene.world.unusual and dice.random() < ADVERSE:
            wanted += [dice.choice([draw.trouble for draw in DRAWS.values()])]
        return [] if self.calm else [(trouble, dice.uniform(5, TROUBLE_ENDS - 60)) for trouble in wanted]

    def _of_ends(self) -> list[tuple[Trouble, float]]:
        """What is drawn where pods take time to end, and when."""
        if self.calm or not self.scene.world.ending:
            return []
        dice = random.Random(f"ends script/{self.scene.world.seed}")
        drawn = [dice.choice(ENDS) for _ in range(dice.randint(1, 4))]
        return [(trouble, dice.uniform(10, TROUBLE_ENDS - 60)) for trouble in drawn]

    def _of_statuses(self) -> list[tuple[Trouble, float]]:
        """What is drawn of statuses that the manager does not take in some of these, and when."""
        dice = random.Random(f"statuses script/{self.scene.world.seed}")
        if self.calm or not self.scene.world.ending or dice.random() >= REFUSING:
            return []
        drawn = [dice.choice(refusing.TROUBLES) for _ in range(dice.randint(1, 3))]
        return [(trouble, dice.uniform(10, TROUBLE_ENDS - 60)) for trouble in drawn]

    def _of_names(self) -> list[tuple[Trouble, float]]:
        """Whether a worker gets another name, and when."""
        dice = random.Random(f"names script/{self.scene.world.seed}")
        drawn = not self.calm and second_names.fits(self.scene.world) and dice.random() < SECOND_NAMES
        return [(second_names.rename_a_worker, dice.uniform(10, TROUBLE_ENDS - 120))] if drawn else []

    def _of_the_inventory(self) -> list[tuple[Trouble, float]]:
        """What is drawn where a hub looks after the workers, and when."""
        if self.calm or self.scene.world.inventory is None:
            return []
        dice = random.Random(f"inventory script/{self.scene.world.seed}")
        drawn = [dice.choice(placing.TROUBLES) for _ in range(dice.randint(2, 5))]
        drawn += [placing.move_scores] if self.scene.world.inventory.scored else []
        return [(trouble, dice.uniform(5, TROUBLE_ENDS - 60)) for trouble in drawn]

    def _of_the_chooser(self) -> list[tuple[Trouble, float]]:
        """What is drawn where the dispatcher looks at the workers' queues, and when."""
        if self.calm or self.scene.world.choosing is None:
            return []
        dice = random.Random(f"chooser script/{self.scene.world.seed}")
        drawn = [dice.choice((rivals.rival, shutting.shut_a_queue)) for _ in range(dice.randint(1, 4))]
        return [(trouble, dice.uniform(5, TROUBLE_ENDS - 60)) for trouble in drawn]

    def _of_the_mapping(self) -> list[tuple[Trouble, float]]:
        """What is drawn where workers change what they call a namespace, and when."""
        if self.calm or not self.scene.world.remapped:
            return []
        dice = random.Random(f"mapping script/{self.scene.world.seed}")
        drawn = [dice.choice(remapping.TROUBLES) for _ in range(dice.randint(1, 4))]
        return [(trouble, dice.uniform(20, TROUBLE_ENDS - 60)) for trouble in drawn]

    def _happens(self) -> bool:
        self.events += 1
        return self.events - 1 not in self.left_out

    async def _submit(self, submission: Submission, seconds: float) -> None:
        await anyio.sleep(seconds)
        if self.scene.world.choosing is not None:
            self.scene.world.choosing.wish(submission)
        for obj in submission.objects:
            await self.scene.world.manager.api.create(submission.resource, obj)
        self.scene.promises.note(f"{submission.name} is submitted")
        if submission.lifetime is not None:
            await anyio.sleep(submission.lifetime)
            await self._withdraw(submission)

    async def _withdraw(self, submission: Submission) -> None:
        self.scene.promises.note(f"{submission.name} is not wanted any more")
        for obj in submission.objects:
            with contextlib.suppress(NotFound):
                await self.scene.world.manager.api.delete(
                    submission.resource, ObjectKey.of(obj), propagation="Background"
                )

    async def end_serving(self) -> None:
        """Users delete what serves until then."""
        for kind in self.scene.world.population.all_kinds:
            for obj in list(objects(self.scene.world.manager, kind.resource)) if isinstance(kind, SetKind) else ():
                await self._withdraw(Submission(kind.resource, (obj,)))

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
        for runner in world.runners.values():
            runner.node_is_dead = False
        for place in world.clusters:
            fine = {"down": False, "silent": False, "deaf": False, "hidden": frozenset(), "hostility": None}
            place.link.change(**fine, hung_deletes=False, doubled=0.0, keeps=frozenset(), refusals={}, nameless=0)
        if world.inventory is not None:
            await world.inventory.mend()
        await world.configure(sorted(world.workers))
        if world.remapped:
            await remapping.mend(world)
        if isinstance(world.dispatcher, ByLabel):
            await open_all(self.scene)
        for name in world.workers:
            await world.write_kubeconfig(name)
