"""The real control planes that all tests of this folder share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.controlplane.fixtures import clusters
from tests.controlplane.interface import ClusterFactory
from tests.integration.planes import Planes, started

__all__ = ["clusters"]


def pytest_configure(config: pytest.Config) -> None:
    """Know the marker also where only this folder's tests are asked for."""
    config.addinivalue_line("markers", "real: needs a real control plane (tests/controlplane)")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def planes(clusters: ClusterFactory) -> AsyncIterator[Planes]:
    """One manager and two workers for all tests: each test has Jobs of its own, and leaves all servers well."""
    async with started(clusters) as running:
        yield running
