"""No test is in neither: `nox` and `nox -t gate` are together everything but what is run at night."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import attrs
import pytest

from tests.simulation.__main__ import SEEDS

pytestmark = [pytest.mark.gate, pytest.mark.timeout(120)]

ROOT: Final = Path(__file__).parents[1]
PURE: Final = ("coverage", "versions")
"""The sessions that run all of the pure layers again, in another way."""
USUAL: Final = "not real and not operators"
"""What pytest leaves out by itself: `addopts` of pyproject.toml."""
Command = tuple[str, ...]


@attrs.define
class Session:
    """What nox gives a session: here it only notes the commands."""

    name: str
    posargs: tuple[str, ...] = ()
    commands: list[Command] = attrs.field(factory=list)

    def run(self, *command: str, **_: Any) -> None:
        self.commands.append(command)

    def install(self, *_: str) -> None:
        """Everything is there."""

    def create_tmp(self) -> str:
        """No command of a test needs it."""
        return "/nonexistent"

    def chdir(self, _: Path) -> AbstractContextManager[None]:
        """As it is: nothing runs."""
        return nullcontext()

    def skip(self, why: str) -> None:
        """Where there is no browser: what would be run is asked here, not whether it can be."""


@attrs.frozen
class Noxfile:
    """Its sessions, and what belongs to which command."""

    functions: Mapping[str, Any]
    default: tuple[str, ...]
    tags: Mapping[str, tuple[str, ...]]
    nightly: tuple[str, ...]

    def commands(self, name: str) -> list[Command]:
        session = Session(name)
        self.functions[name](session)
        return session.commands

    def gate(self) -> list[str]:
        return [name for name, tags in self.tags.items() if "gate" in tags]


def noxfile(monkeypatch: pytest.MonkeyPatch) -> Noxfile:
    """Read with a nox that only notes; the environment that tests run in has none."""
    functions: dict[str, Any] = {}
    tags: dict[str, tuple[str, ...]] = {}

    def session(function: Any = None, *, tags_: tuple[str, ...] = (), **options: Any) -> Any:
        if function is None:
            return lambda wrapped: session(wrapped, tags_=tuple(options.get("tags", ())))
        functions[function.__name__], tags[function.__name__] = function, tags_
        return function

    stub = ModuleType("nox")
    options = SimpleNamespace()
    project = SimpleNamespace(
        load_toml=lambda file: tomllib.loads((ROOT / file).read_text()), dependency_groups=lambda *_: ()
    )
    vars(stub).update(session=session, options=options, project=project, Session=Session)
    monkeypatch.setitem(sys.modules, "nox", stub)
    monkeypatch.setenv("PATH", os.environ.get("PATH", ""))  # it looks for Pythons
    monkeypatch.delenv("DURATIONS", raising=False)
    read = runpy.run_path(str(ROOT / "noxfile.py"))
    return Noxfile(functions, tuple(options.sessions), tags, read["NIGHTLY"])


class Marks(dict[str, bool]):
    """What `-m` asks for."""

    def __missing__(self, name: str) -> bool:
        return False


def runs(command: Command, test: str, marks: Marks) -> bool:
    """Whether a command of pytest runs a test."""
    if command[0] != "pytest":
        return False
    below = [argument for argument in command[1:] if argument.startswith("tests/")]
    ignored = [argument.partition("=")[2] for argument in command if argument.startswith("--ignore=")]
    chosen = command[command.index("-m") + 1] if "-m" in command else USUAL
    return bool(
        (not below or any(_in(test, place) for place in below))
        and not any(_in(test, place) for place in ignored)
        and eval(chosen, {}, marks)
    )


def _in(test: str, place: str) -> bool:
    return test.startswith((f"{place}/", f"{place}::"))


def collected() -> Iterator[tuple[str, Marks]]:
    """All tests with their marks."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "tests.test_gate", "tests"]
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "MARKS": "1"}, capture_output=True, text=True, check=True
    )
    line = next(line for line in run.stdout.splitlines() if line.startswith("["))
    yield from ((test, Marks(dict.fromkeys(marks, True))) for test, marks in json.loads(line))


def pytest_collection_finish(session: pytest.Session) -> None:
    """As a plugin: print the marks of all tests."""
    items = [(item.nodeid, [mark.name for mark in item.iter_markers()]) for item in session.items]
    sys.stdout.write(f"\n{json.dumps(items)}\n")


def test_every_test_is_run_by_nox_or_by_its_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """By one of them, but for properties: `nox` draws few examples, the gate all."""
    file = noxfile(monkeypatch)
    gate = [command for name in file.gate() if name not in PURE for command in file.commands(name)]
    (pure,) = (command[command.index("pytest") :] for command in file.commands("coverage") if "pytest" in command)
    nowhere, twice, few_examples = [], [], []
    for test, marks in collected():
        if "operators" in marks or any(_in(test, place) for place in file.nightly):
            continue
        first = sum(runs(command, test, marks) for command in file.commands("tests"))
        rest, again = sum(runs(command, test, marks) for command in gate), runs(pure, test, marks)
        if not first + rest + again:
            nowhere.append(test)
        if first + rest > 1 and "hypothesis" not in marks:
            twice.append(test)
        if first and "hypothesis" in marks and not rest + again:
            few_examples.append(test)

    assert (nowhere, twice, few_examples) == ([], [], [])
    assert sum("--hypothesis-profile=few" in command for command in file.commands("tests")) == 1


def test_all_seeds_are_run_and_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    file = noxfile(monkeypatch)
    commands = [command for name in (*file.default, *file.gate()) for command in file.commands(name)]
    seeds: list[int] = []
    for command in commands:
        if command[:3] == ("python", "-m", "tests.simulation"):
            given = dict(zip(command[3::2], map(int, command[4::2]), strict=True))
            first = given.get("--first-seed", 0)
            seeds += range(first, first + given["--seeds"])

    assert sorted(seeds) == list(range(SEEDS))


def test_every_session_is_in_nox_in_the_gate_at_night_or_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """`.ci/run` runs the first two."""
    file = noxfile(monkeypatch)
    asked_for = {"soak", "mutants", "controlplane", "bench", "release"}
    at_night = {name for name, tags in file.tags.items() if "nightly" in tags}
    script = (ROOT / ".ci/run").read_text()

    assert set(file.functions) - set(file.default) - set(file.gate()) - at_night <= asked_for
    assert not set(file.default) & set(file.gate())
    assert [line for line in script.splitlines() if line.startswith("nox ")] == []
