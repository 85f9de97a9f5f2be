"""`python -m tests.simulation --seeds N [--first-seed S]`: many seeds, on all cores; or one, with its story."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import click

from multikueue.core.model.name_lists import did_you_mean
from tests.garbage import collect_rarely
from tests.simulation.adversity import ROWS
from tests.simulation.mutations import MUTATIONS, runner
from tests.simulation.shrinking import shrink
from tests.simulation.simulating import Run

SEEDS: Final = 300
"""How many run in the gate, from 0 on."""
REPLAY = "python -m tests.simulation --seeds 1 --first-seed {seed}"


class OneOf(click.ParamType[str]):
    """One of a hundred names: too many for a help text, or for an error."""

    name = "name"

    def __init__(self, known: Collection[str]) -> None:
        self.known = known

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.known:
            every = f"there are {len(self.known)}, in the modules of tests/simulation"
            self.fail(f"there is no {value!r}: {did_you_mean(str(value), self.known, most=3) or every}", param, ctx)
        return value


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=SEEDS, show_default=True, help="How many.")
@click.option("--first-seed", type=click.IntRange(0), default=0, show_default=True, help="The first of them.")
@click.option("--processes", type=click.IntRange(1), default=None, help="How many at a time; all cores by default.")
@click.option("--mutation", type=OneOf(MUTATIONS), help="Put a defect back, and stop when it is caught.")
@click.option("--with", "extra", type=OneOf(ROWS), multiple=True, help="What happens in each seed.")
def main(seeds: int, first_seed: int, processes: int | None, mutation: str | None, extra: tuple[str, ...]) -> None:
    """Run seeds; a failing one is shrunk, told as a story, and can be replayed."""
    started = time.perf_counter()
    run_one = runner(mutation, extra)
    if seeds == 1:
        run = run_one(first_seed)
        click.echo(_story(run))
        sys.exit(bool(run.broken))
    failed = []
    pool = ProcessPoolExecutor(processes, initializer=collect_rarely)
    try:
        for run in pool.map(run_one, range(first_seed, first_seed + seeds), chunksize=2):
            if run.broken:
                failed.append(run)
                replay = REPLAY.format(seed=run.seed) + (f" --mutation {mutation}" if mutation else "")
                replay += "".join(f" --with {name}" for name in extra)
                click.echo(f"seed {run.seed}: {run.broken}\n  replay: {replay}")
                if mutation:
                    click.echo(f"{mutation} is caught after {run.seed - first_seed + 1} seeds")
                    sys.exit()
    finally:
        pool.shutdown(cancel_futures=True)
    if mutation:
        click.echo(f"{mutation} is not caught by {seeds} seeds")
        sys.exit(1)
    for run in failed[:1]:
        click.echo(_story(shrink(run.seed, extra)))
    seconds = time.perf_counter() - started
    click.echo(f"{seeds - len(failed)} passed, {len(failed)} failed")
    click.echo(f"seeds {first_seed} to {first_seed + seeds - 1} in {seconds:.0f} s", err=True)
    sys.exit(bool(failed))


def _story(run: Run) -> str:
    end = run.broken or "fine"
    return "\n".join([*run.history, f"seed {run.seed}: {end} ({run.virtual_seconds:.0f} virtual seconds)"])


if __name__ == "__main__":
    main()
