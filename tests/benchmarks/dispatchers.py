"""`python -m tests.benchmarks.dispatchers`: bursts with AllAtOnce and with `scored`, alone and beside busy processes.

Each run is a file of `docs/results/burst-dispatchers`; at the end the table of docs/dispatch.md is written.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import click
import orjson

from multikueue.core.model.names import Json
from tests.docs.marked import replaced

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "results" / "burst-dispatchers"
PAGE: Final = ROOT / "docs" / "dispatch.md"
MARK: Final = "tests/benchmarks/dispatchers.py"
DISPATCHERS: Final = {
    "all-at-once": "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    "scored": "multikueue.dev/scored",
}
FLEETS: Final = {3: "real", 20: "sandbox"}
"""Workers, and what they are: twenty real control planes do not fit on two cores."""
BUSY: Final = {"quiet": 0, "busy": 2}
"""Processes beside it that take all they get."""
_FIGURES: Final[tuple[tuple[str, str, Callable[[Json], float]], ...]] = (
    ("finished per second", "3: ≥ 1.25", lambda run: float(run["finished_per_s"])),
    ("admitted → Ready, p50, ms", "3: ≤ 1.0", lambda run: float(run["latency_ms"]["admitted_ready"]["p50"])),
    ("CPU of everything, s", "20: ≤ 0.6", lambda run: float(sum(run["cpu_seconds"].values()))),
    ("requests to workers per job", "", lambda run: float(run["worker_requests_per_workload"])),
)


@contextmanager
def beside(count: int) -> Iterator[None]:
    """So many busy processes, while the context lasts."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def measure(folder: Path, runs: int, count: int) -> None:
    """Run what has no file in the folder yet."""
    for number in range(1, runs + 1):
        for workers, kind in FLEETS.items():
            for load, busy in BUSY.items():
                for name, dispatcher in DISPATCHERS.items():
                    output = folder / f"{workers}-{load}-{name}" / f"{number}.json"
                    if output.exists():
                        continue
                    output.parent.mkdir(parents=True, exist_ok=True)
                    command = [sys.executable, "-m", "tests.benchmarks", "burst", "--workers", str(workers)]
                    command += ["--control-plane", kind, "--count", str(count), "--dispatcher", dispatcher]
                    with beside(busy):
                        subprocess.run(
                            [*command, "--output", str(output)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
                        )


def table(folder: Path) -> str:
    """The medians of both, and of the pairs' ratios: one runs after the other, and from pair to pair the speed of the
    machine differs by more than the two do.
    """
    lines = ["| workers | beside it | | AllAtOnce | scored | ratio | target |", "|---|---|---|---|---|---|---|"]
    for workers in FLEETS:
        for load in BUSY:
            both = [_runs(folder / f"{workers}-{load}-{name}") for name in DISPATCHERS]
            for what, target, figure in _FIGURES:
                values = [[*map(figure, runs)] for runs in both]
                first, other = map(median, values)
                ratio = median(mine / its for its, mine in zip(*values, strict=True))
                wanted = target.partition(": ")[2] if target.startswith(f"{workers}:") else ""
                shown = " | ".join(f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" for value in (first, other))
                lines.append(f"| {workers} | {load} | {what} | {shown} | {ratio:.2f} | {wanted} |")
    return "\n".join(lines)


def _runs(folder: Path) -> list[Json]:
    return [orjson.loads(file.read_bytes()) for file in sorted(folder.glob("*.json"))]


@click.command()
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True)
@click.option("--count", type=click.IntRange(1), default=300, show_default=True, help="Jobs of each burst.")
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, help="Elsewhere the page is left alone.")
def main(runs: int, count: int, folder: Path) -> None:
    """Measure, and write the table; what was measured already stays."""
    measure(folder, runs, count)
    made = table(folder)
    click.echo(made)
    if folder == FOLDER:
        PAGE.write_text(replaced(PAGE.read_text(), MARK, made))


if __name__ == "__main__":
    main()
