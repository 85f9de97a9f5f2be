"""Every row of `adversity.DRAWS` happens in some run, and the fleet bears it."""

from __future__ import annotations

import pytest

from tests.simulation.adversity import DRAWS
from tests.simulation.simulating import simulate

pytestmark = pytest.mark.timeout(300)  # a seed takes 2 to 25 s, and twice that beside other work


SEED = 3
"""All kinds run in it."""


@pytest.mark.gate
@pytest.mark.parametrize("name", DRAWS)
def test_a_fleet_bears_each_of_them(name: str) -> None:
    run = simulate(SEED, extra=(name,))

    assert any(line.endswith(f" {name}") for line in run.history), "it happens"
    assert not run.broken, "\n".join([*run.history, run.broken])
