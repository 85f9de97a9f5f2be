"""A hub with OCM and our manager, and spokes that let in only bearers of tokens, with the roles they were given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final

import attrs

from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.inventory.names import CLUSTER_PERMISSION, MANAGED_CLUSTER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.inventory.settings import ConnectionSource, SpokeSettings
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    EVENT,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.errors import NotFound
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.inventory.service import PlacementOptions
from multikueue.runtime.inventory.spokes import Spokes
from multikueue.runtime.inventory_part import InventoryOptions, inventory
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.runtime.parts import Part, PartHost
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Registry
from multikueue.sandbox.apiserver.faults import Call
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.crds import install_ocm
from multikueue.sandbox.jobs import JobRunner
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.ocm.hub import OcmHub
from multikueue.sandbox.ocm.registering import join
from multikueue.sandbox.ocm.spokes import Spoke, spoke_of
from multikueue.sandbox.setting_up import (
    CHECK,
    KUEUE_NAMESPACE,
    admission_check,
    config,
    namespace,
    set_up_queues,
)
from multikueue.testing import job
from multikueue.testing.waiting import background
from multikueued.rbac.rules import on_worker
from multikueued.settings.config import Settings
from tests.runtime.fleet import CRDS, LONG, now, until

RULES: Final = tuple(on_worker(Settings()))
PROFILES: Final = ProfileSettings(
    (AccessProvider("open-cluster-management", builtin="cp-creds", managed_service_account="multikueue"),)
)
USER: Final = "multikueue"
GRANTING: Final = "multikueue-permissions"
"""Who writes ClusterPermissions."""


class Bearer(DirectClient):
    """Whoever bears a token: it is looked at with each request, and roles decide."""

    def __init__(self, server: ApiServer, token: str) -> None:
        super().__init__(server, user="nobody")
        self.token = token

    def _arrive(
        self, verb: str, resource: Resource, key: ObjectKey, subresource: str = ""
    ) -> tuple[ResourceType, Call]:
        token = self.access.issuer.read(self.token)
        if token is None:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        self._user = token[0].name
        return super()._arrive(verb, resource, key, subresource)


@attrs.define(eq=False)
class Chosen:
    """What Placements select, as a test says it."""

    names: set[str] = attrs.field(factory=set)
    known: bool = True

    def selects(self, cluster: str) -> bool:
        """See `Selection`."""
        return cluster in self.names

    def listen(self, on_cluster: Callable[[str], None], on_any: Callable[[], None]) -> None:
        """See `Selection`: `Hub.select` tells."""


@attrs.define(eq=False)
class Hub:
    """The hub, its spokes, and what a test wants to know of them."""

    server: ApiServer
    workers: dict[str, ApiServer]
    spokes: dict[str, Spoke]
    ocm: OcmHub
    chosen: Chosen = attrs.field(factory=Chosen)
    tokens: list[str] = attrs.field(factory=list)
    """With which connections to workers were opened."""
    running: Manager | None = None
    making: Spokes | None = None
    """What makes workers in the manager that was built last."""

    @property
    def admin(self) -> DirectClient:
        """The hub's administrator."""
        return DirectClient(self.server)

    def build(
        self,
        settings: SpokeSettings,
        placement: PlacementOptions | None = None,
        profiles: ProfileSettings | None = PROFILES,
    ) -> Manager:
        """A daemon's worth of library. With settings of placements these select, and not the test."""
        return Manager(
            DirectClient(self.server, user=USER),
            AdapterRegistry(BUILTIN),
            ManagerSettings(profiles=profiles),
            self.connect,
            clock=now,
            parts=[partial(self._part, settings, placement)],
        )

    def _part(self, settings: SpokeSettings, placement: PlacementOptions | None, host: PartHost) -> Part:
        options = InventoryOptions(
            placement or PlacementOptions(),
            spokes=settings,
            selection=self.chosen if placement is None else None,
            permissions=DirectClient(self.server, user=GRANTING),
        )
        part, self.making = inventory(host, options)
        return part

    @asynccontextmanager
    async def managed(self, settings: SpokeSettings) -> AsyncIterator[Manager]:
        """Run a manager meanwhile."""
        manager = self.running = self.build(settings)
        async with background() as tasks:
            await tasks.start(manager.run)
            yield manager
        self.running = None

    def connect(self, _name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        """A client for a worker."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            self.tokens.append(config.token)
            yield Bearer(self.workers[config.server.removeprefix("https://").partition(":")[0]], config.token)

        return opened()

    def select(self, *names: str) -> None:
        """Have a Placement select these clusters, and no others."""
        self.chosen.names = set(names)
        if self.running is not None and self.making is not None:
            self.making.enqueue_all()

    async def list_clusters(self, *names: str) -> None:
        """Have the config list these workers."""
        key = ObjectKey("", CHECK)
        try:
            await self.admin.merge_patch(MULTIKUEUE_CONFIG, key, {"spec": {"clusters": list(names)}})
        except NotFound:
            await self.admin.create(MULTIKUEUE_CONFIG, config(names))
            await self.admin.create(ADMISSION_CHECK, admission_check())

    async def get(self, resource: Resource, name: str, within: str = "") -> Json | None:
        """An object; None if it is not there."""
        try:
            return await self.admin.get(resource, ObjectKey(within, name))
        except NotFound:
            return None

    async def parts(self, name: str = "c1") -> dict[str, Json]:
        """What there is of a spoke, by kind."""
        parts = {
            "worker": await self.get(MULTIKUEUE_CLUSTER, name),
            "secret": await self.get(SECRET, f"multikueue-{name}", KUEUE_NAMESPACE),
            "account": await self.get(MANAGED_SERVICE_ACCOUNT, "multikueue", name),
            "permission": await self.get(CLUSTER_PERMISSION, "multikueue", name),
        }
        return {part: obj for part, obj in parts.items() if obj is not None}

    async def is_active(self, name: str = "c1") -> bool:
        """Whether a worker is there and connected."""
        worker = await self.get(MULTIKUEUE_CLUSTER, name)
        return worker is not None and is_true(worker, "Active")

    async def why_not(self, name: str = "c1") -> str:
        """What a worker's condition says."""
        return str((condition(await self.get(MULTIKUEUE_CLUSTER, name) or {}, "Active") or {}).get("message"))

    async def submit(self, name: str = "job") -> None:
        """Submit a job that goes to a worker and runs for the whole test."""
        await self.admin.create(JOB, job(name))

    async def connect_to(self, name: str) -> None:
        """Have a cluster selected and listed, and wait until its worker is connected."""
        self.select(name)
        await self.list_clusters(name)
        await until(lambda: self.is_active(name))

    async def run_on(self, name: str) -> None:
        """The same, and a job that runs there."""
        await self.connect_to(name)
        await self.submit()
        await until(self.runs)

    async def runs(self) -> dict[str, str]:
        """The UIDs of the jobs that run, by worker."""
        return {
            name: job["metadata"]["uid"]
            for name, worker in self.workers.items()
            for job in (await DirectClient(worker).list(JOB)).items
            if dig(job, "status", "active")
        }

    async def workload(self) -> Json:
        """The only Workload."""
        (workload,) = (await self.admin.list(WORKLOAD)).items
        return workload

    async def events(self) -> list[tuple[str, str, str]]:
        """Kind, reason and note of our events on what belongs to spokes."""
        events = (await self.admin.list(EVENT)).items
        ours = [event for event in events if event["reportingController"] == "multikueue-ocm"]
        return [(event["regarding"]["kind"], event["reason"], event["note"]) for event in ours]

    def asked(self, verb: str, resource: Resource) -> list[str]:
        """Who of us asked the hub for something."""
        counted = self.server.requests
        return [user for (user, seen, what) in counted if (seen, what) == (verb, str(resource)) and USER in user]


def _server(name: str) -> ApiServer:
    made = ApiServer(name, clock=now, registry=Registry(name, clock=now))
    for definition in CRDS:
        made.registry.create_object(definition)
    return made


@asynccontextmanager
async def hub(*names: str, serves_ocm: bool = True) -> AsyncIterator[Hub]:
    """A hub with these spokes, which have joined; `serves_ocm`: whether it has OCM's kinds from the start."""
    server, workers = _server("hub"), {name: _server(name) for name in names}
    for worker in workers.values():
        worker.access.enforce_roles()
    spokes = {
        name: attrs.evolve(spoke_of(worker, DirectClient(worker)), url=f"https://{name}:6443")
        for name, worker in workers.items()
    }
    made = Hub(server, workers, spokes, OcmHub(DirectClient(server, user="ocm"), spokes, clock=now))
    for worker in workers.values():
        await set_up_queues(DirectClient(worker), {"cpu": "4"})
    await set_up_queues(made.admin, {"cpu": "8"}, [CHECK])
    await made.admin.create(NAMESPACE, namespace(KUEUE_NAMESPACE))
    async with background() as tasks:
        for cluster in (server, *workers.values()):
            tasks.start_soon(cluster.registry.run_collector)
            await tasks.start(SmallKueue(DirectClient(cluster, user="kueue"), clock=now, events=False).run)
            await tasks.start(
                JobRunner(DirectClient(cluster, user="runner"), clock=now, options=LONG, events=False).run
            )
        if serves_ocm:
            await start_ocm(made, tasks)
        yield made


async def start_ocm(made: Hub, tasks: Any) -> None:
    """Install OCM's kinds, have the spokes join, and start what OCM runs."""
    install_ocm(made.server.registry)
    for name in made.spokes:
        await made.admin.create(NAMESPACE, namespace(name))
    await join(made.admin, KUEUE_NAMESPACE, made.spokes)
    await tasks.start(made.ocm.run)


def settings(source: ConnectionSource = ConnectionSource.KUBECONFIG, **others: Any) -> SpokeSettings:
    """Settings whose ClusterPermissions grant what the daemon needs."""
    return SpokeSettings(source, **{"rules": RULES, "validity": timedelta(days=1), **others})


__all__ = ["MANAGED_CLUSTER", "hub", "settings", "start_ocm", "until"]
