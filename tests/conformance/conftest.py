"""The control plane under check: `sandbox` always, `real` with `pytest -m real`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.conformance.client import ConformanceClient, ControlPlane, Open, OpenNamespace, connected
from tests.conformance.planes import REAL_MARKS, real, sandbox
from tests.controlplane.fixtures import clusters
from tests.controlplane.interface import ClusterFactory

__all__ = ["clusters"]

REAL = pytest.param("real", marks=REAL_MARKS)


@pytest.fixture(scope="session")
def real_plane(clusters: ClusterFactory) -> Iterator[ControlPlane]:
    """The real control plane all checks share; each works in namespaces of its own."""
    with real(clusters) as plane:
        yield plane


@pytest.fixture(params=[REAL, "sandbox"])
def control_plane(request: pytest.FixtureRequest) -> Open:
    """
    A way to open a client: `async with control_plane() as cluster`.

    The test enters and leaves it itself, because a fixture that yields is torn down in another task than it was
    set up in, which task groups and cancel scopes do not allow.
    """
    shared = request.getfixturevalue("real_plane") if request.param == "real" else None

    @asynccontextmanager
    async def opened() -> AsyncIterator[ConformanceClient]:
        if shared is not None:
            async with connected(shared) as client:
                yield client
            return
        async with sandbox() as plane, connected(plane) as client:
            yield client

    return opened


@pytest.fixture
def namespaced(control_plane: Open) -> OpenNamespace:
    """The same, and a new namespace."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[ConformanceClient, str]]:
        async with control_plane() as cluster:
            yield cluster, await cluster.namespace()

    return opened
