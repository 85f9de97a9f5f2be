"""`retention.deleteExpiredJobs`: a job whose own controller leaves it alone goes when it says so, and not before."""

from __future__ import annotations

from datetime import timedelta

import anyio
import attrs
import pytest

from multikueue import PlanSettings
from multikueue.adapters import AVAILABLE, AdapterRegistry
from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig, with_value
from multikueue.core.model.workloads import is_finished
from multikueue.errors import NotFound
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION
from multikueue.sandbox.kinds import definition
from multikueue.sandbox.kinds.jobset import KINDS
from tests.adapters.kinds import a_job, row
from tests.runtime.fleet import Fleet, now, until

pytestmark = pytest.mark.looptime

KEY = ObjectKey("default", "mine")
JOBSET = row("JobSet").resource
TTL = 600


@attrs.frozen
class Ended:
    """A JobSet that has run to its end on a worker that keeps its copies for so long."""

    fleet: Fleet
    kept: timedelta = timedelta(0)

    def daemon(self, *, heeds: bool = True) -> Manager:
        rows = [attrs.evolve(kind, deletes_expired=heeds) for kind in AVAILABLE if kind.resource == JOBSET]
        settings = ManagerSettings(plan=PlanSettings(finished_retention=self.kept))
        client = DirectClient(self.fleet.manager, user="multikueue")
        return Manager(client, AdapterRegistry(rows), settings, self.fleet.client, clock=now)

    async def is_there(self) -> bool:
        try:
            await self.fleet.admin.get(JOBSET, KEY)
        except NotFound:
            return False
        return True

    async def subjects_of(self, words: str) -> list[str]:
        """The kinds that an event with these words is about."""
        events = (await self.fleet.admin.list(EVENT)).items
        return sorted(event["regarding"]["kind"] for event in events if words in event["note"])

    async def is_gone(self) -> bool:
        """And its Workload, and its copies."""
        clients = [self.fleet.admin, *map(DirectClient, self.fleet.workers.values())]
        listed = [(await client.list(kind)).items for client in clients for kind in (JOBSET, WORKLOAD)]
        return not any(listed)


async def ran(kept: timedelta = timedelta(0), *, heeds: bool = True) -> Ended:
    """It runs to its end under one daemon."""
    fleet = await Fleet.connected("worker1", "worker2")
    for server in (fleet.manager, *fleet.workers.values()):
        server.registry.create_object(definition(KINDS[0]))
    ended = Ended(fleet, kept)
    made = with_value(a_job(row("JobSet")), ("spec", "ttlSecondsAfterFinished"), TTL)
    made["metadata"] = {
        "name": KEY.name,
        "namespace": KEY.namespace,
        "labels": {"kueue.x-k8s.io/queue-name": "user-queue"},
        "annotations": {DURATION_ANNOTATION: "5s"},
    }
    async with fleet.kueues(kinds=KINDS), fleet.dispatching(ended.daemon(heeds=heeds)):
        await fleet.admin.create(JOBSET, made)

        async def is_over() -> bool:
            listed = (await fleet.admin.list(WORKLOAD)).items
            return bool(listed) and all(map(is_finished, listed))

        await until(is_over, within=60)
        assert dig(await fleet.admin.get(JOBSET, KEY), "status", "terminalState") == "Completed"
    return ended


async def test_it_goes_in_time_though_the_daemon_is_started_anew() -> None:
    ended = await ran()
    async with ended.fleet.kueues(kinds=KINDS), ended.fleet.running(ended.daemon()):
        await anyio.sleep(TTL - 60)
        assert await ended.is_there()
        await until(ended.is_gone, within=90)
    assert await ended.subjects_of("time to live is over") == ["JobSet", "Workload"]


async def test_not_before_what_is_kept_on_its_worker_has_gone() -> None:
    ended = await ran(timedelta(seconds=3 * TTL))
    async with ended.fleet.kueues(kinds=KINDS), ended.fleet.running(ended.daemon()):
        await anyio.sleep(3 * TTL - 60)
        assert await ended.is_there()
        await until(ended.is_gone, within=90)


async def test_it_stays_where_nobody_has_set_that() -> None:
    ended = await ran(heeds=False)
    async with ended.fleet.kueues(kinds=KINDS), ended.fleet.running(ended.daemon(heeds=False)):
        await anyio.sleep(4 * TTL)
        assert await ended.is_there()
    assert await ended.subjects_of("may have no effect") == ["JobSet", "Workload"]
