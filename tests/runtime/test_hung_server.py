"""A worker's API server that hangs, over HTTP; the times are a fiftieth of the real ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import orjson
import pytest

from multikueue.core.machinery import liveness
from multikueue.core.model.names import GVK, ClusterName, Resource
from multikueue.kube import ClusterConfig, KubeClient, parse_worker_kubeconfig
from multikueue.protocols import ApiClient
from multikueue.runtime.workers import probe
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Hang, Match
from tests.runtime.fleet import Fleet, is_active, until

NAMESPACES = Resource(GVK("", "v1", "Namespace"), "namespaces", namespaced=False)
CALLS = Match(verbs=("get", "list", "create", "update", "patch", "delete"), user="multikueue")


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "PROBE_EVERY", liveness.PROBE_EVERY / 50)
    monkeypatch.setattr(probe, "PROBE_DEADLINE", liveness.PROBE_DEADLINE / 50)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Fleet, ApiServer]]:
    """A manager that is connected to worker1 over HTTP, where nothing happens."""
    fleet = await Fleet.connected("worker1")
    async with fleet.workers["worker1"] as server:

        def connect(name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
            del config  # Fleet's kubeconfigs name no real server
            return KubeClient(parse_worker_kubeconfig(orjson.dumps(server.kubeconfig("multikueue"))), name=name)

        async with fleet.dispatching(fleet.build(connect=connect)):
            yield fleet, server


async def test_a_server_that_accepts_connections_and_says_nothing_is_lost() -> None:
    async with connected() as (fleet, server):
        server.faults.partition("hang")
        await until(is_active(fleet, status="False"))
        assert "no answer to anything" in (await fleet.active())["message"]


async def test_a_server_whose_storage_hangs_is_lost_though_it_says_that_it_lives() -> None:
    """The streams stay open, and its own health is fine: it does not ask the storage for that."""
    async with connected() as (fleet, server):
        server.faults.add(Hang(), on=CALLS)
        await until(is_active(fleet, status="False"))
        assert "no answer to anything" in (await fleet.active())["message"]
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig("multikueue")))
        async with KubeClient(config, name="worker1") as client:
            assert await client.discover(GVK("kueue.x-k8s.io", "v1beta2", "Workload")) is not None


async def test_a_probe_reads_one_object_of_one_page() -> None:
    """Without a selector: with one the storage may read all of them to find it."""
    fleet = Fleet.of("worker1")
    async with fleet.workers["worker1"] as server:
        admin = DirectClient(server)
        await admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}})
        config = parse_worker_kubeconfig(orjson.dumps(server.kubeconfig("multikueue")))
        async with KubeClient(config, name="worker1") as client:
            before = server.requests["multikueue", "list", str(NAMESPACES)]
            listed = await client.list(NAMESPACES, limit=1)
            assert len(listed.items) == 1
            assert server.requests["multikueue", "list", str(NAMESPACES)] - before == 1
