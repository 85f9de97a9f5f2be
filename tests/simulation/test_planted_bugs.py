"""Each planted bug is seen by the unit test that a table in docs/testing.md names; `test_mutations` has the seeds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.planting import BUGS

ROOT: Final = Path(__file__).parents[2]
ROW: Final = re.compile(r"^\| `(\w+)` \| [^|]+ \| `(\S+::\S+)` \|", re.MULTILINE)
NAMED: Final = dict(ROW.findall((ROOT / "docs/testing.md").read_text()))


def test_the_tables_have_every_planted_bug() -> None:
    """In the order of the review, and of the rules."""
    assert list(NAMED) == list(BUGS)


@pytest.mark.gate
@pytest.mark.timeout(300)
def test_a_unit_test_sees_each_of_them() -> None:
    """The tests pass as they stand, with all the others; with its bug in place each fails."""
    pairs = [f"{bug}=tests/{test}" for bug, test in NAMED.items()]
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.planting", *pairs],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=True,
    )
    failed: dict[str, list[str]] = json.loads(run.stdout.splitlines()[-1])

    seen = {bug for bug, test in NAMED.items() if any(failure.startswith(f"tests/{test}") for failure in failed[bug])}
    assert seen == set(BUGS)
