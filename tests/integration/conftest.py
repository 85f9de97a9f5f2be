"""The real control planes that all tests of this folder share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import attrs
import pytest
import pytest_asyncio

from multikueue.core.machinery.backoff import CONNECTION_BACKOFF
from multikueue.runtime.workers import informers
from tests.controlplane.fixtures import clusters
from tests.controlplane.interface import ClusterFactory
from tests.integration.clearing import as_at_first
from tests.integration.mirror_stage import AskingKubelets, asking
from tests.integration.planes import Planes, started

__all__ = ["clusters"]


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is away is asked again after half a second, not five. `tests/runtime` proves how long it takes."""
    monkeypatch.setattr(informers, "CONNECTION_BACKOFF", attrs.evolve(CONNECTION_BACKOFF, base=0.5))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_planes(clusters: ClusterFactory) -> AsyncIterator[Planes]:
    """One manager and two workers for all tests."""
    async with started(clusters) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def planes(shared_planes: Planes) -> Planes:
    """One manager and two workers, as they were at first, whatever ran before and however it ended."""
    await as_at_first(shared_planes)
    return shared_planes


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kubelets(clusters: ClusterFactory, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AskingKubelets]:
    """An API server that asks kubelets, for all tests of mirrors' endpoint."""
    del clusters  # it says what is missing where there are no binaries
    async with asking(tmp_path_factory.mktemp("kubelets")) as running:
        yield running
