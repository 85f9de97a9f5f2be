"""`python -m tests.simulation --seeds N [--first-seed S]`: many seeds, on all cores; or one, with its story."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import click

from tests.simulation.shrinking import shrink
from tests.simulation.simulating import Run, simulate

REPLAY = "python -m tests.simulation --seeds 1 --first-seed {seed}"


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=300, show_default=True, help="How many.")
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True, help="The first of them.")
@click.option("--processes", type=click.IntRange(1), default=None, help="How many at a time; all cores by default.")
def main(seeds: int, first_seed: int, processes: int | None) -> None:
    """Run seeds; a failing one is shrunk, told as a story, and can be replayed."""
    started = time.perf_counter()
    if seeds == 1:
        run = simulate(first_seed)
        click.echo(_story(run))
        sys.exit(bool(run.broken))
    failed = []
    with ProcessPoolExecutor(processes) as pool:
        for run in pool.map(simulate, range(first_seed, first_seed + seeds), chunksize=4):
            if run.broken:
                failed.append(run)
                click.echo(f"seed {run.seed}: {run.broken}\n  replay: {REPLAY.format(seed=run.seed)}")
    for run in failed[:1]:
        click.echo(_story(shrink(run.seed)))
    seconds = time.perf_counter() - started
    click.echo(f"{seeds - len(failed)} passed, {len(failed)} failed")
    click.echo(f"seeds {first_seed} to {first_seed + seeds - 1} in {seconds:.0f} s", err=True)
    sys.exit(bool(failed))


def _story(run: Run) -> str:
    end = run.broken or "fine"
    return "\n".join([*run.history, f"seed {run.seed}: {end} ({run.virtual_seconds:.0f} virtual seconds)"])


if __name__ == "__main__":
    main()
