"""The doctor in a fleet in memory: the manager as an administrator sees it, workers with the credentials it holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs

from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.errors import Forbidden, NotFound
from multikueue.kube import ClusterConfig
from multikueue.kube.served_kinds import ServedKind
from multikueued.clusters import ClusterClient, Connect
from multikueued.diagnosis.checks.table import CHECKS
from multikueued.diagnosis.findings import Diagnosis, diagnose
from multikueued.doctor.collect import Examination, gather
from multikueued.doctor.probe import ProbeResult
from multikueued.rbac.objects import Account
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.worker_facts import ClockBound
from multikueued.serving.reviews import ACCESS_REVIEW, SELF_REVIEW
from tests.commands.breaking import Person, Refusals, Refusing
from tests.runtime.fleet import Fleet, now

MANAGER = ClusterConfig("https://manager:6443")
RIGHT = ClockBound(-0.5, 0.5)


@attrs.define(eq=False)
class Reviewing(Refusing):
    """A client that answers access reviews by what it refuses."""

    async def create(self, resource: Resource, obj: Json) -> Json:
        if resource not in (ACCESS_REVIEW, SELF_REVIEW):
            return await super().create(resource, obj)
        asked = obj["spec"]["resourceAttributes"]
        plural = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        refused = isinstance(self.refusals.get((asked["verb"], plural)), Forbidden)
        return {**obj, "status": {"allowed": not refused}}

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        self._check("get", resource)
        return await self.inner.get(resource, key)

    async def discover(self, gvk: GVK) -> ServedKind | None:
        await self.inner.list(NAMESPACE, limit=1)  # it answers, and takes the credentials
        return await self._kind_served(gvk)

    async def served(self) -> Set[GVK] | None:
        await self.inner.list(NAMESPACE, limit=1)
        return {gvk for gvk in await self.inner.served() or () if await self._kind_served(gvk) is not None}

    async def _kind_served(self, gvk: GVK) -> ServedKind | None:
        person: Any = self.inner
        kind: ServedKind | None = await person.discover(gvk)
        absent = kind is not None and isinstance(self.refusals.get(("list", kind.plural)), NotFound)
        return None if absent else kind


def visited(fleet: Fleet, refusals: Refusals) -> Connect:
    """Workers as the doctor reaches them: by the kubeconfigs that the manager holds."""

    def connect(name: str, config: ClusterConfig) -> AbstractAsyncContextManager[ClusterClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ClusterClient]:
            server = fleet.workers[config.server.removeprefix("https://").partition(":")[0]]
            user = server.access.user_of(config.token) or "nobody"
            made: Any = Reviewing(Person(server, user=user), refusals)
            yield made

        return opened()

    return connect


async def diagnosed(
    fleet: Fleet,
    refusals: Refusals | None = None,
    *,
    manager: Refusals | None = None,
    tell: Callable[[str], None] = lambda text: None,
    clock: ClockBound = RIGHT,
    connect: Connect | None = None,
) -> Diagnosis:
    """What `multikueue doctor` says.

    Args:
        fleet: the clusters.
        refusals: what workers refuse.
        manager: what the manager refuses.
        tell: is told what takes long.
        clock: of workers, beside this machine's, which is the manager's.
        connect: reaches workers in another way.
    """

    async def measure(config: ClusterConfig) -> ProbeResult:
        return ProbeResult(0.01, RIGHT if config is MANAGER else clock)

    client: Any = Reviewing(Person(fleet.manager), manager or {})
    reach = connect or visited(fleet, refusals or {})
    request = Examination(MANAGER, "kueue-system", None, Account("kueue-system", "multikueue"), reach, measure, tell)
    return diagnose(await gather(client, request, now()), CHECKS)


def named(diagnosis: Diagnosis, id: str) -> Finding:
    """The finding of that id; fails with all that there are."""
    by_id = {finding.id: finding for finding in diagnosis.findings}
    assert id in by_id, diagnosis
    return by_id[id]
