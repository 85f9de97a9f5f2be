"""`python -m tests.dispatch.family`: fleets of 2 to 20 workers, of `fleets.csv`.

Twenty workers at one size of gangs hide what a dispatcher does to a small fleet. AllAtOnce runs twice: its race is won
by name where all requests take as long, and by chance where they do not; a real one lies between.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, median, stdev
from typing import Final

import attrs
import click

from tests.dispatch import fitted
from tests.dispatch.fleet import SPEEDS, Made, Wanted, complete
from tests.dispatch.load import GANG, Flavor, Job, Load, Worker
from tests.dispatch.manager import Settings
from tests.dispatch.measures import Measures
from tests.dispatch.policies import POLICIES
from tests.dispatch.simulation import simulate

FLEETS: Final = Path(__file__).with_name("fleets.csv")
RESULTS: Final = Path(__file__).parents[2] / "docs/results/dispatch/family.json"
BY_NAME, BY_CHANCE, SCORED = "all-at-once", "all-at-once, random", "scored"
DELAY: Final = (0.0, 0.5)
JOBS: Final = 1_200
FLOOR: Final = 30.0
"""Seconds added to both sides of a ratio: waits of seconds do not count."""
SAMPLE: Final = ("01", "04", "10", "12", "20", "24", "27", "30", "32", "35", "36", "40")
"""Of the gate: gangs and deep queues, one flavor and several, with and without users of workers' own."""
MEASURES: Final = ("wait_mean", "wait_p99", "gang_mean", "gang_p99", "own_p99")
TITLES: Final = {
    "wait_mean": "mean wait",
    "wait_p99": "p99",
    "gang_mean": "gangs: mean",
    "gang_p99": "gangs: p99",
    "own_p99": "own users' p99",
    BY_NAME: "by name",
    BY_CHANCE: "by chance",
}
"""In the tables."""
KEPT: Final = (*MEASURES, "requests", "preemptions", "unfinished", "hung_h", "hung_p99")
"""Of what a run shows."""
SMALL: Final = {1: 0.6, 2: 0.15, 4: 0.15, 8: 0.1}
"""GPUs of other jobs, and how many of them have so many."""
MODELS: Final = {1: ("gpu-series-2",), 2: ("a10", "a100"), 3: ("a10", "a100", "h800")}
CPUS: Final = 16
"""Of a worker, for each GPU; jobs that ask for CPUs want a quarter, a half, all or twice of that."""


def _yes(text: str) -> bool:
    return text == "1"


@attrs.frozen
class Fleet:
    """A row of `fleets.csv`."""

    fleet: str
    seed: int = attrs.field(converter=int)
    workers: int = attrs.field(converter=int)
    gpus: int = attrs.field(converter=int)
    """Of a worker, in the mean."""
    sigma: float = attrs.field(converter=float)
    """Of the workers' log-normal sizes."""
    flavors: int = attrs.field(converter=int)
    mixed: bool = attrs.field(converter=_yes)
    """Whether each worker has all flavors."""
    cpu: bool = attrs.field(converter=_yes)
    """Whether jobs ask for CPUs, too."""
    share: float = attrs.field(converter=float)
    """Of the jobs that are gangs."""
    gang: float = attrs.field(converter=float)
    """What share of the GPUs of a flavor on a worker a gang needs."""
    load: float = attrs.field(converter=float)
    quota: str
    """The manager's: `sum` of the workers', or `unlimited`."""
    own: bool = attrs.field(converter=_yes)
    """Whether every second worker has users of its own."""
    times: str
    """How long jobs run: as Philly's, `exp` of 90 minutes, or `short`, of 10 minutes in the median."""
    batch: int = attrs.field(converter=int)
    """Jobs that come together, in the mean."""
    node: int = attrs.field(converter=int)
    """GPUs of each node; 0: pods fit wherever there is quota."""

    @property
    def settings(self) -> Settings:
        """Of its manager."""
        return Settings(unlimited=self.quota == "unlimited")

    def draw(self, seed: int, jobs: int = JOBS) -> Load:
        """Its load: `seed` is added to the row's own."""
        random = Random(self.seed * 1000 + seed)
        workers = [*self._workers(random)]
        wanted = Wanted(self.workers, jobs, self.load, made=Made(own=0.15 * self.own, with_data=0.0, fill=1.0))
        return complete(random, wanted, workers, self._jobs(random, workers, jobs))

    def _workers(self, random: Random) -> Iterator[Worker]:
        sizes, models = [random.lognormvariate(0, self.sigma) for _ in range(self.workers)], MODELS[self.flavors]
        for i, size in enumerate(sizes):
            gpus = max(8 * len(models) if self.mixed else 8, round(self.gpus * size / fmean(sizes)))
            here = models if self.mixed else (models[i % len(models)],)
            each = gpus // len(here)
            speeds = SPEEDS if self.flavors > 1 else dict.fromkeys(models, 1.0)
            yield Worker(
                f"worker-{i:02}", tuple(Flavor(model, each, each * CPUS, speeds[model], self.node) for model in here)
            )

    def _jobs(self, random: Random, workers: Sequence[Worker], jobs: int) -> list[Job]:
        drawn, at = list[Job](), 0.0
        share = self.share * self.batch / (1 - self.share + self.share * self.batch)  # a gang comes alone
        while len(drawn) < jobs:
            at += random.expovariate(1.0 / self.batch)
            many = 1 if self.batch == 1 else 1 + int(random.expovariate(1 / self.batch))
            tenant, gang = f"tenant-{random.randrange(5)}", random.random() < share
            flavor = random.choice(random.choice(workers).flavors)
            gpus = (
                max(2, round(self.gang * flavor.gpus)) if gang else random.choices(list(SMALL), list(SMALL.values()))[0]
            )
            for _ in range(1 if gang else min(many, jobs - len(drawn))):
                cpus = round(gpus * CPUS * (0.5 if gang else random.choice((0.25, 0.5, 1.0, 2.0)))) if self.cpu else 0
                model = flavor.model if gang and self.flavors > 1 else ""
                request, kind = (gpus, cpus), GANG if gang else "Job"
                name = f"job-{len(drawn)}"
                drawn.append(Job(name, at, tenant, request, self._run_time(random), model, kind=kind))
        return drawn

    def _run_time(self, random: Random) -> float:
        if self.times == "exp":
            return max(5.0, random.expovariate(1 / 5400))
        return random.lognormvariate(math.log(600), 1.2) if self.times == "short" else fitted.run_time(random)


