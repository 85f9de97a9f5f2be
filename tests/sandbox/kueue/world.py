"""One cluster in memory with a small Kueue and a job runner, for tests on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import attrs

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, Resource
from multikueue.protocols import ApiClient
from multikueue.sandbox.apiserver.storage.cluster import WriteOptions
from multikueue.sandbox.apiserver.verbs.patching import MERGE_PATCH
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.apiserver.verbs.updating import Target
from multikueue.sandbox.jobs import RunnerOptions
from multikueue.testing import InMemoryCluster, LoopClock
from tests.sandbox.kueue.objects import cluster_queue, flavor, local_queue

wall_clock = LoopClock(datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC))
"""A wall clock that goes with the loop's virtual one."""
PATIENCE = 300.0
"""Seconds of virtual time after which what should have happened will not."""


@attrs.define(eq=False)
class World:
    """The cluster and who works on it."""

    cluster: InMemoryCluster
    client: ApiClient

    @property
    def registry(self) -> Registry:
        """The server."""
        return self.cluster.registry

    async def create(self, *objects: Json) -> list[Json]:
        """Create objects of any kind."""
        return [self.registry.create_object(obj, manager="tester") for obj in objects]

    async def get(self, resource: Resource, name: str) -> Json | None:
        """An object; namespaced ones in `default`."""
        return await self.cluster.get(resource, name)

    async def patch(self, resource: Resource, name: str, patch: Json) -> None:
        """Merge-patch an object, as the user."""
        target = Target(self.registry.type_of(resource), "default" if resource.namespaced else None, name)
        self.registry.patch(target, MERGE_PATCH, patch, WriteOptions(manager="tester"))

    async def job(self, name: str = "j1") -> Json:
        """A Job."""
        stored = await self.get(JOB, name)
        assert stored is not None
        return stored

    async def workload(self, job: str = "j1") -> Json:
        """The Workload of a Job; the first one owned by it or named after it."""
        listed = await self.client.list(WORKLOAD)
        return next(item for item in listed.items if item["metadata"]["name"].startswith(f"job-{job}-"))

    async def workload_when(self, holds: Callable[[Json], bool], job: str = "j1") -> Json:
        """Wait until the Workload of a Job is so."""
        return await self.when(WORKLOAD, lambda obj: obj["metadata"]["name"].startswith(f"job-{job}-") and holds(obj))

    async def job_when(self, holds: Callable[[Json], bool], name: str = "j1") -> Json:
        """Wait until a Job is so."""
        return await self.when(JOB, lambda obj: obj["metadata"]["name"] == name and holds(obj))

    async def when(self, resource: Resource, holds: Callable[[Json], bool]) -> Json:
        """Wait until some object is so."""
        return await self.cluster.when(resource, holds, PATIENCE)

    async def gone(self, resource: Resource, name: str) -> None:
        """Wait until an object is gone."""
        await self.cluster.gone(resource, name, within=PATIENCE)

    async def settle(self, seconds: float = 1.0) -> None:
        """Let virtual time pass: whatever was due then has been done."""
        await anyio.sleep(seconds)


@asynccontextmanager
async def world(
    *objects: Json,
    cpu: str = "1",
    queues: bool = True,
    runner: bool = True,
    collect: bool = True,
    options: RunnerOptions | None = None,
    pods_ready_timeout: timedelta | None = None,
) -> AsyncIterator[World]:
    """A cluster with a flavor `default`, a ClusterQueue `cq` with that much CPU and a LocalQueue `lq` in `default`.

    Args:
        objects: what else is there before Kueue starts.
        queues: whether to make those queues.
        runner: whether Jobs run.
        collect: whether the server deletes what has lost its owner.
        options: of the runner.
        pods_ready_timeout: see `SmallKueue`.
    """
    cluster = InMemoryCluster(clock=wall_clock, garbage_collection=collect)
    client = cluster.client("kueue")
    for obj in [*([flavor(), cluster_queue(cpu=cpu), local_queue()] if queues else []), *objects]:
        cluster.registry.create_object(obj, manager="tester")
    how = (options or RunnerOptions()) if runner else None
    async with cluster.kueue(runner=how, pods_ready_timeout=pods_ready_timeout):
        yield World(cluster, client)
