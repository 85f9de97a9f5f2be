"""`python -m tests.dispatch.report`: the tables of `docs/dispatch.md`, from what `tests.dispatch.floors` measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import click

from tests.dispatch import family
from tests.dispatch.floors import BASE, SCENARIOS, SCORED
from tests.dispatch.measures import Measures, over_seeds

RESULTS: Final = Path(__file__).parents[2] / "docs/results/dispatch/floors.json"
COLUMNS: Final[Mapping[str, tuple[str, str]]] = {
    "wait_mean": ("wait mean, s", ".0f"),
    "wait_p50": ("p50", ".1f"),
    "wait_p90": ("p90", ".0f"),
    "wait_p99": ("p99", ".0f"),
    "largest_mean": ("largest tenth: mean", ".0f"),
    "largest_p99": ("p99", ".0f"),
    "requests": ("requests/job", ".1f"),
    "writes": ("writes/job", ".1f"),
    "lost_admissions": ("lost admissions/job", ".2f"),
    "evictions": ("evictions", ".0f"),
    "staged": ("staged", ".0%"),
    "cost": ("GPU cost", ".0f"),
    "own_p99": ("own users' p99", ".0f"),
    "makespan_h": ("makespan, h", ".1f"),
    "jain": ("Jain", ".2f"),
    "interval_right": ("intervals right", ".0%"),
    "interval_width": ("their width, s", ".0f"),
}
TITLES: Final = {"wait_mean": "wait mean", "wait_p99": "wait p99", "largest_p99": "largest tenth: p99"}
"""Of columns whose titles lean on the table."""


Results: TypeAlias = Mapping[str, Mapping[str, float | None]]
"""By load, seed, policy and jobs, with ` / ` between."""


def table(results: Results) -> str:
    """A line for each load and policy: means over the seeds."""
    lines = [["load", "policy", "seeds", *(title for title, _ in COLUMNS.values())]]
    for (load, policy), each in sorted(_runs(results).items()):
        means = over_seeds(each)
        figures = [_figure(means[key], shape) for key, (_, shape) in COLUMNS.items()]
        lines.append([load, policy, str(len(each)), *figures])
    return _markdown(lines)


def floors(results: Results) -> str:
    """What was wanted of the scored dispatcher, and what was found."""
    lines, runs = [["load", "measure", "wanted", "found"]], _runs(results)
    for load, scenario in sorted(SCENARIOS.items()):
        for floor in scenario.floors if {(load, BASE), (load, SCORED)} <= runs.keys() else ():
            value = floor.value(over_seeds(runs[load, BASE]), over_seeds(runs[load, SCORED]))
            missed = "" if floor.holds(value) else ", missed"
            title = TITLES.get(floor.measure) or COLUMNS[floor.measure][0]
            lines.append([load, title, floor.wanted, f"{value:.2f}{floor.unit}{missed}"])
    return _markdown(lines)


def _runs(results: Results) -> dict[tuple[str, str], list[Measures]]:
    """Of each load and policy those of all seeds."""
    runs: dict[tuple[str, str], list[Measures]] = {}
    for name, measures in results.items():
        load, _, policy, _ = name.split(" / ")
        runs.setdefault((load, policy), []).append(
            {key: math.nan if value is None else value for key, value in measures.items()}
        )
    return runs


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    head, *others = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *others))


def _figure(value: float, shape: str) -> str:
    """Nothing of what was not measured."""
    return "" if math.isnan(value) else format(value, shape)


@click.command()
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=RESULTS)
def main(results: Path) -> None:
    """Print the tables as Markdown."""
    results_of_floors = json.loads(results.read_text())
    of_family = family.known(family.RESULTS)
    click.echo(f"{table(results_of_floors)}\n\n{floors(results_of_floors)}")
    for part in (family.table, family.aims, family.hung):
        click.echo(f"\n{part(of_family)}")


if __name__ == "__main__":
    main()
