"""`python -m tests.dispatch.report`: the table of `docs/dispatch.md`, from what `tests.dispatch.floors` measured."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

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


def table(results: Mapping[str, Mapping[str, float | None]]) -> str:
    """A line for each load and policy: means over the seeds.

    Args:
        results: by load, seed, policy and jobs, with ` / ` between.
    """
    runs: dict[tuple[str, str], list[Measures]] = {}
    for name, measures in results.items():
        load, _, policy, _ = name.split(" / ")
        runs.setdefault((load, policy), []).append(
            {key: math.nan if value is None else value for key, value in measures.items()}
        )
    lines = [["load", "policy", "seeds", *(title for title, _ in COLUMNS.values())]]
    lines.append(["---"] * len(lines[0]))
    for (load, policy), found in sorted(runs.items()):
        means = over_seeds(found)
        figures = [_figure(means[key], shape) for key, (_, shape) in COLUMNS.items()]
        lines.append([load, policy, str(len(found)), *figures])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(value: float, shape: str) -> str:
    """Nothing of what was not measured."""
    return "" if math.isnan(value) else format(value, shape)


@click.command()
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path), default=RESULTS)
def main(results: Path) -> None:
    """Print the table as Markdown."""
    click.echo(table(json.loads(results.read_text())))


if __name__ == "__main__":
    main()
