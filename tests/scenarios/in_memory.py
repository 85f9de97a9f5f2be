"""Scenarios on the sandbox: clusters in memory, on a virtual clock, with a network that can be disturbed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime

import anyio
import attrs

from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.jobs import RunnerOptions
from tests.scenarios.fleet import Fleet
from tests.scenarios.plane import Plane
from tests.simulation.daemon import SETTINGS, Daemon
from tests.simulation.objects import find, objects
from tests.simulation.virtual_time import wall_clock
from tests.simulation.weather import Link
from tests.simulation.world import SimCluster, World, kubeconfig


@attrs.define(eq=False)
class MemoryPlane(Plane):
    """A cluster in memory."""

    cluster: SimCluster

    def __attrs_post_init__(self) -> None:
        self.api = self.cluster.api

    def all(self, resource: Resource) -> Iterator[Json]:
        return objects(self.cluster, resource)

    def find(self, resource: Resource, key: ObjectKey) -> Json | None:
        return find(self.cluster, resource, key)

    def user(self, name: str) -> ApiClient:
        return DirectClient(self.cluster.registry, user=name)

    @property
    def link(self) -> Link:
        return self.cluster.link


@attrs.define(eq=False)
class MemoryFleet(Fleet):
    """A fleet in memory."""

    daemon: Daemon = attrs.field(kw_only=True)

    def now(self) -> datetime:
        return wall_clock()()

    async def rest(self, seconds: float = 10.0) -> None:
        await anyio.sleep(seconds)

    def kubeconfig(self, number: int) -> Json:
        return kubeconfig(f"worker{number}", self.worker(number).link.token)

    def kill_daemon(self) -> None:
        self.daemon.kill_now()

    def listen(self, world: World) -> None:
        """Notice every change of an object, for `until`."""

        def changed(row: ResourceType, old: Json | None, new: Json | None) -> None:
            del old
            self.noticed(Resource(GVK(row.group, row.version, row.kind), row.plural, row.namespaced), new)

        for cluster in world.clusters:
            cluster.registry.cluster.listeners.append(changed)


@asynccontextmanager
async def in_memory(
    workers: int = 2, *, settings: ManagerSettings = SETTINGS, kueues: bool = False
) -> AsyncIterator[MemoryFleet]:
    """See `Scenario`; with `kueues` the workers have a Kueue and a job runner of their own."""
    world = World.build(0, [0.0] * workers, 4, RunnerOptions())
    world.bare = frozenset() if kueues else frozenset(world.workers)
    daemon = Daemon(world, pause=(0.1, 0.1), settings=settings)
    async with anyio.create_task_group() as tasks:
        await tasks.start(world.run)
        await tasks.start(daemon.run)
        planes = {name: MemoryPlane(cluster) for name, cluster in world.workers.items()}
        fleet = MemoryFleet(MemoryPlane(world.manager), planes, daemon=daemon)
        fleet.listen(world)
        await fleet.connected()
        yield fleet
        tasks.cancel_scope.cancel()