def fleets(path: Path = FLEETS) -> dict[str, Fleet]:
    """By number."""
    with path.open() as rows:
        return {row["fleet"]: Fleet(**row) for row in csv.DictReader(rows)}


def run(fleet: Fleet, seed: int, policy: str, jobs: int = JOBS) -> Measures:
    """One run."""
    late = DELAY if policy == BY_CHANCE else (0.0, 0.0)
    settings = attrs.evolve(fleet.settings, delay=late)
    return simulate(fleet.draw(seed, jobs), POLICIES[SCORED if policy == SCORED else BY_NAME], settings)


def ratio(measure: str, base: Mapping[str, float], ours: Mapping[str, float]) -> float:
    """Beside AllAtOnce; NaN where there is nothing to measure."""
    return (ours[measure] + FLOOR) / (base[measure] + FLOOR)


def geometric(ratios: Sequence[float]) -> tuple[float, float]:
    """Their mean, and by which factor it may be off, 19 times of 20."""
    logs = [math.log(ratio) for ratio in ratios if not math.isnan(ratio)]
    if not logs:
        return math.nan, math.nan
    return math.exp(fmean(logs)), math.exp(1.96 * stdev(logs) / math.sqrt(len(logs))) if len(logs) > 1 else math.nan


Results = dict[str, Mapping[str, float | None]]
"""By fleet, seed, policy and jobs, with ` / ` between."""


def known(path: Path) -> Results:
    """What was measured before."""
    return json.loads(path.read_text()) if path.exists() else {}


def beside(results: Results, base: str) -> dict[str, dict[str, list[float]]]:
    """By measure and fleet the ratios of its seeds."""
    ratios: dict[str, dict[str, list[float]]] = {measure: {} for measure in MEASURES}
    for name, ours in results.items():
        fleet, seed, policy, jobs = name.split(" / ")
        other = results.get(f"{fleet} / {seed} / {base} / {jobs}")
        if policy == SCORED and other is not None:
            for measure, by_fleet in ratios.items():
                pair = [
                    {key: math.nan if value is None else value for key, value in side.items()} for side in (other, ours)
                ]
                by_fleet.setdefault(fleet, []).append(ratio(measure, *pair))
    return ratios


def medians(results: Results, base: str, measure: str) -> dict[str, float]:
    """By fleet the median of its seeds' ratios, the worst first; without those where there is nothing to measure."""
    middle = {fleet: median(ratios) for fleet, ratios in beside(results, base)[measure].items()}
    return dict(
        sorted(((fleet, ratio) for fleet, ratio in middle.items() if not math.isnan(ratio)), key=lambda row: -row[1])
    )


