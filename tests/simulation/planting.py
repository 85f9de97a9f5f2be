"""`python -m tests.simulation.planting BUG=TEST ...`: run tests with their bugs in place; tell which fail.

All in one process: what takes long is the imports.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

import attrs
import pytest

from tests.dashboard.page_mutations import PAGE
from tests.simulation.choosing_mutations import RULES
from tests.simulation.planted import PLANTED

BUGS = {**PLANTED, **RULES, **PAGE}
"""Each has a unit test that sees it."""


@attrs.define(eq=False)
class Failures:
    """A pytest plugin that notes what fails."""

    tests: list[str] = attrs.field(factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure of the test itself."""
        if report.failed and report.when == "call":
            self.tests.append(report.nodeid)


def failures(bug: str, test: str) -> list[str]:
    """The tests that fail with a bug in place."""
    noted = Failures()
    with BUGS[bug](), contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["-q", "--assert=plain", "-p", "no:cacheprovider", test], plugins=[noted])
    return noted.tests


if __name__ == "__main__":
    pairs = [argument.split("=", 1) for argument in sys.argv[1:]]
    sys.stdout.write(json.dumps({bug: failures(bug, test) for bug, test in pairs}) + "\n")
