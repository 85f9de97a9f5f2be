"""What the sessions leave behind: measures of several runs in one file."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.dispatch.floors import Floor, main


def test_measures_of_another_run_stay(tmp_path: Path) -> None:
    target = tmp_path / "floors.json"
    for name in ("load 0.6", "broken"):
        options = ["--scenario", name, "--jobs", "40", "--seeds", "1", "--processes", "1", "--json", str(target)]
        CliRunner().invoke(main, options)

    kept = json.loads(target.read_text())

    assert len(kept) == 4
    assert kept["load 0.6 / 1 / all-at-once / 40"]["interval_right"] is None


def test_a_floor_may_have_two_sides() -> None:
    floor = Floor("interval_right", 0.9, absolute=True, least=0.7)

    assert [floor.holds(value) for value in (0.69, 0.7, 0.9, 0.91)] == [False, True, True, False]
    assert not floor.holds(float("nan"))


def test_one_seed_alone_may_miss_a_floor_by_its_slack() -> None:
    floor = Floor("interval_right", 0.9, absolute=True, least=0.7, slack=0.1).for_one_seed()

    assert [floor.holds(value) for value in (0.62, 0.64, 0.98, 1.0)] == [False, True, True, False]


def test_what_the_gate_ends_early_is_no_result(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["--gate", "--json", str(tmp_path / "floors.json")])

    assert (answer.exit_code, [*tmp_path.iterdir()]) == (2, [])
