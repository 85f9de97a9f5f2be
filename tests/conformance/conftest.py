"""The control plane under check."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.conformance.client import ConformanceClient, Open, connected
from tests.conformance.planes import PLANES


@pytest.fixture(params=sorted(PLANES))
def control_plane(request: pytest.FixtureRequest) -> Open:
    """
    A way to open a client: `async with control_plane() as cluster`.

    The test enters and leaves it itself, because a fixture that yields is torn down in another task than it was
    set up in, which task groups and cancel scopes do not allow.
    """
    plane = PLANES[request.param]

    @asynccontextmanager
    async def opened() -> AsyncIterator[ConformanceClient]:
        async with plane() as found, connected(found) as client:
            yield client

    return opened
