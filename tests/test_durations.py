"""What the gate says of its own time."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from tests import durations
from tests.durations import Budget, Durations, budgets, measured, report

CASE = '<testcase classname="{}" name="test_{}" time="{}"/>'
LINT = Durations({"lint": 20.0}, {"gate: tests/daemon": 40.0}, 45.0)


def said(now: Durations, before: Durations = LINT, **seconds: int) -> list[str]:
    """The report, without the machine's speed."""
    allowed = {where.replace("__", ": tests/"): Budget(most, "") for where, most in seconds.items()}
    return [" ".join(line.split()) for line in report(now, before.all, allowed)][1:]


def test_seconds_are_added_up_by_session_and_folder(tmp_path: Path) -> None:
    ran = {"name": "lint", "duration": 20, "result": "success"}
    skipped = {"name": "versions-3.14", "duration": 0, "result": "skipped"}
    (tmp_path / "nox-gate.json").write_text(json.dumps({"sessions": [ran, skipped]}))
    cases = [("tests.runtime.workers.test_pool.TestOrder", "a", 1), ("tests.runtime.test_pods", "b", 2.5)]
    cases += [("tests.test_layout", "c", 4)]
    text = "".join(CASE.format(*case) for case in cases)
    (tmp_path / "gate.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")

    taken = measured(tmp_path, 45.0)

    assert taken.sessions == {"lint": 20.0}
    assert taken.folders == {"gate: tests/runtime": 3.5, "gate: tests": 4.0}
    slowest = ("2.5 s  tests.runtime.test_pods::test_b", "1.0 s  tests.runtime.workers.test_pool.TestOrder::test_a")
    assert taken.slowest["gate: tests/runtime"] == slowest


def test_what_ran_beside_the_others_is_told_and_neither_compared_nor_stored(tmp_path: Path) -> None:
    """It had what they left of the machine."""
    ran = {"name": "coverage", "duration": 900, "result": "success"}
    (tmp_path / "nox-untimed.json").write_text(json.dumps({"sessions": [ran]}))
    case = CASE.format("tests.core.test_a", "a", 600)
    (tmp_path / "coverage.xml").write_text(f"<testsuites><testsuite>{case}</testsuite></testsuites>")

    now = measured(tmp_path, 45.0)

    assert now.all == {}
    assert said(now, Durations({"coverage": 60.0}, {}, 45.0)) == ["900.0 s coverage (beside the others)"]


def test_every_session_is_told_and_a_folder_that_has_become_slower() -> None:
    assert said(LINT) == ["20.0 s lint (20.0 s)"]
    assert said(attrs.evolve(LINT, sessions={"types": 3.0})) == ["3.0 s types (new)"]
    assert said(Durations({"lint": 29.0}, {"gate: tests/daemon": 49.0}, 45.0)) == ["29.0 s lint (20.0 s)"]
    slower = ["31.0 s lint (20.0 s, SLOWER)", "51.0 s gate: tests/daemon (40.0 s, SLOWER)"]
    assert said(Durations({"lint": 31.0}, {"gate: tests/daemon": 51.0}, 45.0)) == slower


def test_what_is_over_its_budget_is_told_with_its_slowest_tests() -> None:
    """A budget counts as many times as the machine is slower than the one it is for."""
    now = attrs.evolve(LINT, slowest={"gate: tests/daemon": ("9.0 s  tests.daemon.test_demo::test_one",)})
    over = "40.0 s gate: tests/daemon (40.0 s, OVER ITS BUDGET of 39 s)"

    assert said(now, lint=20, gate__daemon=40) == ["20.0 s lint (20.0 s)"]
    assert said(now, gate__daemon=39) == ["20.0 s lint (20.0 s)", over, "9.0 s tests.daemon.test_demo::test_one"]
    assert said(attrs.evolve(now, reference=50.0), gate__daemon=39) == ["20.0 s lint (20.0 s)"]


def test_what_was_stored_is_compared_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(durations, "STORED", tmp_path / "stored.json")
    (tmp_path / "nox-gate.json").write_text('{"sessions": [{"name": "lint", "duration": 2, "result": "success"}]}')

    def compared(*options: str) -> str:
        durations.main([str(tmp_path), *options])
        return capsys.readouterr().out.splitlines()[-1].strip()

    assert compared() == "2.0 s  lint (new)"
    monkeypatch.setattr(durations, "reference_cpu_ms", lambda: 1000.0)  # it does other things by now
    assert [compared("--store"), compared()] == ["2.0 s  lint (new)", "2.0 s  lint (2.0 s)"]
    assert json.loads((tmp_path / "stored.json").read_text())["reference_cpu_ms"] < 1000


def test_every_session_and_every_folder_has_a_budget_with_a_reason() -> None:
    """The table in docs/testing.md; what only the night runs has none."""
    tests = durations.ROOT / "tests"
    folders = {f"tests/{path.relative_to(tests).parts[0]}" for path in tests.glob("*/**/test_*.py")}
    allowed = budgets(durations.PAGE.read_text())

    assert {where.rpartition(": ")[2] for where in allowed} >= {*SESSIONS, *folders - NIGHTLY}
    assert [where for where, budget in allowed.items() if len(budget.reason.split()) < 3] == []


SESSIONS = {"lint", "types", "docs", "tests", "gate", "coverage", "simulation", "dispatch", "integration", "dashboard"}
NIGHTLY = {"tests/benchmarks", "tests/conformance", "tests/formats", "tests/soak"}


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        durations.main([str(tmp_path / "none")])
    assert ended.value.code == 2
    assert f"{tmp_path / 'none'} is no folder" in capsys.readouterr().err
