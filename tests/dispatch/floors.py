"""`python -m tests.dispatch.floors`: what the scored dispatcher must reach, beside AllAtOnce on the same loads."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Final

import attrs
import click

from tests.dispatch.fleet import Wanted, draw
from tests.dispatch.manager import Settings
from tests.dispatch.measures import Measures, over_seeds
from tests.dispatch.policies import POLICIES
from tests.dispatch.simulation import simulate

HORIZON: Final = 120 * 3600.0
BASE, SCORED = "all-at-once", "scored"


@attrs.frozen
class Floor:
    """A limit for one measure of the scored dispatcher."""

    measure: str
    limit: float
    absolute: bool = False
    """Whether it is of the measure itself; else of its ratio to AllAtOnce's."""
    least: float | None = None
    """The smallest that is allowed; None: any."""

    def value(self, base: Measures, scored: Measures) -> float:
        """What the limit is compared with."""
        return scored[self.measure] if self.absolute else scored[self.measure] / (base[self.measure] or math.nan)

    def holds(self, value: float) -> bool:
        """Whether it is reached."""
        return value <= self.limit and (self.least is None or value >= self.least)


@attrs.frozen
class Scenario:
    """A load, and what must be reached with it."""

    wanted: Wanted
    floors: tuple[Floor, ...]
    settings: Settings = attrs.field(factory=Settings)
    horizon: float = math.inf


INTERVALS: Final = Floor("interval_right", 0.9, absolute=True, least=0.7)
MODERATE: Final = (
    Floor("requests", 3.0, absolute=True),
    Floor("writes", 1.5),
    Floor("cost", 0.85),
    Floor("staged", 0.65),
    Floor("own_p99", 0.6),
    Floor("wait_mean", 0.9),
    INTERVALS,
)
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "load 0.6": Scenario(Wanted(load=0.6), MODERATE),
    "load 0.6, five queues": Scenario(Wanted(load=0.6, queues=5), MODERATE),
    "load 0.95": Scenario(Wanted(load=0.95), (Floor("wait_mean", 1.1), INTERVALS)),
    "load 0.95, unlimited": Scenario(
        Wanted(load=0.95),
        (
            Floor("largest_p99", 0.85),
            Floor("largest_mean", 1.6),
            Floor("wait_p99", 2.0),
            Floor("jain", 1.0, absolute=True, least=0.75),
            INTERVALS,
        ),
        Settings(unlimited=True),
    ),
    "broken": Scenario(Wanted(load=0.8, broken=2), (Floor("evictions", 0.2),), horizon=HORIZON),
}


def run(name: str, seed: int, policy: str, jobs: int) -> Measures:
    """One run of a scenario, with so many jobs for each of its queues."""
    scenario = SCENARIOS[name]
    load = draw(attrs.evolve(scenario.wanted, jobs=jobs * scenario.wanted.queues), seed)
    return simulate(load, POLICIES[policy], scenario.settings, scenario.horizon)


def _written(measures: Measures) -> dict[str, float | None]:
    """JSON knows no NaN."""
    return {key: None if math.isnan(value) else value for key, value in measures.items()}


@click.command()
@click.option("--scenario", "names", type=click.Choice(list(SCENARIOS)), multiple=True, help="All by default.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="How many, from 1.")
@click.option("--jobs", type=click.IntRange(1), default=20_000, show_default=True, help="Of each queue.")
@click.option("--processes", type=click.IntRange(1), default=None, help="How many at a time; all cores by default.")
@click.option("--json", "target", type=click.Path(dir_okay=False, path_type=Path), help="Add all measures there.")
def main(names: Sequence[str], seeds: int, jobs: int, processes: int | None, target: Path | None) -> None:
    """Run the scenarios, compare the means over the seeds with the floors, and fail if one is missed."""
    runs = [(*one, jobs) for one in product(names or SCENARIOS, range(1, seeds + 1), (BASE, SCORED))]
    with ProcessPoolExecutor(processes) as pool:
        found = dict(zip(runs, pool.map(run, *zip(*runs, strict=True)), strict=True))
    missed = 0
    for name in names or SCENARIOS:
        base, scored = (
            over_seeds([found[name, seed, policy, jobs] for seed in range(1, seeds + 1)]) for policy in (BASE, SCORED)
        )
        for floor in SCENARIOS[name].floors:
            value = floor.value(base, scored)
            missed += not floor.holds(value)
            verdict = "reached" if floor.holds(value) else "MISSED"
            kind = "" if floor.absolute else " x"
            wanted = f"{floor.limit:g}{kind} at most" if floor.least is None else f"{floor.least:g} to {floor.limit:g}"
            click.echo(f"{name:22}{floor.measure:16}{value:8.3f}{kind:2}  {wanted:16}{verdict}")
    if target:
        known = json.loads(target.read_text()) if target.exists() else {}
        new = {" / ".join(map(str, run)): _written(found[run]) for run in runs}
        target.write_text(json.dumps(known | new, indent=1, sort_keys=True) + "\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
