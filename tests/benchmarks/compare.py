"""`python -m tests.benchmarks.compare A B`: two sets of result files, number by number.

A and B are result files, or folders of them: one file per run. Of several runs the median counts, and the smallest and
the largest are told. Only runs of one scenario can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import attrs
import click
import orjson
from rich.console import Console
from rich.table import Table

from multikueue.core.model.names import Json
from tests.benchmarks import plotting

SAME: Final[Json] = {
    **dict.fromkeys(("scenario", "control_plane", "jobs", "workers", "rtt_ms", "offered_per_s")),
    "kinds": 1,
}
"""What the runs must have in common; and what holds for results that do not say it."""
SEEN: Final = {
    "ready": ("rate_per_s", "latency_ms.created_ready", "latency_ms.admitted_ready"),
    "finished": ("finished_per_s",),
}
"""What says nothing if it is not of all jobs: a controller that lets half of them pass unseen looks twice as fast."""


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


@attrs.frozen
class Spread:
    """One number of several runs."""

    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.values)

    def __str__(self) -> str:
        middle, low, high = map(_rounded, (self.middle, min(self.values), max(self.values)))
        return middle if low == high else f"{middle} ({low} to {high})"


@attrs.frozen
class Compared:
    """One number, before and after."""

    name: str
    before: Spread
    after: Spread

    @property
    def ratio(self) -> float | None:
        """How many times as large the second median is; None if the first is 0."""
        return self.after.middle / self.before.middle if self.before.middle else None

    @property
    def apart(self) -> bool:
        """Whether all of one are larger than all of the other: else the difference may be chance."""
        first, other = self.before.values, self.after.values
        return max(first) < min(other) or max(other) < min(first)


def read(where: Path) -> list[Json]:
    """The results of a file, or of all files of a folder.

    Raises:
        click.ClickException: there is none.
    """
    files = sorted(where.glob("*.json")) if where.is_dir() else [where]
    if not files:
        raise click.ClickException(f"{where} has no result files (*.json)")
    return [orjson.loads(file.read_bytes()) for file in files]


def numbers(result: Json) -> dict[str, float]:
    """The numbers of a result by their dotted names, without those of the machine and those of a part of the jobs."""
    numbers_by_path: dict[str, float] = {}

    def walk(value: object, path: str) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                walk(inner, f"{path}.{name}" if path else name)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers_by_path[path] = float(value)

    walk({name: value for name, value in result.items() if name not in ("machine", "requests", *SAME)}, "")
    jobs = result.get("jobs", 0)
    partial = [name for seen, names in SEEN.items() if result.get(seen, jobs) < jobs for name in names]
    return {name: number for name, number in numbers_by_path.items() if not name.startswith(tuple(partial))}


def compared(before: Sequence[Json], after: Sequence[Json]) -> list[Compared]:
    """All numbers that both have.

    Raises:
        click.ClickException: they are not of one scenario.
    """
    for field, usual in SAME.items():
        seen = {str(run.get(field, usual)) for run in (*before, *after)}
        if len(seen) > 1:
            raise click.ClickException(f"runs with different {field} cannot be compared: {', '.join(sorted(seen))}")
    first, other = [numbers(run) for run in before], [numbers(run) for run in after]
    shared = [name for name in first[0] if all(name in run for run in (*first, *other))]
    return [
        Compared(name, Spread(tuple(run[name] for run in first)), Spread(tuple(run[name] for run in other)))
        for name in shared
    ]


@click.command()
@click.argument("before", type=click.Path(exists=True, path_type=Path))
@click.argument("after", type=click.Path(exists=True, path_type=Path))
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the ratios into this PNG.")
def main(before: Path, after: Path, plot: Path | None) -> None:
    """Compare the results of two sets of runs: files, or folders with a file per run."""
    if plot is not None:
        plotting.require()
    first, other = read(before), read(after)
    rows = compared(first, other)
    table = Table(title=f"{before} ({len(first)} runs) → {after} ({len(other)} runs)", title_justify="left")
    for name in ("", "before", "after", "ratio", ""):
        table.add_column(name, justify="left" if not name else "right")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(row.name, str(row.before), str(row.after), ratio, "" if row.apart else "they overlap")
    Console().print(table)
    if plot is not None:
        drawn = {row.name: row.ratio for row in rows if row.ratio is not None}
        plotting.draw_ratios(drawn, {row.name for row in rows if row.apart}, plot)


if __name__ == "__main__":
    main()
