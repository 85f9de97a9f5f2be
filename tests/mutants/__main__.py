"""`python -m tests.mutants --sample N --seed S`: a sample of all small changes; which of them no unit test sees?"""

from __future__ import annotations

import difflib
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import attrs
import click
import coverage
import pytest

from tests.mutants.changes import Mutant, is_python, mutants
from tests.mutants.replacing import replaced
from tests.mutants.trying import LIMIT, Outcome, Wanted, trace, try_mutant, try_replaced, with_collected

FOLDERS: Final = ("multikueue/core/workload", "multikueue/core/machinery", "multikueue/runtime")
TESTS: Final = ("tests/core", "tests/runtime")
TRACE: Final = Path(".mutants")
"""Which test reaches which line, and how long it takes; remove the folder when tests have changed."""
PATIENCE: Final = 20
"""A test that takes so many times what it takes without any change, and `SHORTEST` at least, goes on for ever."""
SHORTEST: Final = 15.0


@attrs.define(eq=False)
class Reached:
    """Which tests reach which lines, and how long each takes."""

    data: coverage.CoverageData
    seconds: Mapping[str, float]

    def by(self, mutant: Mutant, limit: float) -> Wanted:
        """The tests that reach a mutant; all of its module's for what an import runs.

        Its own module's tests come first, then those that are done soon: of a line that most tests reach, the long
        ones are rarely needed.
        """
        lines = self._lines(mutant)
        reached = {test for line in mutant.lines for test in lines.get(line, ()) if test}
        imported = self.imported(mutant)
        tests = reached or ({test for tests in lines.values() for test in tests if test} if imported else set())
        name = f"test_{Path(mutant.path).stem}.py"
        in_turn = sorted(tests, key=lambda test: (name not in test, self.seconds[test], test))
        limits = {test: max(SHORTEST, PATIENCE * self.seconds[test]) for test in tests}
        return Wanted({test: place for place, test in enumerate(in_turn)}, limits, limit)

    def imported(self, mutant: Mutant) -> bool:
        """Whether an import runs it."""
        lines = self._lines(mutant)
        return any("" in lines.get(line, ()) for line in mutant.lines)

    def _lines(self, mutant: Mutant) -> Mapping[int, Sequence[str]]:
        return self.data.contexts_by_lineno(str(Path(mutant.path).resolve()))


@attrs.define(eq=False)
class Report:
    """What has come of each mutant."""

    seed: int
    places: int
    output: Path | None
    counts: Counter[str] = attrs.field(factory=Counter)
    rows: list[dict[str, object]] = attrs.field(factory=list)
    began_at: float = attrs.field(factory=time.monotonic)

    def tell(self, mutant: Mutant, outcome: Outcome, seconds: float) -> None:
        """A mutant was tried."""
        self.counts[outcome.word] += 1
        row = {"mutant": str(mutant), "outcome": outcome.word, "failed": outcome.failed, "diff": _diff(mutant)}
        self.rows.append({**row, "tests": outcome.tests, "seconds": round(seconds, 1)})
        if outcome.word != "killed":
            click.echo(f"{outcome.word}: {mutant}\n{_diff(mutant)}")
        if self.output is not None:
            document = {"seed": self.seed, "places": self.places, "mutants": self.rows}
            self.output.write_text(json.dumps(document, indent=1) + "\n")
        if len(self.rows) % 20 == 0:
            passed = time.monotonic() - self.began_at
            click.echo(f"{len(self.rows)} of {self.places}: {dict(self.counts)} after {passed:.0f} s")


@click.command()
@click.option("--sample", type=click.IntRange(1), default=200, show_default=True, help="How many places.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which of them, and which change.")
@click.option("--only", multiple=True, help="Files or folders, in place of all.")
@click.option(
    "--part", type=click.Choice(["functions", "imports"]), help="Only those that change functions, or others."
)
@click.option("--limit", default=LIMIT, show_default=True, help="Seconds for the tests of one; then it is unfinished.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the results there, as JSON.")
def main(sample: int, seed: int, only: Sequence[str], part: str | None, limit: float, output: Path | None) -> None:
    """Change one thing at a time, and run the unit tests that reach it."""
    chosen = choose(only or FOLDERS, sample, random.Random(f"mutants/{seed}"))
    reached = _traced()
    report = Report(seed, len(chosen), output)
    codes = {mutant: {} if reached.imported(mutant) else replaced(mutant.path, mutant.code()) for mutant in chosen}

    def attempt(mutant: Mutant, outcome_of: Callable[[Wanted], Outcome]) -> None:
        began = time.monotonic()
        outcome = outcome_of(reached.by(mutant, limit))
        report.tell(mutant, outcome, time.monotonic() - began)

    if part != "functions":
        for mutant in (mutant for mutant, changed in codes.items() if not changed):
            attempt(mutant, partial(try_mutant, mutant.path, mutant.code()))

    def in_functions(session: pytest.Session) -> None:
        for mutant, changed in codes.items():
            if changed:
                attempt(mutant, partial(try_replaced, session, mutant.path, changed))

    if part != "imports":
        with_collected(TESTS, in_functions)
    counts = ", ".join(f"{count} {word}" for word, count in sorted(report.counts.items()))
    click.echo(f"{len(chosen)} mutants, {counts}")


def choose(paths: Sequence[str], sample: int, dice: random.Random) -> list[Mutant]:
    """One change at each of so many places."""
    places: dict[object, list[Mutant]] = {}
    files = sorted(file for path in map(Path, paths) for file in ([path] if path.is_file() else path.rglob("*.py")))
    for file in files:
        for mutant in mutants(file):
            places.setdefault((mutant.path, mutant.position), []).append(mutant)
    ordered = sorted(places.values(), key=lambda alternatives: (alternatives[0].path, alternatives[0].position))
    places_in_turn = dice.sample(ordered, len(ordered))
    picked = (next(filter(is_python, dice.sample(changes, len(changes))), None) for changes in places_in_turn)
    return list(islice((mutant for mutant in picked if mutant is not None), sample))


def _traced() -> Reached:
    lines, seconds = TRACE / "lines", TRACE / "seconds.json"
    if not seconds.exists():
        click.echo("running all tests once, to see which lines each of them reaches, and how long it takes")
        TRACE.mkdir(exist_ok=True)
        outcome = trace(list(TESTS), list(FOLDERS), lines, seconds)
        if outcome.failed:
            seconds.unlink(missing_ok=True)
            raise click.ClickException(f"a test fails without any change: {outcome.failed}")
    data = coverage.CoverageData(str(lines))
    data.read()
    return Reached(data, json.loads(seconds.read_text()))


def _diff(mutant: Mutant) -> str:
    before, after = Path(mutant.path).read_text().splitlines(), mutant.code().splitlines()
    changed = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    return "\n".join(line for line in changed if not line.startswith("@@"))


if __name__ == "__main__":
    main()
