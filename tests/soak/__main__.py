"""`python -m tests.soak --weeks 4`: a fleet on virtual time, and what grows in the daemon over the second half."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
import click

from tests.soak.sampling import MEASURES, PROCESS
from tests.soak.slopes import LIMIT, Growth, growths
from tests.soak.soaking import soak

HOURS_PER_WEEK = 168


@click.command()
@click.option("--weeks", type=click.FloatRange(0.02), default=4.0, show_default=True, help="How long, virtually.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of what happens.")
@click.option("--jobs-per-hour", type=click.IntRange(0), default=6, show_default=True, help="How many are submitted.")
@click.option("--output", type=click.Path(path_type=Path), help="Where the numbers go, as JSON.")
def main(weeks: float, seed: int, jobs_per_hour: int, output: Path | None) -> None:
    """Run it, tell what grows, and fail if anything grows by more than 1 % over the second half."""
    started, hours = time.perf_counter(), max(2, round(weeks * HOURS_PER_WEEK))
    samples: list[dict[str, float]] = []

    def on_hour(hour: int, sample: dict[str, float]) -> None:
        samples.append(sample)
        if hour % 24 == 0 or hour < 3:
            shown = ", ".join(f"{name} {value:,.0f}" for name, value in sample.items())
            click.echo(f"hour {hour}, {time.perf_counter() - started:.0f} s: {shown}", err=True)
            write({})  # a run that is stopped leaves what it has found

    def write(outcome: dict[str, object]) -> None:
        if output is not None:
            settings = {"seed": seed, "jobs_per_hour": jobs_per_hour, "seconds": round(time.perf_counter() - started)}
            output.write_text(json.dumps(_result(samples, settings | outcome), indent=1) + "\n")

    run = soak(hours, seed=seed, jobs_per_hour=jobs_per_hour, on_hour=on_hour)
    growing = growths(run.samples, MEASURES)
    click.echo(table(growing))
    click.echo(f"{hours} virtual hours in {time.perf_counter() - started:.0f} s, {run.requests:,} requests")
    failures = [
        *[f"{growth.name} grows by {growth.grown:.2%}" for growth in growing if growth.exceeds()],
        *run.left_over,
        *run.errors,
    ]
    for failure in failures:
        click.echo(failure)
    write({"requests": run.requests, "left_over": run.left_over, "errors": run.errors})
    sys.exit(bool(failures))


def table(growing: list[Growth]) -> str:
    """For people, in Markdown."""
    head = "| second half of the run | least | most | mean | grown |\n|---|---|---|---|---|"
    rows = [
        f"| {growth.name} | {growth.least:,.0f} | {growth.most:,.0f} | {growth.mean:,.1f} | {growth.grown:+.2%} |"
        for growth in growing
    ]
    return "\n".join((head, *rows))


def _result(samples: Sequence[Mapping[str, float]], outcome: dict[str, object]) -> dict[str, object]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "hours": len(samples),
        **outcome,
        "limit": LIMIT,
        "measures": MEASURES,
        "growth": [attrs.asdict(growth) for growth in growths(samples, MEASURES)],
        "samples": {name: [sample[name] for sample in samples] for name in (*MEASURES, PROCESS)},
    }


if __name__ == "__main__":
    main()
