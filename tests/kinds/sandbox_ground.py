"""A ground in memory, on the loop's clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio

from multikueue import PlanSettings
from multikueue.adapters import AdapterRegistry
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK
from multikueue.core.model.names import ClusterName, Json, ObjectKey
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

_START = datetime(2026, 1, 1, tzinfo=UTC)
_QUOTA = {"cpu": "4", "memory": "4Gi"}


def _now() -> datetime:
    return _START + timedelta(seconds=anyio.current_time())


@asynccontextmanager
async def sandbox_ground(
    case: Case,
    *,
    held: bool = False,
    on_the_way: Faults | None = None,
    at_home: SandboxKind | None = None,
    renamed: Collection[str] = (),
) -> AsyncIterator[Ground]:
    """A manager and two workers that know one kind besides Kueue's own.

    Args:
        case: the kind.
        held: whether pods carry our scheduling gate, and their check becomes Ready.
        on_the_way: what goes wrong on the way from us to workers.
        renamed: the workers that have other names for the namespace and the queue.
        at_home: the kind as the manager's own controller sees it, if that is another.
    """
    crds = [*load_crds(), *definitions([case])]
    registries = {name: _registry(name, crds) for name in ("manager", "worker1", "worker2")}
    ground = Ground(
        Cluster("manager", DirectClient(registries["manager"])),
        {name: Cluster(name, DirectClient(registries[name])) for name in ("worker1", "worker2")},
        held=held,
        renamed=renamed,
    )
    kubeconfigs = {name: kubeconfig(name) for name in ground.workers}
    await ground.set_up({"cpu": "8", "memory": "8Gi"}, _QUOTA, kubeconfigs)
    async with anyio.create_task_group() as tasks:
        for name, registry in registries.items():
            tasks.start_soon(registry.run_collector)
            kueue, runner = (DirectClient(registry, user=user) for user in ("kueue", "manager"))
            await tasks.start(SmallKueue(kueue, clock=_now, kinds=[case.kind], events=False).run)
            seen = at_home if at_home is not None and name == "manager" else case.kind
            jobs = JobRunner(runner, clock=_now, kinds=[seen], events=False)
            await tasks.start(jobs.run)
            if name != "manager":
                ground.runners[name] = jobs
        await tasks.start(ground.follow, [kind.resource for kind in completed([case.kind])])
        await tasks.start(_manager(case, registries, PlanSettings(pods_ready=held), on_the_way).run)
        await until(lambda: _active(ground.manager.client))
        yield ground
        tasks.cancel_scope.cancel()


def _registry(name: str, crds: list[Json]) -> Registry:
    registry = Registry(name, clock=_now)
    for crd in crds:
        registry.create_object(crd)
    return registry


def _manager(case: Case, registries: dict[str, Registry], plan: PlanSettings, on_the_way: Faults | None) -> Manager:
    def connect(_name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            host = config.server.removeprefix("https://").partition(":")[0]
            yield DirectClient(registries[host], user="multikueue", faults=on_the_way)

        return opened()

    settings = ManagerSettings(plan=plan)
    home = DirectClient(registries["manager"], user="multikueue")
    return Manager(home, AdapterRegistry([case.adapter]), settings, connect, clock=_now)


async def _active(client: ApiClient) -> bool:
    return is_true(await client.get(ADMISSION_CHECK, ObjectKey("", CHECK)), "Active")
