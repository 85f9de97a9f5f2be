"""The control planes the checks can run against, each as a way to open one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from multikueue.sandbox.apiserver import ApiServer, Registry
from tests.conformance.client import ControlPlane


@asynccontextmanager
async def sandbox() -> AsyncIterator[ControlPlane]:
    """The sandbox's API server, over TLS; bookmarks come fast so that nobody waits for them."""
    registry = Registry("conformance", bookmark_interval=0.05)
    async with ApiServer("conformance", tokens={"admintoken": "admin"}, registry=registry) as server:

        async def compact() -> None:
            server.compact()

        tls = ssl.create_default_context(cadata=server.ca_pem)
        yield ControlPlane(server.url, "admintoken", tls, compact)


PLANES: dict[str, Callable[[], AbstractAsyncContextManager[ControlPlane]]] = {"sandbox": sandbox}
