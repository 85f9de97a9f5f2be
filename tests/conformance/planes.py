"""The control planes the checks can run against, each as a way to open one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio.to_thread
import pytest
from anyio.from_thread import start_blocking_portal

from multikueue.sandbox.apiserver import ApiServer, Registry
from tests.conformance.client import ControlPlane
from tests.conformance.objects import definition
from tests.controlplane.cluster import ControlPlane as ChildProcesses
from tests.controlplane.interface import ClusterFactory

REAL_MARKS = (pytest.mark.real, pytest.mark.timeout(180))
"""The marks of a check on the real control plane."""


@asynccontextmanager
async def sandbox(*, garbage_collection: bool = True) -> AsyncIterator[ControlPlane]:
    """The sandbox's API server, over TLS; bookmarks come fast so that nobody waits for them."""
    registry = Registry("conformance", bookmark_interval=0.05, garbage_collection=garbage_collection)
    async with ApiServer("conformance", tokens={"admintoken": "admin"}, registry=registry) as server:

        async def compact() -> None:
            server.compact()

        server.access.enforce_roles()
        tls = ssl.create_default_context(cadata=server.ca_pem)
        yield ControlPlane(server.url, "admintoken", tls, compact)


@contextmanager
def real(factory: ClusterFactory) -> Iterator[ControlPlane]:
    """
    One real control plane, with controllers so that garbage is collected.

    It lives in a thread with an event loop of its own: tests on many loops share it, and a cluster belongs to one.
    """
    with start_blocking_portal() as portal:
        # Widgets are there before the controllers: the garbage collector looks for new kinds only every 30 s.
        cluster = factory("conformance", controller_manager=True, crds=[definition()])
        with portal.wrap_async_context_manager(cluster):

            async def compact() -> None:
                await anyio.to_thread.run_sync(portal.call, cluster.compact)

            tls = ssl.create_default_context(cadata=cluster.ca_pem)
            yield ControlPlane(cluster.url, cluster.token(), tls, compact, accounts="theirs")


@asynccontextmanager
async def real_without_controllers() -> AsyncIterator[ControlPlane]:
    """A real API server alone: nobody but the test writes to it."""
    async with ChildProcesses("fuzz") as cluster:
        tls = ssl.create_default_context(cadata=cluster.ca_pem)
        yield ControlPlane(cluster.url, cluster.token(), tls, cluster.compact, accounts="ours")
