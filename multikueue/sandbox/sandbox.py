"""The sandbox: one manager and some workers, each an API server with a small Kueue and a job runner beside it."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.abc
import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.quantities import thousandths, written
from multikueue.errors import SandboxError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.kubeconfigs.client_configuration import configuration
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.apiserver.direct import DirectClient
from multikueue.sandbox.apiserver.serving.server import ApiServer
from multikueue.sandbox.crds import install_ocm, load_crds
from multikueue.sandbox.jobs import JobRunner, RunnerOptions
from multikueue.sandbox.kinds import KINDS, SandboxKind, completed, define
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.ocm import OcmHub, join, spoke_of
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE, await_workers, connect_workers, set_up_queues
from multikueue.sandbox.tokens import TokenController

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration

USERS: Final = ("admin", "multikueue", "kueue", "kube-controller-manager", "open-cluster-management")
"""Who has a token: a person, the dispatcher, Kueue, the job runner, and what looks after the inventory."""
_OCM: Final = USERS[-1]


@attrs.frozen
class SandboxOptions:
    """What a sandbox is like."""

    quota: Mapping[str, str] = attrs.field(factory=lambda: {"cpu": "4", "memory": "16Gi"})
    """Each worker's. The manager's is that times the number of workers."""
    runner: RunnerOptions = attrs.field(factory=RunnerOptions)
    """How long jobs run and how they end."""
    pods: bool = False
    """Whether jobs of all kinds get pods on the cluster that runs them, for `kubectl logs`."""
    connect: bool = True
    """Whether to create queues everywhere, and on the manager what connects it to the workers."""
    join: bool = True
    """Whether the manager knows the workers; without, there is an AdmissionCheck, and workers are yours to add."""
    roles: bool = False
    """Whether service accounts may only do what RBAC allows them. The sandbox's own users may do everything."""
    ocm: bool = False
    """Whether the manager is a hub of Open Cluster Management, and the workers its ManagedClusters."""
    port: int = 0
    """The manager's port; workers take those after it. 0: any free ones."""


@attrs.define(eq=False)
class SandboxCluster:
    """One cluster of the sandbox."""

    name: str
    server: ApiServer
    runner: JobRunner | None = None
    """What runs its jobs, once the sandbox runs: `runner.node_is_dead = True` is a dead node."""

    @property
    def kubeconfig(self) -> Json:
        """A kubeconfig for a person, as a dictionary."""
        return self.server.kubeconfig("admin")

    def client(self, user: str) -> DirectClient:
        """A client that does without the network, and is known to the server as `user`.

        Raises:
            SandboxError: the cluster has no such user.
        """
        self.server.check_user(user)
        return DirectClient(self.server, user=user)


class Sandbox:
    """A fleet in this process::

        async with Sandbox(workers=2) as sandbox:
            sandbox.manager.kubeconfig
            sandbox.workers["worker1"].kubeconfig

    Enter and leave it in the same task, which a fixture of pytest-asyncio does not.

    Args:
        workers: how many worker clusters; they are called worker1, worker2, ...
        seed: of everything drawn: how long jobs run, uids.
        options: see `SandboxOptions`.
        kinds: the job kinds that Kueue and the job runner know on every cluster. Kinds that are not served get a
            CustomResourceDefinition made from their row.
        crds: CustomResourceDefinitions to create on every cluster, for kinds that shall have their own.
        clock: the wall clock that timestamps are read from.
    """

    def __init__(
        self,
        workers: int = 2,
        *,
        seed: int = 0,
        options: SandboxOptions | None = None,
        kinds: Iterable[SandboxKind] = KINDS,
        crds: Iterable[Json] = (),
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        if workers < 1:
            raise SandboxError("a sandbox needs at least one worker cluster")
        self.options = options or SandboxOptions()
        self.kinds = completed(kinds)
        self._crds = tuple(crds)
        self._seed = seed
        self._clock = clock
        self.manager = self._cluster("manager", 0)
        names = [f"worker{number}" for number in range(1, workers + 1)]
        self.workers = {name: self._cluster(name, number) for number, name in enumerate(names, 1)}
        self.hub: OcmHub | None = None
        """What looks after the inventory, once it runs."""
        self._stack = AsyncExitStack()

    @property
    def clusters(self) -> list[SandboxCluster]:
        """The manager and the workers."""
        return [self.manager, *self.workers.values()]

    async def __aenter__(self) -> Self:
        """Start everything.

        Raises:
            SandboxError: a port is in use.
            StatusError: a definition of `crds` is not valid.
        """
        async with AsyncExitStack() as stack:
            for cluster in self.clusters:
                if self.options.roles:
                    cluster.server.access.enforce_roles()
                await stack.enter_async_context(cluster.server)
                define(cluster.server.registry, self.kinds, (*load_crds(), *self._crds))
            if self.options.ocm:
                install_ocm(self.manager.server.registry)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            if self.options.connect:
                await self._set_up()
            for cluster in self.clusters:
                kueue = SmallKueue(cluster.client("kueue"), clock=self._clock, kinds=self.kinds)
                cluster.runner = JobRunner(
                    cluster.client("kube-controller-manager"),
                    seed=self._seed,
                    clock=self._clock,
                    options=self.options.runner,
                    pods=self.options.pods,
                    kinds=self.kinds,
                )
                await tasks.start(kueue.run)
                await tasks.start(cluster.runner.run)
                await tasks.start(TokenController(cluster.server, cluster.client("kube-controller-manager")).run)
            if self.options.ocm:
                await self._start_hub(tasks)
            self._stack = stack.pop_all()
        return self

    def configuration(self, cluster: str = "manager", user: str = "admin") -> Configuration:
        """A `Configuration` of kubernetes-asyncio for one of the clusters, for as long as the sandbox runs.

        Raises:
            SandboxError: there is no such cluster, or it has no such user.
        """
        server = next((each.server for each in self.clusters if each.name == cluster), None)
        if server is None:
            raise SandboxError(f"no cluster {cluster!r}: there are {', '.join(each.name for each in self.clusters)}")
        config = parse_worker_kubeconfig(json.dumps(server.kubeconfig(user)).encode())
        return configuration(config, Path(self._stack.enter_context(tempfile.TemporaryDirectory())))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def _cluster(self, name: str, number: int) -> SandboxCluster:
        tokens = {secrets.token_urlsafe(24): user for user in USERS}
        port = self.options.port + number if self.options.port else 0
        return SandboxCluster(name, ApiServer(name, port=port, tokens=tokens, clock=self._clock, seed=self._seed))

    async def _start_hub(self, tasks: anyio.abc.TaskGroup) -> None:
        """Open Cluster Management on the manager, with an agent on each worker."""
        spokes = {name: spoke_of(worker.server, worker.client(_OCM)) for name, worker in self.workers.items()}
        client = self.manager.client(_OCM)
        await join(client, KUEUE_NAMESPACE, spokes)
        self.hub = OcmHub(client, spokes, clock=self._clock)
        await tasks.start(self.hub.run)

    async def _set_up(self) -> None:
        total = {
            name: written(name, thousandths(amount) * len(self.workers)) for name, amount in self.options.quota.items()
        }
        for worker in self.workers.values():
            await set_up_queues(worker.client("admin"), self.options.quota)
        administrator = self.manager.client("admin")
        await set_up_queues(administrator, total, [CHECK])
        if not self.options.join:
            await await_workers(administrator)
            return
        kubeconfigs = {name: worker.server.kubeconfig("multikueue") for name, worker in self.workers.items()}
        await connect_workers(administrator, kubeconfigs)
