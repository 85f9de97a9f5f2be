"""`python -m tests.dispatch --policy all-at-once --policy scored --seeds 1,2,3`: a table of what each policy does."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import click

from tests.dispatch.fleet import SPEEDS, Wanted, complete, draw, draw_workers
from tests.dispatch.load import Load
from tests.dispatch.manager import Settings
from tests.dispatch.measures import Measures, over_seeds
from tests.dispatch.policies import POLICIES
from tests.dispatch.simulation import simulate
from tests.dispatch.traces import BadTrace, read_jobs, read_workers

COLUMNS = {
    "wait_mean": "wait mean",
    "wait_p50": "p50",
    "wait_p90": "p90",
    "wait_p99": "p99",
    "largest_mean": "largest mean",
    "largest_p99": "largest p99",
    "response_mean": "response",
    "utilization": "util",
    "requests": "requests",
    "writes": "writes",
    "lost_admissions": "lost",
    "evictions": "evictions",
    "staged": "staged",
    "cost": "cost",
    "own_mean": "own mean",
    "own_p99": "own p99",
    "makespan_h": "makespan",
    "jain": "Jain",
    "interval_right": "right",
    "interval_width": "width",
    "unfinished": "unfinished",
    "cpu_s": "CPU s",
}


def _seeds(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    try:
        return [int(part) for part in value.split(",")]
    except ValueError as error:
        raise click.BadParameter(f'"{value}" is not a list of numbers') from error


def _delay(_: click.Context, __: click.Parameter, value: str) -> tuple[float, float]:
    try:
        least, most = map(float, value.split("-"))
    except ValueError as error:
        raise click.BadParameter(f'"{value}" is not two numbers, as 0-0.5') from error
    return least, most


@click.command()
@click.option("--policy", "policies", type=click.Choice(sorted(POLICIES)), multiple=True, help="All by default.")
@click.option("--workers", type=click.IntRange(1, 20), default=20, show_default=True, help="Of each queue.")
@click.option("--queues", type=click.IntRange(1), default=1, show_default=True, help="With workers of their own.")
@click.option("--jobs", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--load", type=click.FloatRange(0.01), help="0.6 by default; a trace keeps its own arrivals.")
@click.option("--seeds", default="1", show_default=True, callback=_seeds)
@click.option("--unlimited", is_flag=True, help="The manager's quota is unlimited, and not the sum of the workers'.")
@click.option("--broken", type=click.IntRange(0), default=0, help="Workers that admit, and whose pods never get ready.")
@click.option("--lost", type=click.IntRange(0), default=0, help="Workers that cannot be reached for a while.")
@click.option("--cohort", type=click.FloatRange(0, 0.9), default=0.0, help="Quota of workers' own users, in a cohort.")
@click.option("--requeues", type=click.IntRange(0), default=20, show_default=True, help="Evictions until given up.")
@click.option("--horizon", type=click.FloatRange(1), help="Hours after which a run ends.")
@click.option("--stale", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds between statuses.")
@click.option("--delay", default="0-0", show_default=True, callback=_delay, help="Seconds that requests are late.")
@click.option(
    "--as-tables", "by_submission", is_flag=True, help="Copies stand by the job's age, as in the first simulation."
)
@click.option("--trace", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Jobs: CSV or .swf.")
@click.option(
    "--nodes", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Nodes of the workers: CSV."
)
@click.option("--json", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write all measures there.")
def main(policies: Sequence[str], seeds: Sequence[int], trace: Path | None, nodes: Path | None, **options: Any) -> None:
    """Simulate each policy on the same loads, and print what it costs and brings; the last line of each is the mean."""
    load = options["load"] or (None if trace else 0.6)
    wanted = Wanted(
        load=load, **{name: options[name] for name in ("workers", "jobs", "queues", "broken", "lost", "cohort")}
    )
    settings = Settings(
        **{name: options[name] for name in ("unlimited", "by_submission", "requeues", "stale", "delay")}
    )
    horizon = options["horizon"] * 3600 if options["horizon"] else math.inf
    results: dict[str, dict[int, Measures]] = {name: {} for name in policies or sorted(POLICIES)}
    click.echo(" ".join(["policy".ljust(12), "seed", *(title.rjust(12) for title in COLUMNS.values())]))
    gc.freeze()
    for seed in seeds:
        try:
            drawn = _load(wanted, seed, trace, nodes)
        except BadTrace as error:
            raise click.ClickException(str(error)) from error
        if drawn.impossible:
            click.echo(f"Left out, as no worker could ever hold them: {drawn.impossible} jobs", err=True)
        for name, runs in results.items():
            started = time.process_time()
            measures = simulate(drawn, POLICIES[name], settings, horizon)
            runs[seed] = {**measures, "cpu_s": time.process_time() - started}
            click.echo(_row(name, str(seed), runs[seed]))
    if len(seeds) > 1:
        for name, runs in results.items():
            click.echo(_row(name, "mean", over_seeds([*runs.values()])))
    if target := options["target"]:
        target.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def _load(wanted: Wanted, seed: int, trace: Path | None, nodes: Path | None) -> Load:
    if trace is None and nodes is None:
        return draw(wanted, seed)
    random = Random(seed)
    workers = read_workers(nodes, lambda model: SPEEDS.get(model, 1.0)) if nodes else draw_workers(random, wanted)
    if not trace:
        return draw(wanted, seed, workers)
    load = complete(random, wanted, workers, read_jobs(trace))
    if not load.jobs:
        raise BadTrace(f"no worker could ever hold any of the {load.impossible} jobs")
    return load


def _row(name: str, seed: str, measures: Measures) -> str:
    return " ".join([name.ljust(12), seed.rjust(4), *(f"{measures[key]:12.4g}" for key in COLUMNS)])


if __name__ == "__main__":
    main()
