"""A manager and workers in memory, and the library's Manager between them; all on the loop's clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import attrs

from multikueue import PlanSettings
from multikueue.adapters import BUILTIN, AdapterRegistry, JobKind
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    EVENT,
    JOB,
    MULTIKUEUE_CLUSTER,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.labels import ELASTIC_ANNOTATION, FOREGROUND_FINALIZER, PRIORITY_CLASS_LABEL, QUEUE_LABEL
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.objects import finalizers_of, name_of
from multikueue.core.model.workloads import check_state, is_finished
from multikueue.kube import ClusterConfig
from multikueue.protocols import ApiClient
from multikueue.runtime.cluster_pool import Connect
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.runtime.parts import PartOf
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.storage.cluster import WriteOptions
from multikueue.sandbox.apiserver.verbs.patching import MERGE_PATCH
from multikueue.sandbox.apiserver.verbs.registry import Registry
from multikueue.sandbox.apiserver.verbs.updating import Target
from multikueue.sandbox.crds import load_crds
from multikueue.sandbox.jobs import JobRunner, RunnerOptions
from multikueue.sandbox.kinds import KINDS, SandboxKind
from multikueue.sandbox.kueue import SmallKueue
from multikueue.sandbox.setting_up import (
    CHECK,
    KUEUE_NAMESPACE,
    LOCAL_QUEUE_NAME,
    cluster_queue,
    connect_workers,
    kubeconfig_secret,
    set_up_queues,
)
from multikueue.testing import LoopClock, job, until
from multikueue.testing.waiting import background

now = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
"""A wall clock that follows the loop's."""
CRDS = load_crds()
LONG = RunnerOptions(minimum=1e6, maximum=1e6)
"""Jobs that run for the whole test."""


def kubeconfig(name: str, token: str = "", *, server: str = "", **cluster: Any) -> Json:
    """A worker's kubeconfig."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server or f"https://{name}:6443", **cluster}}],
        "users": [{"name": "multikueue", "user": {"token": token or f"{name}-token"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "multikueue"}}],
    }


def _collect(registry: Registry, row: ResourceType, _old: Json | None, new: Json | None) -> None:
    """What is deleted in the foreground owns nothing here, and goes. Tests make owners up: they are left alone."""
    if new is not None and FOREGROUND_FINALIZER in finalizers_of(new):
        target = Target(row, new["metadata"].get("namespace"), name_of(new))
        asyncio.get_running_loop().call_soon(_release, registry, target)


def _release(registry: Registry, target: Target) -> None:
    """Take the finalizer off what still has it: it may be gone, as it was written or deleted again meanwhile."""
    entry = registry.cluster.store.get(target.row.group_resource, target.key)
    if entry is not None and FOREGROUND_FINALIZER in (rest := finalizers_of(entry.obj)):
        patch = {"metadata": {"finalizers": [finalizer for finalizer in rest if finalizer != FOREGROUND_FINALIZER]}}
        registry.patch(target, MERGE_PATCH, patch, WriteOptions(manager=None))


def server(name: str) -> ApiServer:
    """A cluster with Kueue's kinds and nothing else."""
    tokens = {f"{user}-of-{name}": user for user in ("admin", "kueue", "runner")} | {f"{name}-token": "multikueue"}
    made = ApiServer(name, tokens=tokens, clock=now)
    made.registry.cluster.listeners.append(partial(_collect, made.registry))
    for definition in CRDS:
        made.registry.create_object(definition)
    return made


