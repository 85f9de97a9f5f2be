"""How long the gate took, by session and by test, beside what was stored: `python -m tests.durations FOLDER`.

The folder has nox's reports (`nox --report`) and pytest's (`--junitxml`). `--store` makes it what is
compared with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

STORED: Final = Path(__file__).parents[1] / "docs" / "results" / "durations.json"
SLOWEST: Final = 50
FACTOR: Final = 1.25
"""What takes so many times as long as before is named ..."""
SECONDS: Final = {"sessions": 10.0, "tests": 1.0}
"""... if it takes so many seconds more: two runs on one machine differ by less."""

Durations = Mapping[str, Mapping[str, float]]


def measured(folder: Path) -> Durations:
    """Seconds of each session, and of the slowest tests."""
    sessions = {
        str(one["name"]): float(one["duration"])
        for report in sorted(folder.glob("nox-*.json"))
        for one in json.loads(report.read_text())["sessions"]
        if one["result"] != "skipped"
    }
    tests = dict(taken for report in sorted(folder.glob("*.xml")) for taken in _tests(report))
    slowest = sorted(tests, key=lambda name: (-tests[name], name))[:SLOWEST]
    return {"sessions": sessions, "tests": {name: tests[name] for name in slowest}}


def _tests(report: Path) -> Iterator[tuple[str, float]]:
    for case in ElementTree.parse(report).iter("testcase"):
        yield f"{report.stem}: {case.get('classname')}::{case.get('name')}", float(case.get("time", 0))


def compared(now: Durations, before: Durations) -> list[str]:
    """A line for each session, and for each test that has become slower or is slow and new among the slowest."""
    lines = []
    for name, seconds in now["sessions"].items():
        lines.append(_line("sessions", name, seconds, before["sessions"].get(name)))
    for name, seconds in now["tests"].items():
        was = before["tests"].get(name)
        if was is None or _slower("tests", seconds, was):
            lines.append(_line("tests", name, seconds, was))
    return lines


def _slower(part: str, seconds: float, was: float) -> bool:
    return seconds > FACTOR * was and seconds - was > SECONDS[part]


def _line(part: str, name: str, seconds: float, was: float | None) -> str:
    if was is None:
        return f"{seconds:8.1f} s  {name} (new)"
    return f"{seconds:8.1f} s  {name} ({was:.1f} s{', SLOWER' if _slower(part, seconds, was) else ''})"


def main(arguments: list[str] | None = None) -> None:
    """Write `durations.json` into the folder, and say what has changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store", action="store_true")
    given = parser.parse_args(arguments)
    now = measured(given.folder)
    before = json.loads(STORED.read_text()) if STORED.exists() else {"sessions": {}, "tests": {}}
    sys.stdout.writelines(f"{line}\n" for line in compared(now, before))
    text = json.dumps({part: {name: round(s, 1) for name, s in of.items()} for part, of in now.items()}, indent=1)
    for target in (given.folder / "durations.json", *([STORED] if given.store else ())):
        target.write_text(text + "\n")


if __name__ == "__main__":
    main()
