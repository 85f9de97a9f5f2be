"""Scenarios on real API servers: a small Kueue on the manager, our daemon's library, and workers that the test plays.

The servers are shared. Workers have no controllers: what happens to a Job there is the scenario's to say.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

import anyio
import attrs

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    EVENT,
    JOB,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.labels import FOREGROUND_FINALIZER
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import finalizers_of
from multikueue.errors import ApiError, NotFound
from multikueue.kube import ClientOptions, Informer, KubeClient
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE, connect_workers, set_up_queues
from tests.controlplane.interface import Cluster, ClusterFactory, together
from tests.integration.permissions import WORKER_RULES, install_chart_permissions
from tests.integration.planes import WORKER_USER, connection, kueue_crds
from tests.scenarios.fleet import Fleet
from tests.scenarios.plane import Plane
from tests.simulation.daemon import SETTINGS

QUOTA: Final = {"cpu": "4", "memory": "64Gi"}
USERS: Final = ("kueue", "runner", "budget", "somebody")
WATCHED: Final = (WORKLOAD, JOB, EVENT, MULTIKUEUE_CLUSTER, ADMISSION_CHECK, SECRET)
EMPTIED: Final = (
    JOB,
    WORKLOAD,
    EVENT,
    LOCAL_QUEUE,
    CLUSTER_QUEUE,
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    MULTIKUEUE_CLUSTER,
)
REST: Final = 1.5
"""Seconds that a rest takes on a real clock at most: events are here within milliseconds."""


@attrs.define(eq=False)
class ServerPlane(Plane):
    """A cluster that is real."""

    clients: Mapping[str, KubeClient]
    caches: Mapping[Resource, Informer]

    def __attrs_post_init__(self) -> None:
        self.api = self.clients["admin"]

    def all(self, resource: Resource) -> Iterator[Json]:
        return self.caches[resource].values()

    def find(self, resource: Resource, key: ObjectKey) -> Json | None:
        return self.caches[resource].get(key)

    def user(self, name: str) -> ApiClient:
        return self.clients[name]


@attrs.define(eq=False)
class ServerFleet(Fleet):
    """A fleet of real clusters."""

    kubeconfigs: Mapping[str, Json] = attrs.field(kw_only=True)

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def rest(self, seconds: float = 10.0) -> None:
        await anyio.sleep(min(seconds, REST))

    def kubeconfig(self, number: int) -> Json:
        return copy.deepcopy(self.kubeconfigs[f"worker{number}"])

    def kill_daemon(self) -> None:
        raise AssertionError("tests/integration kills real daemons")


@attrs.frozen
class Servers:
    """Running API servers."""

    clusters: Mapping[str, Cluster]
    daemon_kubeconfig: Json = attrs.field(repr=False)

    @asynccontextmanager
    async def fleet(self, workers: int = 2, *, settings: ManagerSettings = SETTINGS) -> AsyncIterator[Fleet]:
        """See `Scenario`: with nothing left of the last one."""
        del workers, settings
        async with AsyncExitStack() as stack:
            clients = {
                name: {
                    user: await stack.enter_async_context(
                        KubeClient(connection(cluster.kubeconfig()), name=name, options=ClientOptions(user_agent=user))
                    )
                    for user in ("admin", *USERS)
                }
                for name, cluster in self.clusters.items()
            }
            admins = {name: users["admin"] for name, users in clients.items()}
            kubeconfigs = {
                name: cluster.kubeconfig(WORKER_USER) for name, cluster in self.clusters.items() if name != "manager"
            }
            await _set_up(admins, kubeconfigs)
            planes = {name: ServerPlane(users, {}) for name, users in clients.items()}
            fleet = ServerFleet(
                planes["manager"],
                {name: plane for name, plane in planes.items() if name != "manager"},
                kubeconfigs=kubeconfigs,
            )
            own = await stack.enter_async_context(KubeClient(connection(self.daemon_kubeconfig), name="manager"))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            for plane in planes.values():
                plane.caches = {resource: _cache(plane.api, resource, fleet) for resource in WATCHED}
                for cache in plane.caches.values():
                    tasks.start_soon(cache.run)
            for plane in planes.values():
                for cache in plane.caches.values():
                    await cache.wait_synced()
            for name in kubeconfigs:
                tasks.start_soon(_collect, admins[name])
            await tasks.start(SmallKueue(clients["manager"]["kueue"]).run)
            await tasks.start(_manager(own).run)
            await fleet.connected()
            yield fleet


async def _collect(client: ApiClient) -> None:
    """Let go of what is deleted in the foreground: Jobs there own nothing, and nobody else collects garbage."""
    while True:
        for job in (await client.list(JOB)).items:
            if FOREGROUND_FINALIZER in (held := finalizers_of(job)):
                rest = [finalizer for finalizer in held if finalizer != FOREGROUND_FINALIZER]
                with suppress(ApiError):
                    await client.merge_patch(JOB, ObjectKey.of(job), {"metadata": {"finalizers": rest or None}})
        await anyio.sleep(0.2)


@asynccontextmanager
async def started(clusters: ClusterFactory) -> AsyncIterator[Servers]:
    """Start a manager and two workers with Kueue's definitions and users with few rights."""
    crds = kueue_crds()
    made = {
        name: clusters(name, controller_manager=name == "manager", crds=crds)
        for name in ("manager", "worker1", "worker2")
    }
    async with together(*made.values()):
        for name, cluster in made.items():
            if name != "manager":
                await cluster.service_account(WORKER_USER, WORKER_RULES)
        yield Servers(made, await install_chart_permissions(made["manager"]))


def _manager(client: ApiClient) -> Manager:
    settings = ManagerSettings(namespace=KUEUE_NAMESPACE)
    return Manager(client, AdapterRegistry(BUILTIN), settings, lambda name, config: KubeClient(config, name=name))


def _cache(client: ApiClient, resource: Resource, fleet: Fleet) -> Informer:
    def changed(key: ObjectKey, old: Json | None, new: Json | None) -> None:
        del key, old
        fleet.noticed(resource, new)

    return Informer(client, resource, on_change=changed)


async def _set_up(admins: Mapping[str, KubeClient], kubeconfigs: Mapping[str, Json]) -> None:
    async with anyio.create_task_group() as emptying:
        for client in admins.values():
            emptying.start_soon(_empty, client)
    for name, client in admins.items():
        checks = [CHECK] if name == "manager" else []
        await set_up_queues(client, {"cpu": "8", "memory": "128Gi"} if checks else QUOTA, checks)
    await connect_workers(admins["manager"], kubeconfigs)


async def _empty(client: KubeClient) -> None:
    """Remove what a scenario may have left, whoever holds it."""
    for resource in EMPTIED:
        for obj in (await client.list(resource)).items:
            await _remove(client, resource, obj)
    for obj in (await client.list(SECRET, namespace=KUEUE_NAMESPACE)).items:
        await _remove(client, SECRET, obj)


async def _remove(client: KubeClient, resource: Resource, obj: Json) -> None:
    key = ObjectKey.of(obj)
    with suppress(NotFound):
        if obj["metadata"].get("finalizers"):
            await client.merge_patch(resource, key, {"metadata": {"finalizers": None}})
        await client.delete(resource, key, propagation="Background")