@attrs.define(eq=False)
class Fleet:
    """Clusters, and what a test wants to know of them."""

    manager: ApiServer = attrs.field(factory=lambda: server("manager"))
    workers: dict[str, ApiServer] = attrs.field(factory=dict)
    closed: list[str] = attrs.field(factory=list)
    """The tokens of the clients that were closed in order."""
    runners: dict[str, JobRunner] = attrs.field(factory=dict)
    """By cluster, while Kueues run."""

    @classmethod
    def of(cls, *names: str) -> Fleet:
        """A fleet with these workers."""
        return cls(workers={name: server(name) for name in names})

    @classmethod
    async def connected(cls, *names: str, cpu: int = 4, on_manager: int | None = None) -> Fleet:
        """A fleet with these workers, which the manager knows: see `connect`."""
        fleet = cls.of(*names)
        await fleet.connect(cpu, on_manager)
        return fleet

    @property
    def admin(self) -> DirectClient:
        """The manager's administrator."""
        return DirectClient(self.manager)

    async def connect(self, cpu: int = 4, on_manager: int | None = None) -> None:
        """Create the queues everywhere, and on the manager what connects it to the workers.

        Args:
            cpu: the quota of each worker.
            on_manager: the manager's; all of the workers' if nothing else is said.
        """
        quota = cpu * len(self.workers) if on_manager is None else on_manager
        for worker in self.workers.values():
            await set_up_queues(DirectClient(worker), {"cpu": str(cpu)})
        await set_up_queues(self.admin, {"cpu": str(quota)}, [CHECK])
        await connect_workers(self.admin, {name: kubeconfig(name) for name in self.workers})

    def build(
        self,
        lost_timeout: float = 900.0,
        *,
        connect: Connect | None = None,
        client: ApiClient | None = None,
        dependencies: Collection[str] = (),
        kinds: Iterable[JobKind] = BUILTIN,
        parts: Sequence[PartOf] = (),
        **settings: Any,
    ) -> Manager:
        """A daemon's worth of library; `connect` makes other clients for workers than `client`, `client` is another one
        for the manager, `dependencies` are the kinds of what jobs need that are copied, `kinds` those of jobs, and
        `parts` what it does beside."""
        timeout, needed = timedelta(seconds=lost_timeout), frozenset(dependencies)
        plan = PlanSettings(worker_lost_timeout=timeout, dependencies={CHECK: needed} if needed else {})
        return Manager(
            client or DirectClient(self.manager, user="multikueue"),
            AdapterRegistry(kinds),
            ManagerSettings(plan=plan, **settings),
            connect or self.client,
            clock=now,
            parts=parts,
        )

    @asynccontextmanager
    async def running(self, manager: Manager | None = None) -> AsyncIterator[Manager]:
        """Run a manager meanwhile."""
        manager = manager or self.build()
        async with background() as tasks:
            await tasks.start(manager.run)
            yield manager

    @asynccontextmanager
    async def dispatching(self, manager: Manager | None = None) -> AsyncIterator[Manager]:
        """Run a manager meanwhile, from when all workers are active."""
        async with self.running(manager) as running:
            for name in self.workers:
                await until(is_active(self, name))
            yield running

    @asynccontextmanager
    async def kueues(self, jobs: RunnerOptions = LONG, kinds: Sequence[SandboxKind] = KINDS) -> AsyncIterator[None]:
        """Run a Kueue and a job runner on every cluster meanwhile, for these kinds."""
        async with background() as tasks:
            for server in dict.fromkeys((self.manager, *self.workers.values())):  # the manager may be a worker, too
                tasks.start_soon(server.registry.run_collector)
                kueue, client = (DirectClient(server, user=user) for user in ("kueue", "runner"))
                await tasks.start(SmallKueue(kueue, clock=now, events=False, kinds=kinds).run)
                runner = JobRunner(client, clock=now, options=jobs, events=False, kinds=kinds)
                await tasks.start(runner.run)
                self.runners[server.name] = runner
            yield

    def client(self, name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            host = config.server.removeprefix("https://").partition(":")[0]
            server = self.workers[host]
            yield DirectClient(server, user=server.access.user_of(config.token) or "nobody")
            self.closed.append(config.token)

        return opened()

    async def write_secret(self, name: str, document: Json) -> None:
        """Replace the kubeconfig in a worker's Secret."""
        key = ObjectKey(KUEUE_NAMESPACE, f"{name}-secret")
        await self.admin.merge_patch(SECRET, key, {"data": kubeconfig_secret(name, document)["data"]})

    async def rotate(self, name: str, token: str, *, valid: bool = True) -> None:
        """Give a worker's kubeconfig another token."""
        tokens = self.workers[name].tokens
        if valid and tokens is not None:
            tokens[token] = f"multikueue:{token}"
        await self.write_secret(name, kubeconfig(name, token))

    def revoke(self, name: str, token: str) -> None:
        """Have a worker refuse a token; open connections are cut."""
        tokens = self.workers[name].tokens
        if tokens is not None:
            del tokens[token]
        self.workers[name].faults.connections.drop()

    async def active(self, name: str = "worker1") -> Json:
        """The Active condition of a MultiKueueCluster; empty if there is none."""
        return condition(await self.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", name)), "Active") or {}

    async def check(self) -> tuple[str, str, str]:
        """Status, reason and message of the AdmissionCheck."""
        active = condition(await self.admin.get(ADMISSION_CHECK, ObjectKey("", CHECK)), "Active") or {}
        return active.get("status", ""), active.get("reason", ""), active.get("message", "")

    async def quota(self, name: str = "cluster-queue") -> Json:
        """The manager's ClusterQueue."""
        return await self.admin.get(CLUSTER_QUEUE, ObjectKey("", name))

    async def events(self) -> list[tuple[str, str, str]]:
        """Type, reason and note of the events on MultiKueueClusters."""
        events = (await self.admin.list(EVENT)).items
        kept = [event for event in events if event["regarding"]["kind"] == "MultiKueueCluster"]
        return [(event["type"], event["reason"], event["note"]) for event in kept]

    async def submit(
        self,
        name: str = "job",
        *,
        worker: str = "",
        priority: str = "",
        namespace: str = "default",
        pods: int = 1,
        template: Json | None = None,
    ) -> None:
        """Submit a job on the manager that goes to a worker.

        Args:
            name: the job's.
            worker: submit it there instead, as the worker's own users do.
            priority: the name of its WorkloadPriorityClass.
            namespace: the job's.
            pods: how many it has at a time.
            template: more of their spec.
        """
        labels = {QUEUE_LABEL: LOCAL_QUEUE_NAME} | ({PRIORITY_CLASS_LABEL: priority} if priority else {})
        client = DirectClient(self.workers[worker]) if worker else self.admin
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
        await client.create(
            JOB,
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {
                    "suspend": True,
                    "parallelism": pods,
                    "completions": pods,
                    **({} if worker else {"managedBy": "kueue.x-k8s.io/multikueue"}),
                    "template": {"spec": {"restartPolicy": "Never", "containers": [container], **(template or {})}},
                },
            },
        )

    async def elastic(self) -> ObjectKey:
        """Submit a job on the manager whose size may change: one pod of three."""
        made = job("job")
        made["metadata"]["annotations"] = {ELASTIC_ANNOTATION: "true"}
        made["spec"] |= {"parallelism": 1, "completions": 3}
        return ObjectKey.of(await self.admin.create(JOB, made))

    async def running_on(self) -> dict[str, str]:
        """The UIDs of the jobs that run, by worker."""
        running: dict[str, str] = {}
        for name, worker in self.workers.items():
            for listed in (await DirectClient(worker).list(JOB)).items:
                if (listed.get("status") or {}).get("active"):
                    running[name] = listed["metadata"]["uid"]
        return running

    async def workload(self) -> Json:
        """The manager's only Workload."""
        (workload,) = (await self.admin.list(WORKLOAD)).items
        return workload

    async def ready(self) -> bool:
        """Whether our check of that is Ready."""
        return check_state(await self.workload(), CHECK) == "Ready"

    async def finished(self) -> bool:
        """Whether that is finished."""
        return is_finished(await self.workload())

    async def idle(self) -> bool:
        """Whether no job runs on any worker."""
        return not await self.running_on()

    def requests(self, worker: str, verb: str, resource: Resource) -> int:
        """How often we asked a worker for something."""
        counted: Mapping[tuple[str, str, str], int] = self.workers[worker].access.requests
        return sum(
            count
            for (user, seen, what), count in counted.items()
            if user.startswith("multikueue") and (seen, what) == (verb, str(resource))
        )


def is_active(fleet: Fleet, name: str = "worker1", status: str = "True") -> Callable[[], Any]:
    """A condition for `until`."""

    async def holds() -> bool:
        return (await fleet.active(name)).get("status") == status

    return holds


__all__ = ["CHECK", "Fleet", "cluster_queue", "is_active", "kubeconfig", "now", "server", "until"]
