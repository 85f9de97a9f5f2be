"""`python -m tests.mutants --sample N --seed S`: a sample of all small changes; which of them no unit test sees?"""

from __future__ import annotations

import difflib
import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
import click
import coverage

from tests.mutants.changes import Mutant, mutants
from tests.mutants.trying import Outcome, trace, try_mutant

FOLDERS: Final = ("multikueue/core/workload", "multikueue/core/machinery", "multikueue/runtime")
TESTS: Final = ("tests/core", "tests/runtime")
TRACE: Final = Path(".mutants")
"""Which test reaches which line; remove it when tests have changed."""


@attrs.define(eq=False)
class Reached:
    """Which tests reach which lines."""

    data: coverage.CoverageData

    def by(self, mutant: Mutant) -> Mapping[str, int]:
        """The tests that reach a mutant, its own module's first; all of the module's for what an import runs."""
        lines = self.data.contexts_by_lineno(str(Path(mutant.path).resolve()))
        reached = {test for line in mutant.lines for test in lines.get(line, ()) if test}
        imported = any("" in lines.get(line, ()) for line in mutant.lines)
        found = reached or ({test for tests in lines.values() for test in tests if test} if imported else set())
        name = f"test_{Path(mutant.path).stem}.py"
        return {test: place for place, test in enumerate(sorted(found, key=lambda test: (name not in test, test)))}


@click.command()
@click.option("--sample", type=click.IntRange(1), default=200, show_default=True, help="How many places.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which of them, and which change.")
@click.option("--only", multiple=True, help="Files or folders, in place of all.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the results there, as JSON.")
def main(sample: int, seed: int, only: Sequence[str], output: Path | None) -> None:
    """Change one thing at a time, and run the unit tests that reach it."""
    dice, started = random.Random(f"mutants/{seed}"), time.monotonic()
    chosen = choose(only or FOLDERS, sample, dice)
    reached = Reached(_traced())
    counts: Counter[str] = Counter()
    told = []
    for number, mutant in enumerate(chosen, 1):
        outcome = try_mutant(mutant.path, mutant.code(), reached.by(mutant))
        counts[outcome.word] += 1
        told.append({"mutant": str(mutant), "outcome": outcome.word, "failed": outcome.failed, "diff": _diff(mutant)})
        if outcome.word != "killed":
            click.echo(f"{outcome.word}: {mutant}\n{_diff(mutant)}")
        if output is not None:
            output.write_text(json.dumps({"seed": seed, "places": len(chosen), "mutants": told}, indent=1) + "\n")
        if number % 20 == 0:
            click.echo(f"{number} of {len(chosen)}: {dict(counts)} after {time.monotonic() - started:.0f} s")
    click.echo(f"{len(chosen)} mutants, {', '.join(f'{count} {word}' for word, count in sorted(counts.items()))}")


def choose(paths: Sequence[str], sample: int, dice: random.Random) -> list[Mutant]:
    """One change at each of so many places."""
    places: dict[object, list[Mutant]] = {}
    files = sorted(file for path in map(Path, paths) for file in ([path] if path.is_file() else path.rglob("*.py")))
    for file in files:
        for mutant in mutants(file):
            places.setdefault((mutant.path, mutant.position), []).append(mutant)
    ordered = sorted(places.values(), key=lambda found: (found[0].path, found[0].position))
    return [dice.choice(found) for found in dice.sample(ordered, min(sample, len(ordered)))]


def _traced() -> coverage.CoverageData:
    if not TRACE.exists():
        click.echo("running all tests once, to see which lines each of them reaches")
        outcome: Outcome = trace(list(TESTS), list(FOLDERS), str(TRACE))
        if outcome.failed:
            TRACE.unlink(missing_ok=True)
            raise click.ClickException(f"a test fails without any change: {outcome.failed}")
    data = coverage.CoverageData(str(TRACE))
    data.read()
    return data


def _diff(mutant: Mutant) -> str:
    before, after = Path(mutant.path).read_text().splitlines(), mutant.code().splitlines()
    changed = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    return "\n".join(line for line in changed if not line.startswith("@@"))


if __name__ == "__main__":
    main()
