"""Comparing results, and running commands as one controller."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner

from multikueue.core.model.names import Json
from tests.benchmarks import compare
from tests.benchmarks.scraping import decisions

ROOT = Path(__file__).parents[2]


def result(cpu: float, **more: Any) -> Json:
    return {
        "scenario": "burst",
        "jobs": 5,
        "cpu": cpu,
        "latency_ms": {"a": {"p50": 2 * cpu}},
        "machine": {"load": 1},
        **more,
    }


def test_the_median_counts_and_the_spread_is_told() -> None:
    before, after = [result(cpu) for cpu in (9, 8, 10)], [result(cpu) for cpu in (5, 4)]
    numbers = {number.name: number for number in compare.compared(before, after)}

    assert set(numbers) == {"cpu", "latency_ms.a.p50"}, "neither what is equal by definition, nor the machine"
    assert (str(numbers["cpu"].before), str(numbers["cpu"].after)) == ("9 (8 to 10)", "4.5 (4 to 5)")
    assert (numbers["cpu"].ratio, numbers["cpu"].apart) == (0.5, True)
    assert not compare.compared([result(1), result(3)], [result(2)])[0].apart


def test_a_rate_of_a_part_of_the_jobs_is_not_compared() -> None:
    """Jobs that end before anybody saw Ready would make the rest look fast."""
    rates: Json = {"rate_per_s": 4, "finished_per_s": 3, "finished": 5}
    whole, part = result(1, **rates, ready=5), result(1, **rates, ready=4)
    assert "rate_per_s" in {number.name for number in compare.compared([whole], [whole])}
    assert {"rate_per_s", "finished_per_s"} & {number.name for number in compare.compared([whole], [part])} == {
        "finished_per_s"
    }


def test_other_scenarios_are_refused() -> None:
    with pytest.raises(click.ClickException, match="different jobs cannot be compared: 5, 6"):
        compare.compared([result(1)], [result(1, jobs=6)])


def test_folders_hold_a_file_per_run(tmp_path: Path) -> None:
    for side, values in (("a", (1, 2, 3)), ("b", (4,))):
        (tmp_path / side).mkdir()
        for number, value in enumerate(values):
            (tmp_path / side / f"{number}.json").write_bytes(orjson.dumps(result(value)))
    done = CliRunner().invoke(compare.main, [str(tmp_path / "a"), str(tmp_path / "b" / "0.json")])

    assert done.exit_code == 0, done.output
    assert "2 (1 to 3)" in done.output
    (tmp_path / "c").mkdir()
    assert "has no result files" in CliRunner().invoke(compare.main, [str(tmp_path / "a"), str(tmp_path / "c")]).output


def test_a_controller_that_is_not_ours_tells_no_decisions(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('starting\n{"event":"other","port":1}\nnot JSON "serving"\n')
    assert decisions(log) is None


def beside(other: str, folder: Path) -> list[str]:
    """A command that tells when it has begun, and that it was told to end; and another one beside it."""
    begins = f"trap 'touch {folder / 'ended'}; exit 0' TERM; touch {folder / 'begun'}; echo begun"
    first = f"{begins}; while :; do sleep 0.05; done"
    return [sys.executable, "-m", "tests.benchmarks.together", f"sh -c {shlex.quote(first)}", other]


def test_commands_run_together_until_the_first_ends(tmp_path: Path) -> None:
    """The others are told to end, and its exit code is the whole's."""
    once_begun = f"until test -e {tmp_path / 'begun'}; do sleep 0.05; done; exit 3"
    command = beside(f"sh -c {shlex.quote(once_begun)}", tmp_path)
    assert subprocess.run(command, cwd=ROOT, timeout=60, check=False).returncode == 3
    assert (tmp_path / "ended").exists()


def test_commands_that_run_together_end_together(tmp_path: Path) -> None:
    """A signal to the one ends all; the harness sends it to the whole group."""
    with subprocess.Popen(beside("sleep 100", tmp_path), cwd=ROOT, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        running.terminate()
        assert running.wait(30) == 0
    assert (tmp_path / "ended").exists()


def test_a_signal_while_they_start_ends_them(tmp_path: Path) -> None:
    """The first is there, the last is not yet: none is left behind."""
    commands = [*beside("sleep 100", tmp_path), *["sleep 100"] * 40]
    with subprocess.Popen(commands, cwd=ROOT, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        running.terminate()
        assert running.wait(30) == 0
    assert (tmp_path / "ended").exists()
