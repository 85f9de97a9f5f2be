"""A fleet in memory with one thing broken, and what `explain` makes of it: it sees the manager alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
import attrs

from multikueue import PlanSettings
from multikueue.adapters import BUILTIN, AdapterRegistry, JobKind
from multikueue.core.model.dependencies import RESOURCES
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.errors import ApiError, NotFound
from multikueue.kube import ClusterConfig
from multikueue.kube.http.requests import LogQuery
from multikueue.kube.served_kinds import ServedKind
from multikueue.protocols import ApiClient, ObjectList
from multikueue.runtime.cluster_pool import Connect
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.setting_up import CHECK
from multikueued.reading.asked import Asked, ReportTarget
from multikueued.remote.explain import gather_explanation
from multikueued.reports.explanation import Explanation
from multikueued.reports.remedies.remedy import Finding
from tests.runtime.fleet import Fleet, now

T = TypeVar("T")
Refusals = Mapping[tuple[str, str], ApiError]
"""By verb and plural."""
Change = Callable[[Fleet], Awaitable[object]]


@attrs.define(eq=False)
class Refusing:
    """A client of a worker that refuses some requests in the words of a real API server."""

    inner: ApiClient
    refusals: Refusals

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def create(self, resource: Resource, obj: Json) -> Json:
        self._check("create", resource)
        return await self.inner.create(resource, obj)

    async def list(self, resource: Resource, **options: Any) -> ObjectList:
        self._check("list", resource)
        return await self.inner.list(resource, **options)

    async def exists(self, resource: Resource, key: ObjectKey) -> bool:
        self._check("get", resource)
        inner: Any = self.inner
        return bool(await inner.exists(resource, key))

    def _check(self, verb: str, resource: Resource) -> None:
        if (error := self.refusals.get((verb, resource.plural))) is not None:
            raise error


def refusing(fleet: Fleet, refusals: Refusals) -> Connect:
    """Clients of workers, all of which refuse the same."""

    def connect(name: ClusterName, config: ClusterConfig) -> AbstractAsyncContextManager[ApiClient]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ApiClient]:
            async with fleet.client(name, config) as client:
                made: Any = Refusing(client, refusals)
                yield made

        return opened()

    return connect


class Person(DirectClient):
    """An operator's client of the manager, without HTTP."""

    async def discover(self, gvk: GVK) -> ServedKind | None:
        """See `KubeClient.discover`."""
        rows = [row for row in self.registry.cluster.types.values() if GVK(row.group, row.version, row.kind) == gvk]
        return ServedKind(rows[0].plural, rows[0].namespaced, frozenset()) if rows else None

    async def part(self, resource: Resource, key: ObjectKey, name: str) -> Json:
        """The sandbox's Kueue has no visibility API."""
        raise NotFound(f"{key}", status=404)

    async def request_token(self, account: ObjectKey, spec: Json) -> Json:
        """Commands that only look ask for none."""
        raise NotImplementedError

    async def pod_log(self, key: ObjectKey, query: LogQuery, *_: Any, **__: Any) -> None:
        """As `request_token`."""
        raise NotImplementedError


def asked_about(job: str) -> Asked:
    """A job of the namespace `default`, as a command line names it."""
    return Asked(job, ReportTarget(ClusterConfig("https://manager"), "default", "kueue-system"))


async def explained(fleet: Fleet, job: str = "job/job") -> Explanation:
    """What `multikueue explain` says; it has the manager's address and no other."""
    explanation = await gather_explanation(Person(fleet.manager), asked_about(job), now())
    assert isinstance(explanation, Explanation)
    return explanation


async def seen_after(
    look: Callable[[Fleet], Awaitable[T]],
    workers: int = 1,
    *,
    refusals: Refusals | None = None,
    before: Change | None = None,
    submit: Change | None = None,
    after: Change | None = None,
    kinds: Sequence[JobKind] = BUILTIN,
    seconds: float = 60.0,
) -> T:
    """Run a fleet and the daemon, break something, submit a job, wait, and look.

    Args:
        look: what is seen then.
        workers: how many.
        refusals: what all workers refuse.
        before: what is done before the daemon and the Kueues run.
        submit: how the job is submitted; else a plain Job.
        after: what is done once the job is at rest.
        kinds: of the daemon's settings.
        seconds: to wait at the end.
    """
    fleet = await Fleet.connected(*(f"worker{number}" for number in range(1, workers + 1)))
    if before is not None:
        await before(fleet)
    daemon = Manager(
        DirectClient(fleet.manager, user="multikueue"),
        AdapterRegistry(kinds),
        ManagerSettings(PlanSettings(dependencies={CHECK: frozenset(RESOURCES)})),
        refusing(fleet, refusals or {}),
        clock=now,
    )
    async with fleet.kueues(), fleet.running(daemon):
        await anyio.sleep(5)
        await (submit(fleet) if submit is not None else fleet.submit())
        await anyio.sleep(5)
        if after is not None:
            await after(fleet)
        await anyio.sleep(seconds)
        return await look(fleet)


def finding(explanation: Explanation, id: str) -> Finding:
    """The finding of that kind; fails with all that there are."""
    by_id = {wrong.id: wrong for wrong in explanation.findings}
    assert id in by_id, (explanation.job, explanation.workers, explanation.findings)
    return by_id[id]


explained_after = partial(seen_after, explained)
"""Run a fleet and the daemon, break something, submit a job, wait, and explain the job."""
