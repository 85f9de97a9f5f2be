"""What the gate says of its own time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import durations

JUNIT = '<testsuites><testsuite><testcase classname="tests.a" name="test_{0}" time="{1}"/></testsuite></testsuites>'


def test_sessions_and_the_slowest_tests_are_stored_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(durations, "STORED", tmp_path / "stored.json")

    def run(lint: float, test: float, *options: str) -> list[str]:
        ran = {"name": "lint", "duration": lint, "result": "success"}
        skipped = {"name": "versions-3.14", "duration": 0, "result": "skipped"}
        (tmp_path / "nox-gate.json").write_text(json.dumps({"sessions": [ran, skipped]}))
        (tmp_path / "tests.xml").write_text(JUNIT.format("one", test))
        durations.main([str(tmp_path), *options])
        return [line.strip() for line in capsys.readouterr().out.splitlines()]

    assert run(20, 2, "--store") == ["20.0 s  lint (new)", "2.0 s  tests: tests.a::test_one (new)"]
    assert run(24, 2.9) == ["24.0 s  lint (20.0 s)"]
    assert run(31, 3.5) == ["31.0 s  lint (20.0 s, SLOWER)", "3.5 s  tests: tests.a::test_one (2.0 s, SLOWER)"]


def test_only_the_slowest_are_kept(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02}.xml").write_text(JUNIT.format(number, number))
    kept = durations.measured(tmp_path)["tests"]
    assert (len(kept), next(iter(kept))) == (50, "59: tests.a::test_59")
