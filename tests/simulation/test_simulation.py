"""Some seeds run with the other tests; `nox -s simulation` runs many."""

from __future__ import annotations

import pytest

from tests.simulation.simulating import simulate


@pytest.mark.parametrize("seed", range(6))
def test_a_fleet_keeps_its_promises_through_a_bad_week(seed: int) -> None:
    """No job on two reachable clusters, none run again, no orphan, nothing of others touched, no secret told."""
    run = simulate(seed)

    assert not run.broken, "\n".join([*run.history, run.broken])


def test_a_seed_repeats() -> None:
    """A failure that cannot be replayed cannot be fixed."""
    assert simulate(3) == simulate(3)
