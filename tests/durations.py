"""How long the gate took, by session and folder of tests, beside what was stored: `python -m tests.durations FOLDER`.

The folder has nox's reports (`nox --report`) and pytest's (`--junitxml`). `--store` makes it what is compared with.
What is over its budget in docs/testing.md is named with its slowest tests: a report, no test fails by the clock.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import attrs

from tests.benchmarks.machine import reference_cpu_ms

ROOT: Final = Path(__file__).parents[1]
STORED: Final = ROOT / "docs" / "results" / "durations.json"
PAGE: Final = ROOT / "docs" / "testing.md"
REFERENCE: Final = 45.0
"""`reference_cpu_ms` of the machine that the budgets are for."""
FACTOR: Final = 1.25
"""What takes so many times as long as before is named ..."""
SECONDS: Final = 10.0
"""... if it takes so many seconds more: two runs on one machine differ by less."""
SLOWEST: Final = 3
"""How many tests are named of what is over its budget."""
BESIDE: Final = "nox-untimed.json"
"""nox's report of what `.ci/run` runs beside the other sessions, at the lowest priority."""
_ROW: Final = re.compile(r"^\| `([\w.-]+(?:: [\w./]+)?)` \| (\d+) \| (\S.*) \|$", re.MULTILINE)


@attrs.frozen
class Budget:
    """What a session, or a folder in a session, may take."""

    seconds: float
    """Of a session: by the clock, on two cores. Of a folder: of all its tests, one after the other."""
    reason: str


@attrs.frozen
class Durations:
    """Seconds by session (`lint`), and by session and folder (`gate: tests/daemon`)."""

    sessions: Mapping[str, float]
    folders: Mapping[str, float]
    reference: float
    """Milliseconds of a fixed piece of work: how fast the machine was."""
    slowest: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """The slowest tests of each folder, with their seconds. They are not stored."""
    beside: Mapping[str, float] = attrs.field(factory=dict)
    """Sessions that had what others left of the machine: their time says nothing, and is not stored."""

    @property
    def all(self) -> Mapping[str, float]:
        """Sessions and folders."""
        return {**self.sessions, **self.folders}


def measured(folder: Path, reference: float) -> Durations:
    """What nox and pytest have written into a folder."""
    reports = sorted(folder.glob("nox-*.json"))
    beside = _sessions(report for report in reports if report.name == BESIDE)
    tests: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for report in sorted(file for file in folder.glob("*.xml") if file.stem not in beside):
        for module, name, seconds in _tests(report):
            tests[f"{report.stem}: {_folder(module)}"].append((seconds, f"{module}::{name}"))
    return Durations(
        _sessions(report for report in reports if report.name != BESIDE),
        {where: sum(seconds for seconds, _ in taken) for where, taken in tests.items()},
        reference,
        {where: tuple(_words(sorted(taken, reverse=True)[:SLOWEST])) for where, taken in tests.items()},
        beside,
    )


def _sessions(reports: Iterable[Path]) -> dict[str, float]:
    return {
        str(session["name"]): float(session["duration"])
        for report in reports
        for session in json.loads(report.read_text())["sessions"]
        if session["result"] != "skipped"
    }


def _tests(report: Path) -> Iterator[tuple[str, str, float]]:
    for case in ElementTree.parse(report).iter("testcase"):
        yield str(case.get("classname")), str(case.get("name")), float(case.get("time", 0))


def _folder(module: str) -> str:
    """`tests/runtime` of `tests.runtime.workers.test_pool.TestOrder`, `tests` of `tests.test_layout`."""
    return "/".join(part for part in module.split(".")[:2] if not part.startswith("test_"))


def _words(tests: Iterable[tuple[float, str]]) -> Iterator[str]:
    return (f"{seconds:.1f} s  {name}" for seconds, name in tests)


def budgets(page: str) -> dict[str, Budget]:
    """The table of docs/testing.md, by session or by session and folder."""
    return {where: Budget(float(seconds), reason) for where, seconds, reason in _ROW.findall(page)}


def report(now: Durations, before: Mapping[str, float], allowed: Mapping[str, Budget]) -> Iterator[str]:
    """A line for each session, for each folder that has become slower, and for what is over its budget."""
    share = now.reference / REFERENCE
    yield f"reference_cpu_ms {now.reference:.0f}: budgets count {share:.2f} times"
    for where, seconds in now.all.items():
        was, budget = before.get(where), allowed.get(where)
        slower = was is not None and seconds > FACTOR * was and seconds - was > SECONDS
        over = budget is not None and seconds > budget.seconds * share
        if where in now.sessions or slower or over:
            notes = ["new" if was is None else f"{was:.1f} s", *(["SLOWER"] if slower else [])]
            notes += [f"OVER ITS BUDGET of {budget.seconds:.0f} s"] if over and budget is not None else []
            yield f"{seconds:8.1f} s  {where} ({', '.join(notes)})"
        if over:
            yield from (f"{'':12}{line}" for line in now.slowest.get(where, ()))
    yield from (f"{seconds:8.1f} s  {where} (beside the others)" for where, seconds in now.beside.items())


def main(arguments: list[str] | None = None) -> None:
    """Write `durations.json` into the folder, and say what has changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store", action="store_true")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir():
        parser.error(f"{given.folder} is no folder: name the one with the reports of nox and pytest")
    noted = given.folder / "durations.json"
    # The gate's own look at the machine: whoever stores its run may do so while that does other things.
    reference = json.loads(noted.read_text())["reference_cpu_ms"] if noted.exists() else reference_cpu_ms()
    now = measured(given.folder, reference)
    before = json.loads(STORED.read_text()) if STORED.exists() else {}
    seconds = {where: took for part in ("sessions", "folders") for where, took in before.get(part, {}).items()}
    sys.stdout.writelines(f"{line}\n" for line in report(now, seconds, budgets(PAGE.read_text())))
    kept = {
        part: {where: round(took, 1) for where, took in getattr(now, part).items()} for part in ("sessions", "folders")
    }
    text = json.dumps({"reference_cpu_ms": now.reference, **kept}, indent=1)
    for target in (noted, *([STORED] if given.store else ())):
        target.write_text(text + "\n")


if __name__ == "__main__":
    main()
