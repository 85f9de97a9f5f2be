"""Tests in a process of their own, with a changed module.

It is forked, and what it imports is there already. Where only functions have changed, all tests are there as well.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Final, NoReturn
from unittest import mock

import attrs
import coverage
import pytest
import structlog
from hypothesis import Phase, settings

from tests.mutants.replacing import Name, replace

BESIDE: Final = ("aiohttp.web", "anyio", "cattrs", "hypothesis", "jsonpatch", "looptime", "orjson", "prometheus_client")
"""What takes long to import, and is nobody's mutant."""
QUIET: Final = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=60")
LIMIT: Final = 600
"""Seconds for all tests of one mutant, if nothing else is said."""
UNFINISHED: Final = "not all tests were run"
"""What is said of a mutant that no test has noticed within that time: it counts neither way."""
MEMORY: Final = 6 << 30


@attrs.define
class Outcome:
    """How the tests went."""

    failed: str = ""
    """The first test that failed, and how; empty: all have passed."""
    tests: int = 0

    @property
    def word(self) -> str:
        """For a report."""
        if not self.failed:
            return "survived" if self.tests else "untested"
        if self.failed == UNFINISHED:
            return "unfinished"
        return "timeout" if "Timeout (>" in self.failed or "SIG" in self.failed else "killed"


@attrs.define(eq=False)
class Watcher:
    """A pytest plugin: which tests run, in which order, which lines they reach, and what fails."""

    wanted: Mapping[str, int] | None = None
    """The tests to run, each with its place; None: all."""
    limits: Mapping[str, float] = attrs.field(factory=dict)
    """Seconds after which a test counts as failed, where that is not what pytest was told for all."""
    on_test: Callable[[str], object] = lambda _: None
    """Called with each test that begins."""
    outcome: Outcome = attrs.field(factory=Outcome)
    seconds: dict[str, float] = attrs.field(factory=dict)
    """How long each test took."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave only what is wanted."""
        wanted = self.wanted
        if wanted is not None:
            items[:] = sorted((item for item in items if item.nodeid in wanted), key=lambda item: wanted[item.nodeid])
        for item in items:
            if item.nodeid in self.limits:
                item.add_marker(pytest.mark.timeout(self.limits[item.nodeid]), append=False)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Count it."""
        self.outcome.tests += 1
        self.on_test(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the first failure, and how long it took."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed and not self.outcome.failed:
            self.outcome.failed = f"{report.nodeid}: {str(report.longrepr)[-300:]}"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported is a failure, too."""
        if report.failed and not self.outcome.failed:
            self.outcome.failed = f"{report.nodeid}: {str(report.longrepr)[-300:]}"


class Unshrunk:
    """A pytest plugin: Hypothesis looks for no smaller example of what it has found, which takes minutes."""

    def pytest_sessionstart(self) -> None:
        """The project's own settings have been loaded, and tests take over what is set before they are imported."""
        settings.register_profile("unshrunk", settings(), phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("unshrunk")


@attrs.frozen
class Wanted:
    """The tests that are to notice a mutant."""

    places: Mapping[str, int]
    """In which order they run."""
    limits: Mapping[str, float]
    """Seconds for each, many times what it takes without any change: who takes longer has noticed an endless loop."""
    seconds: float = LIMIT
    """For all."""


def try_mutant(path: str, code: str, wanted: Wanted) -> Outcome:
    """Run tests, in their order, with other code in place of a module; at most to the first that fails."""
    original = SourceFileLoader.get_code
    there = str(Path(path).resolve())

    def changed(self: SourceFileLoader, name: str) -> CodeType | None:
        return compile(code, there, "exec") if self.path == there else original(self, name)

    def run() -> Outcome:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        watcher = Watcher(wanted.places, wanted.limits)
        with mock.patch.object(SourceFileLoader, "get_code", changed):
            pytest.main(
                [*QUIET, *dict.fromkeys(test.partition("::")[0] for test in wanted.places)],
                plugins=[watcher, Unshrunk()],
            )
        return watcher.outcome

    return forked(run, wanted.seconds) if wanted.places else Outcome()


@attrs.define(eq=False)
class Collected:
    """A pytest plugin: nothing is run of what is collected, but something is done with it."""

    use: Callable[[pytest.Session], None]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Use it."""
        self.use(session)
        return True


def with_collected(folders: Sequence[str], use: Callable[[pytest.Session], None]) -> None:
    """Collect all tests in this process."""
    pytest.main([*QUIET, *folders], plugins=[Collected(use), Unshrunk()])


def try_replaced(session: pytest.Session, path: str, codes: dict[Name, CodeType], wanted: Wanted) -> Outcome:
    """Run collected tests, in their order, with other code in the functions of a module; as `try_mutant`."""

    def run() -> Outcome:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        watcher = Watcher(wanted.places, wanted.limits)
        watcher.pytest_collection_modifyitems(session.items)
        session.config.pluginmanager.register(watcher)
        replace(path, codes)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if watcher.outcome.failed:
                break
        return watcher.outcome

    return forked(run, wanted.seconds) if wanted.places else Outcome()


def trace(folders: list[str], sources: list[str], lines: Path, seconds: Path) -> Outcome:
    """Run all tests once; note which lines each of them reaches, and how long it takes."""

    def run() -> Outcome:
        traced = coverage.Coverage(str(lines), source=sources, config_file=False)
        traced.start()
        watcher = Watcher(on_test=traced.switch_context)
        pytest.main([*QUIET, *folders], plugins=[watcher, Unshrunk()])
        traced.stop()
        traced.save()
        seconds.write_text(json.dumps(watcher.seconds))
        return watcher.outcome

    return forked(run, 3 * LIMIT)


def forked(run: Callable[[], Outcome], seconds: float) -> Outcome:
    """Call a function in a process of its own, for so long at most."""
    for module in BESIDE:
        importlib.import_module(module)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _be_child(run, writing)
    os.close(writing)
    deadline, late = time.monotonic() + seconds, False
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if late := time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.05)
    with os.fdopen(reading, "rb") as pipe:
        fields: dict[str, Any] = json.loads(pipe.read() or b"{}")
    if fields:
        return Outcome(**fields)
    return Outcome(UNFINISHED if late else f"SIG: ended by itself with status {ended[1]}", 1)


def _be_child(run: Callable[[], Outcome], writing: int) -> None:
    """Tell the parent how it went; never return."""
    try:
        os.setsid()
        structlog.configure(processors=[_drop])  # tracebacks of a mutant, with all variables, take minutes to format
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.write(writing, json.dumps(attrs.asdict(run())).encode())
        sys.stdout.flush()
    finally:
        os._exit(0)


def _drop(*_: object) -> NoReturn:
    raise structlog.DropEvent