def table(results: Results) -> str:
    """The geometric mean over the fleets, how far it may be off, and the worst ones, as Markdown."""
    lines = [
        "| beside AllAtOnce | measure | fleets | mean | 95 % | worst fleets |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for base in (BY_NAME, BY_CHANCE):
        for measure in MEASURES:
            each = medians(results, base, measure)
            middle, factor = geometric([*each.values()])
            worst = ", ".join(f"{ratio:.2f} x (fleet {fleet})" for fleet, ratio in [*each.items()][:3])
            span = f"{middle / factor:.2f} to {middle * factor:.2f} x"
            lines.append(f"| {TITLES[base]} | {TITLES[measure]} | {len(each)} | {middle:.2f} x | {span} | {worst} |")
    return "\n".join(lines)


AIMS: Final = (
    (BY_NAME, "wait_mean", "mean", 1.05),
    (BY_NAME, "wait_mean", "worst fleet", 2.5),
    (BY_NAME, "gang_mean", "mean", 1.1),
    (BY_NAME, "own_p99", "mean", 0.6),
    (BY_CHANCE, "wait_mean", "mean", 0.75),
)
"""What we want: beside whom, of which measure, what of it, and the most that it may be."""


def aims(results: Results) -> str:
    """What we wanted, and what was found, as Markdown."""
    lines = ["| beside AllAtOnce | measure | wanted, at most | found |", "| --- | --- | --- | --- |"]
    for base, measure, part, limit in AIMS:
        each = medians(results, base, measure)
        value = geometric([*each.values()])[0] if part == "mean" else max(each.values())
        missed = "" if value <= limit else ", missed"
        lines.append(f"| {TITLES[base]} | {TITLES[measure]}, {part} | {limit:g} x | {value:.2f} x{missed} |")
    requests = max(runs["requests"] or 0.0 for name, runs in results.items() if f" / {SCORED} / " in name)
    lines.append(
        f"| | requests to workers a job, worst run | 3 | {requests:.2f}{'' if requests <= 3 else ', missed'} |"
    )
    return "\n".join(lines)


def hung(results: Results) -> str:
    """Hours that jobs had quota and no node, over all seeds of the fleets that have nodes, as Markdown."""
    with_nodes = [name for name, fleet in fleets().items() if fleet.node]
    lines = [
        f"| hours with quota and without a node | {' | '.join(with_nodes)} | all |",
        "| --- " * (len(with_nodes) + 2) + "|",
    ]
    for policy, title in ((BY_NAME, "AllAtOnce, by name"), (BY_CHANCE, "AllAtOnce, by chance"), (SCORED, "scored")):
        each = [
            sum(
                runs.get("hung_h") or 0.0
                for name, runs in results.items()
                if name.split(" / ")[0::2][:2] == [fleet, policy]
            )
            for fleet in with_nodes
        ]
        lines.append(f"| {title} | {' | '.join(f'{hours:,.0f}' for hours in (*each, sum(each)))} |")
    return "\n".join(lines)


@click.command()
@click.option("--fleet", "names", multiple=True, help="The gate's sample by default.")
@click.option("--all", "every", is_flag=True, help="All fleets.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="How many, from 0.")
@click.option("--policy", "policies", type=click.Choice([BY_NAME, BY_CHANCE, SCORED]), multiple=True, help="All.")
@click.option("--jobs", type=click.IntRange(1), default=JOBS, show_default=True)
@click.option("--limit", type=float, help="Fail if the mean wait beside AllAtOnce by name is a larger factor.")
@click.option("--json", "target", type=click.Path(dir_okay=False, path_type=Path), help="Add all measures there.")
def main(
    names: Sequence[str],
    every: bool,
    seeds: int,
    policies: Sequence[str],
    jobs: int,
    limit: float | None,
    target: Path | None,
) -> None:
    """Run fleets, and say how long jobs wait beside AllAtOnce; runs that the file has are not repeated."""
    all_fleets, results = fleets(), known(target) if target else {}
    wanted = all_fleets if every else names or SAMPLE
    for fleet in wanted:
        for seed in range(seeds):
            for policy in policies or (BY_NAME, BY_CHANCE, SCORED):
                name = f"{fleet} / {seed} / {policy} / {jobs}"
                if name in results:
                    continue
                started, measures = time.process_time(), run(all_fleets[fleet], seed, policy, jobs)
                kept = {key: measures[key] for key in KEPT}
                results[name] = {key: None if math.isnan(value) else round(value, 1) for key, value in kept.items()}
                click.echo(f"{name:40}{time.process_time() - started:6.1f} s", err=True)
                if target:
                    target.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    click.echo(table(results))
    mean, _ = geometric([*medians(results, BY_NAME, "wait_mean").values()])
    sys.exit(limit is not None and not mean <= limit)


if __name__ == "__main__":
    main()
