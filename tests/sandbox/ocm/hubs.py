"""A hub in memory with some spokes, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs

from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.protocols import ApiClient
from multikueue.sandbox.apiserver import Registry
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.serving.server import ApiServer
from multikueue.sandbox.crds import load_ocm_crds
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.hub import OcmHub
from multikueue.sandbox.ocm.kinds import DECISION, PLACEMENT, SCORE, SET_BINDING
from multikueue.sandbox.ocm.registering import join
from multikueue.sandbox.ocm.spokes import Spoke, spoke_of
from multikueue.testing import InMemoryCluster
from multikueue.testing.waiting import background
from tests.sandbox.kueue.world import wall_clock

NAMESPACE_NAME = "kueue-system"
PATIENCE = 300.0


@attrs.define(eq=False)
class Hubs:
    """The hub, its clusters, and what a test does with them."""

    cluster: InMemoryCluster
    hub: OcmHub
    servers: dict[str, ApiServer]
    spokes: dict[str, Spoke]
    client: ApiClient = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.client = self.cluster.client("admin")

    async def place(self, name: str = "p", **spec: Any) -> Json:
        """Create a Placement."""
        return await self.client.create(PLACEMENT, built(PLACEMENT, name, NAMESPACE_NAME, spec=spec))

    async def change(self, resource: Resource, name: str, patch: Json, *, namespace: str = NAMESPACE_NAME) -> Json:
        """Merge-patch an object."""
        key = ObjectKey(namespace if resource.namespaced else "", name)
        return await self.client.merge_patch(resource, key, patch)

    async def score(self, cluster: str, value: int) -> None:
        """Report how many GPUs a cluster has free."""
        key, status = ObjectKey(cluster, "resource-usage-score"), {"scores": [{"name": "gpu", "value": value}]}
        if await self.cluster.get(SCORE, key.name, cluster) is None:
            await self.client.create(SCORE, built(SCORE, key.name, cluster))
        await self.client.merge_patch(SCORE, key, {"status": status}, subresource="status")

    async def decided(self, *names: str, placement: str = "p") -> Json:
        """Wait until a Placement's status and its decisions name exactly these clusters."""

        def settled(shown: Json) -> bool:
            status = shown.get("status") or {}
            return shown["metadata"]["name"] == placement and status.get("numberOfSelectedClusters") == len(names)

        await self.when(PLACEMENT, settled)
        await self.cluster.when(DECISION, lambda _: self.listed(placement) == list(names), PATIENCE)
        return await self.client.get(PLACEMENT, ObjectKey(NAMESPACE_NAME, placement))

    def listed(self, placement: str = "p") -> list[str]:
        """The clusters that the decisions of a Placement name now."""
        decisions = stored(self.cluster.registry, DECISION)
        return [
            entry["clusterName"]
            for decision in decisions
            if decision["metadata"]["name"].startswith(f"{placement}-decision-")
            for entry in (decision.get("status") or {}).get("decisions") or []
        ]

    async def when(self, resource: Resource, holds: Callable[[Json], bool]) -> Json:
        """Wait until an object of a kind is so."""
        return await self.cluster.when(resource, holds, PATIENCE)


def stored(registry: Registry, resource: Resource) -> list[Json]:
    """All objects of a kind on a server, by name."""
    row = registry.type_of(resource)
    entries = registry.cluster.store.bucket((row.group, row.plural)).objects.values()
    return sorted((entry.obj for entry in entries), key=ObjectKey.of)


@asynccontextmanager
async def hubs(
    *names: str, bind: bool = True, pause: float = 0.0, labels: dict[str, Json] | None = None
) -> AsyncIterator[Hubs]:
    """A hub with these clusters; `bind` binds the set of all to the namespace of Kueue."""
    cluster = InMemoryCluster(clock=wall_clock, crds=load_ocm_crds())
    servers = {name: ApiServer(name, clock=wall_clock, registry=Registry(name, clock=wall_clock)) for name in names}
    spokes = {
        name: spoke_of(server, DirectClient(server.registry), (labels or {}).get(name))
        for name, server in servers.items()
    }
    admin = cluster.client("admin")
    for name in names:
        await admin.create(NAMESPACE, built(NAMESPACE, name))
    await join(admin, NAMESPACE_NAME, spokes)
    if not bind:
        await admin.delete(SET_BINDING, ObjectKey(NAMESPACE_NAME, "global"))
    hub = OcmHub(cluster.client("ocm"), spokes, clock=wall_clock, pause=pause)
    async with background() as tasks:
        tasks.start_soon(cluster.registry.run_collector)
        await tasks.start(hub.run)
        yield Hubs(cluster, hub, servers, spokes)
