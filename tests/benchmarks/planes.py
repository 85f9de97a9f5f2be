"""Control planes to measure on: real ones, or the sandbox's API servers in processes of their own."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, Protocol

import anyio
import attrs

from multikueue.core.model.names import Json
from tests.benchmarks.audit import POLICY, AuditLog
from tests.benchmarks.children import Child, child
from tests.benchmarks.components import COMPONENTS, Requests
from tests.benchmarks.kinds import definitions
from tests.controlplane.cluster import ControlPlane
from tests.integration.planes import kueue_crds

Kind = Literal["real", "sandbox"]

_STARTS_AT_A_TIME = 4
_ALL_RULES: list[Json] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]


class Plane(Protocol):
    """One running cluster."""

    @property
    def name(self) -> str:
        """`manager`, `worker1`, ..."""

    def kubeconfig(self, component: str) -> Json:
        """The kubeconfig of one component."""

    def pids(self) -> Mapping[str, int]:
        """Its processes, by what they are."""

    async def requests(self) -> Requests:
        """How many requests it has had so far."""

    async def copy(self, texts: Sequence[Sequence[str]]) -> bool:
        """Store more objects like two that are there, see `sandbox_server.copy`; return whether it can."""


@attrs.frozen(eq=False)
class SandboxPlane:
    """An API server of the sandbox; it counts its requests itself."""

    name: str
    server: Child

    def kubeconfig(self, component: str) -> Json:
        """See `Plane`."""
        config: Json = self.server.ready["kubeconfigs"][component]
        return config

    def pids(self) -> Mapping[str, int]:
        """See `Plane`."""
        return {"apiserver": self.server.pid}

    async def requests(self) -> Requests:
        """See `Plane`."""
        answer = await self.server.ask(tell="requests")
        return Requests({(user, verb, resource): count for user, verb, resource, count in answer["requests"]})

    async def copy(self, texts: Sequence[Sequence[str]]) -> bool:
        """See `Plane`."""
        await self.server.ask(do="copy", texts=texts)
        return True


@attrs.frozen(eq=False)
class RealPlane:
    """etcd and kube-apiserver; the audit log counts the requests."""

    name: str
    cluster: ControlPlane
    log: AuditLog

    def kubeconfig(self, component: str) -> Json:
        """See `Plane`."""
        return self.cluster.kubeconfig(component)

    def pids(self) -> Mapping[str, int]:
        """See `Plane`."""
        return self.cluster.pids()

    async def requests(self) -> Requests:
        """See `Plane`."""
        return await anyio.to_thread.run_sync(self.log.count)

    async def copy(self, texts: Sequence[Sequence[str]]) -> bool:
        """See `Plane`."""
        del texts
        return False


@asynccontextmanager
async def started(kind: Kind, workers: int, kinds: int = 1) -> AsyncIterator[tuple[Plane, list[Plane]]]:
    """Start a manager and workers that serve so many kinds of jobs, a few at a time; they end with the block."""
    names = ["manager", *(f"worker{number}" for number in range(1, workers + 1))]
    planes: dict[str, Plane] = {}
    crds = definitions(kinds)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        limiter = anyio.CapacityLimiter(_STARTS_AT_A_TIME)

        async def start(name: str) -> None:
            async with limiter:
                make = _real(name, folder, crds) if kind == "real" else _sandbox(name, crds)
                planes[name] = await stack.enter_async_context(make)

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(start, name)
        yield planes["manager"], [planes[name] for name in names[1:]]


@asynccontextmanager
async def _sandbox(name: str, crds: list[Json]) -> AsyncIterator[Plane]:
    async with child("tests.benchmarks.sandbox_server", {"name": name, "crds": crds}) as server:
        yield SandboxPlane(name, server)


@asynccontextmanager
async def _real(name: str, folder: Path, crds: list[Json]) -> AsyncIterator[Plane]:
    policy, log = folder / "policy.yaml", folder / f"{name}.audit"
    policy.write_text(POLICY)
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={log}")
    async with ControlPlane(name, crds=[*kueue_crds(), *crds], apiserver_flags=flags) as cluster:
        async with anyio.create_task_group() as tasks:
            for component in COMPONENTS:
                tasks.start_soon(cluster.service_account, component, _ALL_RULES)
            account = {"namespace": "default", "name": "default"}  # of pods; no controller manager makes it here
            tasks.start_soon(cluster.admin.apply, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        yield RealPlane(name, cluster, AuditLog(log))
