"""A seed repeats, and what the command answers; the seeds themselves are run by that command."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.simulation.__main__ import SEEDS, main
from tests.simulation.simulating import simulate

pytestmark = pytest.mark.timeout(300)  # a seed takes 2 to 25 s, and twice that beside other work


DIGEST = "import hashlib; from tests.simulation.simulating import simulate; print({digest})"


def test_a_fleet_keeps_its_promises_through_a_bad_week() -> None:
    """No job on two reachable clusters, none run again, no orphan, nothing of others touched, no secret told.

    It is a short seed of those that `nox` and its gate do not run by the command.
    """
    run = simulate(SEEDS + 2)

    assert not run.broken, "\n".join([*run.history, run.broken])


@pytest.mark.parametrize(
    ("asked", "words"),
    [("hiden_workers_are_not_waited_for", '"hidden_workers_are_not_waited_for'), ("q", "there are ")],
)
def test_a_name_that_is_none_is_answered_by_those_like_it(asked: str, words: str) -> None:
    """A hundred names stood in the help and in the error."""
    answer = CliRunner().invoke(main, ["--mutation", asked])
    assert (answer.exit_code, words in answer.output) == (2, True)
    shown = CliRunner().invoke(main, ["--help"]).output
    assert ("--mutation NAME" in shown, len(shown) < 1000, len(answer.output) < 500) == (True, True, True)


def test_a_seed_repeats() -> None:
    """A failure that cannot be replayed cannot be fixed."""
    assert simulate(7) == simulate(7)


@pytest.mark.gate
@pytest.mark.parametrize(("seed", "hash_seed"), [(12, "0"), (14, "4711")])
def test_a_seed_repeats_in_another_process(seed: int, hash_seed: str) -> None:
    """What CI finds happens on a developer's machine as well: nothing hangs on hashes or addresses, as those of the
    scopes that another one cancels (14)."""
    here = hashlib.sha256(repr(simulate(seed)).encode()).hexdigest()
    code = DIGEST.format(digest=f"hashlib.sha256(repr(simulate({seed})).encode()).hexdigest()")
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )

    assert there.stdout.strip() == here
