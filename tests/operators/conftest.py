"""The control planes that serve the kinds of all controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import anyio
import pytest
import pytest_asyncio

from tests.controlplane.errors import RequestFailed
from tests.controlplane.fixtures import clusters
from tests.controlplane.interface import Cluster, ClusterFactory
from tests.integration.clearing import as_at_first
from tests.integration.planes import Planes, started
from tests.operators.cases import definitions
from tests.operators.table import DEFAULT

__all__ = ["clusters"]


def pytest_configure(config: pytest.Config) -> None:
    """Know the markers also where only this folder's tests are asked for."""
    config.addinivalue_line("markers", "operators: needs real controllers of job kinds (nox -s operators)")
    config.addinivalue_line("markers", "every_operator: one of the further controllers (nox -s operators -- --all)")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_planes(clusters: ClusterFactory, request: pytest.FixtureRequest) -> AsyncIterator[Planes]:
    """One manager and two workers for all tests, with the kinds that they are about.

    A module says so as `OPERATORS`; those of the default set need not. All kinds there are take minutes to be served.
    """
    modules = [item.getparent(pytest.Module) for item in request.session.items]
    wanted = {one.name: one for module in modules for one in getattr(module and module.obj, "OPERATORS", DEFAULT)}
    async with started(clusters, definitions(wanted.values())) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def planes(shared_planes: Planes) -> Planes:
    """One manager and two workers, as they were at first, whatever ran before and however it ended."""
    async with anyio.create_task_group() as tasks:
        for plane in shared_planes.all:
            tasks.start_soon(_without_kubelets, plane)
        await as_at_first(shared_planes)
        tasks.cancel_scope.cancel()
    return shared_planes


async def _without_kubelets(plane: Cluster) -> None:
    """Remove deleted pods for kubelets that do not run any more, until cancelled."""
    while True:
        with suppress(aiohttp.ClientError, RequestFailed, TimeoutError):
            await plane.admin.call("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
        await anyio.sleep(0.5)
