"""Fleets and loads of shapes that `fleets.csv` has not: nobody waits twice as long as with AllAtOnce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import attrs
import pytest

from multikueue.core.dispatchers.scored.profile import Profile
from multikueue.core.dispatchers.scored.room import Tree
from tests.dispatch.family import ratio
from tests.dispatch.fleet import Made, Wanted, complete
from tests.dispatch.load import GANG, Flavor, Job, Load, Worker
from tests.dispatch.manager import Manager, Policy, Settings
from tests.dispatch.policies import POLICIES, Build
from tests.dispatch.scored import ScoredPolicy
from tests.dispatch.simulation import simulate

JOBS: Final = 300
SMALL: Final = (1, 1, 1, 2, 4, 8)
MODELS: Final = ("a10", "a100", "h800")


def workers(*gpus: int) -> list[Worker]:
    return [Worker(f"w{i:02}", (Flavor("a100", each, 16 * each),)) for i, each in enumerate(gpus)]


def with_flavors_in_any_order() -> list[Worker]:
    orders = [MODELS[i:] + MODELS[:i] for i in range(3)] * 2
    return [Worker(f"w{i}", tuple(Flavor(model, 16, 256) for model in order)) for i, order in enumerate(orders)]


def load(
    fleet: Sequence[Worker],
    gang: int,
    at: float = 0.85,
    seconds: float = 5400.0,
    models: Sequence[str] = ("",),
    priority: Callable[[int], int] = lambda number: 0,
    rate: float = 0.0,
) -> Load:
    """Jobs of which one in 30 is a gang: for a load, or so many a second that all run for as long."""
    random, jobs = Random(900), list[Job]()
    for i in range(JOBS):
        large = i % 30 == 10
        request = (gang if large else random.choice(SMALL), 0)
        runtime = seconds if rate else max(5.0, random.expovariate(1 / seconds))
        model, kind = random.choice(models), GANG if large else "Job"
        jobs.append(
            Job(f"job-{i}", i / (rate or 1), f"t{i % 5}", request, runtime, model, priority=priority(i), kind=kind)
        )
    wanted = Wanted(len(fleet), JOBS, None if rate else at, made=Made(own=0.0, with_data=0.0, fill=1.0))
    return complete(random, wanted, [*fleet], jobs)


class _ShowsNoUse(ScoredPolicy):
    """The first worker lies: its status says that all is free."""

    def _snapshot(self, known: Any) -> tuple[Tree, int, int, int]:
        tree, pending, ours, theirs = super()._snapshot(known)
        if known.site.name == "w00":
            tree = Tree({name: attrs.evolve(queue, usage={}) for name, queue in tree.queues.items()})
        return tree, pending, ours, theirs


def lied_to(manager: Manager) -> Policy:
    return _ShowsNoUse(manager, Profile())


SCORED: Final = POLICIES["scored"]
UNLIMITED: Final = Settings(unlimited=True)


@pytest.mark.parametrize(
    ("drawn", "settings", "build"),
    [
        pytest.param(load(workers(256, *[8] * 12), 64), UNLIMITED, SCORED, id="a huge worker before tiny ones"),
        pytest.param(load(workers(*[8] * 12, 256), 200), UNLIMITED, SCORED, id="a huge worker behind tiny ones"),
        pytest.param(load(workers(64, *[32] * 7), 48), Settings(), SCORED, id="gangs fit the first worker only"),
        pytest.param(load(workers(*[32] * 7, 64), 48), Settings(), SCORED, id="gangs fit the last worker only"),
        pytest.param(
            load(with_flavors_in_any_order(), 16, models=("", "", *MODELS)),
            Settings(),
            SCORED,
            id="flavors in any order",
        ),
        pytest.param(
            load(workers(*[32] * 4), 24, priority=lambda number: number // 50), UNLIMITED, SCORED, id="later ones first"
        ),
        pytest.param(load(workers(8, 8, 8), 8, seconds=0.0, rate=40), UNLIMITED, SCORED, id="jobs that end at once"),
        pytest.param(load(workers(*[16] * 6), 16, seconds=1.0, rate=60), UNLIMITED, SCORED, id="jobs of a second"),
        pytest.param(
            load(workers(*[16] * 5), 12), attrs.evolve(UNLIMITED, stale=30.0), SCORED, id="figures of half a minute ago"
        ),
        pytest.param(load(workers(*[16] * 5), 12), UNLIMITED, lied_to, id="a worker that shows no use"),
    ],
)
def test_nobody_hangs_or_waits_twice_as_long_as_with_all_at_once(drawn: Load, settings: Settings, build: Build) -> None:
    base, ours = (simulate(drawn, policy, settings) for policy in (POLICIES["all-at-once"], build))

    assert (ours["unfinished"], ours["requests"] < 12) == (0, True)
    assert ratio("wait_mean", base, ours) < 2
