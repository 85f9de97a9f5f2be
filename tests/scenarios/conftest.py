"""Where scenarios run: all of them in memory, the decisive ones also on real API servers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.controlplane.fixtures import clusters
from tests.controlplane.interface import ClusterFactory
from tests.scenarios.fleet import Scenario
from tests.scenarios.in_memory import in_memory
from tests.scenarios.on_servers import Servers, started

__all__ = ["clusters"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A decisive scenario is two tests: one on a virtual clock, and one on real servers, which share a loop."""
    if "scenario" not in metafunc.fixturenames:
        return
    places = [pytest.param("memory", marks=pytest.mark.looptime)]
    if metafunc.definition.get_closest_marker("decisive"):
        marks = [pytest.mark.real, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]
        places.append(pytest.param("servers", marks=marks))
    metafunc.parametrize("scenario", places, indirect=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def servers(clusters: ClusterFactory) -> AsyncIterator[Servers]:
    """One manager and two workers for all scenarios; each one finds them empty."""
    async with started(clusters) as running:
        yield running


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Scenario:
    """Makes the fleet of a scenario."""
    if request.param == "memory":
        return in_memory
    made: Servers = request.getfixturevalue("servers")
    return made.fleet
