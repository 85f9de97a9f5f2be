"""A fleet whose manager shows the pods of runs, on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import attrs

from multikueue.core.model.kinds import POD, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.protocols import ApiClient
from multikueue.runtime.manager import Manager
from multikueue.sandbox import RunnerOptions
from multikueue.sandbox.apiserver import DirectClient
from multikueue.testing import until
from multikueued.mirror_names import MIRROR
from multikueued.mirrors.node import NODE
from multikueued.mirrors.part import Guard, MirrorOptions, unguarded
from multikueued.reports.worker_facts import ShownPods
from multikueued.settings.config import Settings
from multikueued.settings.sections import MirrorPodSettings
from tests.runtime.fleet import Fleet

LONG = RunnerOptions(minimum=1e6, maximum=1e6, trap=1.0)
"""Jobs that run for the whole test, with pods."""
ON = Settings(namespace="kueue-system", mirror_pods=MirrorPodSettings(logs=True, address="10.0.0.7"))
"""The daemon's settings."""
OFF = attrs.evolve(ON, mirror_pods=MirrorPodSettings())


async def version_of(_client: ApiClient) -> str:
    """The version of a manager."""
    return "v1.36.3"


@attrs.define(eq=False)
class Shown:
    """What a test asks of such a fleet."""

    fleet: Fleet
    refused: list[str] = attrs.field(factory=list)
    """Reasons, in the order in which pods were not shown."""
    counted: Callable[[], Mapping[str, ShownPods]] = attrs.field(default=dict, init=False)
    """What the daemon counts, by worker."""

    def manager(
        self, settings: Settings = ON, lost_timeout: float = 900.0, guard: Guard = unguarded, **more: Any
    ) -> Manager:
        """A manager; `mirrors` is who writes them."""
        mirrors = DirectClient(self.fleet.manager, user="mirrors")
        options = MirrorOptions(
            settings,
            lambda: nullcontext(mirrors),
            b"",
            version_of,
            guard=guard,
            refused=self.refused.append,
            shown=partial(setattr, self, "counted"),
        )
        return self.fleet.build(lost_timeout, parts=[options.part], **more)

    async def mirrors(self) -> list[Json]:
        """The mirrors on the manager."""
        return (await self.fleet.admin.list(POD, label_selector=MIRROR)).items

    async def pods(self, worker: str = "worker1") -> list[Json]:
        """The pods on a worker."""
        return (await DirectClient(self.fleet.workers[worker]).list(POD)).items

    async def count(self, wanted: int, within: float = 90.0) -> list[Json]:
        """Wait until there are so many mirrors, all of them written to."""

        async def so_many() -> bool:
            mirrors = await self.mirrors()
            return len(mirrors) == wanted and all("multikueue.dev/mirror-proof" in str(mirror) for mirror in mirrors)

        await until(so_many, within)
        return await self.mirrors()

    async def nodes(self) -> list[str]:
        """The names of the manager's Nodes."""
        return [name_of(node) for node in (await self.fleet.admin.list(NODE)).items]

    async def write(self, pod: Json, worker: str = "worker1", **status: Any) -> None:
        """Write the status of a pod on a worker, as its kubelet does."""
        there = DirectClient(self.fleet.workers[worker])
        await there.merge_patch(POD, ObjectKey.of(pod), {"status": status}, subresource="status")

    async def evict(self) -> None:
        """Have the only Workload evicted on the manager."""
        workload = await self.fleet.workload()
        await self.fleet.admin.merge_patch(WORKLOAD, ObjectKey.of(workload), {"spec": {"active": False}})

    def writes(self, verb: str) -> int:
        """How many requests were sent for mirrors."""
        counted = self.fleet.manager.access.requests.items()
        return sum(n for (user, seen, what), n in counted if user == "mirrors" and seen == verb and "pods" in str(what))


async def prepared(fleet: Fleet) -> Shown:
    """A fleet whose manager knows who writes mirrors."""
    assert fleet.manager.tokens is not None
    fleet.manager.tokens["mirrors-token"] = "mirrors"
    return Shown(fleet)


@asynccontextmanager
async def showing(
    *workers: str, settings: Settings = ON, cpu: int = 4, jobs: RunnerOptions = LONG
) -> AsyncIterator[Shown]:
    """Run Kueues and a manager that shows pods."""
    shown = await prepared(await Fleet.connected(*(workers or ("worker1",)), cpu=cpu))
    async with shown.fleet.kueues(jobs), shown.fleet.dispatching(shown.manager(settings)):
        yield shown
