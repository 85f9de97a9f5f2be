"""A ground in memory, on the loop's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

import anyio

from multikueue import PlanSettings
from multikueue.adapters import AdapterRegistry
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey
from multikueue.core.model.objects import clone, name_of, namespace_of
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient, Faults, Registry
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.jobs import JobRunner
from multikueue.sandbox.kinds import SandboxKind, completed
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import CHECK
from tests.kinds.cases import Case, definitions
from tests.kinds.ground import Cluster, Ground
from tests.runtime.fleet import kubeconfig, until

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_QUOTA = {"cpu": "4", "memory": "4Gi"}


@asynccontextmanager
async def sandbox_ground(
    case: Case,
    *,
    held: bool = False,
    on_the_way: Faults | None = None,
    at_home: SandboxKind | None = None,
    renamed: Collection[str] = (),
    left: Mapping[str, Sequence[Json]] = MappingProxyType({}),
    start: datetime = START,
) -> AsyncIterator[Ground]:
    """A manager and two workers that know one kind besides Kueue's own.

    Args:
        case: the kind.
        held: whether pods carry our scheduling gate, and their check becomes Ready.
        on_the_way: what goes wrong on the way from us to workers.
        renamed: the workers that have other names for the namespace and the queue.
        at_home: the kind as the manager's own controller sees it, if that is another.
        left: what is there on each cluster before anything runs, as an API server had it.
        start: the wall clock then.
    """
    began = anyio.current_time()

    def now() -> datetime:
        return start + timedelta(seconds=anyio.current_time() - began)

    crds = [*load_crds(), *definitions([case])]
    registries = {name: new_registry(name, crds, now) for name in ("manager", "worker1", "worker2")}
    ground = Ground(
        Cluster("manager", DirectClient(registries["manager"])),
        {name: Cluster(name, DirectClient(registries[name])) for name in ("worker1", "worker2")},
        held=held,
        renamed=renamed,
    )
    kubeconfigs = {name: kubeconfig(name) for name in ground.workers}
    await ground.set_up({"cpu": "8", "memory": "8Gi"}, _QUOTA, kubeconfigs)
    for name, objects in left.items():
        _put(registries[name], objects)
    async with anyio.create_task_group() as tasks:
        for name, registry in registries.items():
            tasks.start_soon(registry.run_collector)
            kueue, runner = (DirectClient(registry, user=user) for user in ("kueue", "manager"))
            await tasks.start(SmallKueue(kueue, clock=now, kinds=[case.kind], events=False).run)
            seen = at_home if at_home is not None and name == "manager" else case.kind
            jobs = JobRunner(runner, clock=now, kinds=[seen], events=False)
            await tasks.start(jobs.run)
            if name != "manager":
                ground.runners[name] = jobs
        await tasks.start(ground.follow, [kind.resource for kind in completed([case.kind])])
        await tasks.start(_manager(case, registries, PlanSettings(pods_ready=held), on_the_way, now).run)
        await until(lambda: _active(ground.manager.client))
        yield ground
        tasks.cancel_scope.cancel()


def _put(registry: Registry, objects: Sequence[Json]) -> None:
    """Store objects as they are, with their UIDs."""
    for obj in objects:
        gvk = GVK.of(obj["apiVersion"], obj["kind"])
        row = next(row for row in registry.cluster.types.values() if GVK(row.group, row.version, row.kind) == gvk)
        registry.cluster.put(row, (namespace_of(obj), name_of(obj)), clone(obj), None)


def new_registry(name: str, crds: list[Json], clock: Callable[[], datetime]) -> Registry:
    registry = Registry(name, clock=clock)
    for crd in crds:
        registry.create_object(crd)
    return registry


def _manager(
    case: Case,
    registries: dict[str, Registry],
    plan: PlanSettings,
    on_the_way: Faults | None,
    clock: Callable[[], datetime],
) -> Manager:
    def connect(_name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            host = config.server.removeprefix("https://").partition(":")[0]
            yield DirectClient(registries[host], user="multikueue", faults=on_the_way)

        return opened()

    settings = ManagerSettings(plan=plan)
    home = DirectClient(registries["manager"], user="multikueue")
    return Manager(home, AdapterRegistry([case.adapter]), settings, connect, clock=clock)


async def _active(client: ApiClient) -> bool:
    return is_true(await client.get(ADMISSION_CHECK, ObjectKey("", CHECK)), "Active")
