"""Hundreds of Jobs of four pods on three workers, with the real Job controller on each and on the manager."""

from __future__ import annotations

from contextlib import suppress

import anyio
import pytest

from tests.controlplane.errors import NotReady
from tests.controlplane.interface import ClusterFactory
from tests.controlplane.polling import poll_until
from tests.integration.planes import Planes
from tests.operators.load.ground import loaded, with_a_third
from tests.operators.load.plan import drawn
from tests.operators.results import RESULTS, Walk

pytestmark = [pytest.mark.operators, pytest.mark.timeout(1300), pytest.mark.asyncio(loop_scope="session")]

_SEED = 1
_SECONDS = 900.0
"""How long all may take: on a machine that does nothing else, a quarter of it."""
_CLEAN_SECONDS = 180.0
"""How long the last copies may stay: a machine that stands still for 20 s loses its workers, and asks them again."""


async def test_all_jobs_end_with_the_right_counts_and_nothing_runs_twice(
    planes: Planes, clusters: ClusterFactory, pytestconfig: pytest.Config
) -> None:
    """Some pods fail, some Jobs are evicted by a worker or the manager, some pods by a drained node, some Jobs fail."""
    plans = drawn(_SEED, pytestconfig.getoption("--jobs", default=300))
    async with with_a_third(planes, clusters) as three, loaded(three, plans) as world:
        began = anyio.current_time()
        await world.submit()

        async def over() -> bool:
            return not world.waiting()

        async def cleaned() -> bool:
            return not await world.left()

        with suppress(NotReady):  # what is missing is told with all the rest
            await poll_until(over, seconds=_SECONDS, otherwise="not over", interval=1.0)
            await poll_until(cleaned, seconds=_CLEAN_SECONDS, otherwise="not cleaned", interval=1.0)
        wrong = [*(f"{name} is not over" for name in world.waiting()), *await world.left(), *world.wrong()]
        seconds = anyio.current_time() - began
        RESULTS.walks.append(Walk("job", "under load", seconds, "\n".join(wrong[:5]), world.amounts()))
        assert not wrong, "\n".join(wrong)
