"""The key of marks is lost between two starts: what runs is not touched, what waits on workers is made again.

Nor is anything touched that another manager of the same origin has there.
"""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from multikueue import PlanSettings
from multikueue.adapters import BUILTIN, AdapterRegistry
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.runtime.manager import Manager, ManagerSettings
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME, connect_workers, set_up_queues
from tests.runtime.fleet import Fleet, kubeconfig, now, server, until

pytestmark = pytest.mark.looptime

OLD: Final = b"the key that is lost"
NEW: Final = b"the key that is made then"


def daemon(fleet: Fleet, key: bytes) -> Manager:
    """A daemon that marks its copies by this key."""
    client = DirectClient(fleet.manager, user="multikueue")
    settings = ManagerSettings(plan=PlanSettings(mark_key=key))
    return Manager(client, AdapterRegistry(BUILTIN), settings, fleet.client, clock=now)


async def hold(fleet: Fleet, *, on: bool) -> None:
    """Let the worker's queue admit nothing, or everything again."""
    patch = {"spec": {"stopPolicy": "Hold" if on else "None"}}
    admin = DirectClient(fleet.workers["worker1"])
    await admin.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), patch)


async def copies(fleet: Fleet) -> list[str]:
    """The UIDs of the copies on the worker."""
    return [
        workload["metadata"]["uid"] for workload in (await DirectClient(fleet.workers["worker1"]).list(WORKLOAD)).items
    ]


async def test_what_runs_runs_on() -> None:
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues():
        async with fleet.running(daemon(fleet, OLD)):
            await fleet.submit()
            await until(fleet.running_on, within=60)
            first, copied = await fleet.running_on(), await copies(fleet)
        async with fleet.running(daemon(fleet, NEW)):
            await anyio.sleep(600)
            assert (await fleet.running_on(), await copies(fleet)) == (first, copied)


async def test_what_waits_is_made_again_and_runs() -> None:
    fleet = await Fleet.connected("worker1")
    await hold(fleet, on=True)
    async with fleet.kueues():
        async with fleet.running(daemon(fleet, OLD)):
            await fleet.submit()
            await until(lambda: copies(fleet), within=60)
            (old,) = await copies(fleet)
        async with fleet.running(daemon(fleet, NEW)):
            await anyio.sleep(120)
            (new,) = await copies(fleet)
            assert new != old
            await hold(fleet, on=False)
            await until(fleet.running_on, within=60)


async def test_what_runs_is_stopped_once_its_workload_is_deleted_though_one_deletion_fails() -> None:
    """The Workload is gone by then, and the key is another one than that of the copies."""
    fleet = await Fleet.connected("worker1")
    async with fleet.kueues():
        async with fleet.running(daemon(fleet, OLD)):
            await fleet.submit()
            await until(fleet.running_on, within=60)
        async with fleet.running(daemon(fleet, NEW)):
            await anyio.sleep(60)
            fleet.workers["worker1"].faults.add(Refuse(500), on=Match(verbs=("delete",), resource="jobs"), times=1)
            key = ObjectKey.of(await fleet.workload())
            await fleet.admin.delete(JOB, ObjectKey("default", "job"))
            await fleet.admin.delete(WORKLOAD, key)
            await anyio.sleep(60)
            assert not await fleet.running_on()
            assert not await copies(fleet)


async def test_two_managers_of_one_origin_leave_each_others_jobs_alone() -> None:
    """It is the same by default. Each deleted what the other ran, as soon as it showed."""
    fleet = await Fleet.connected("worker1")
    other = Fleet(manager=server("manager2"), workers=fleet.workers)
    await set_up_queues(other.admin, {"cpu": "4"}, [CHECK])
    await connect_workers(other.admin, {"worker1": kubeconfig("worker1")})
    async with (
        fleet.kueues(),
        Fleet(other.manager).kueues(),
        fleet.dispatching(daemon(fleet, OLD)),
        other.dispatching(daemon(other, NEW)),
    ):
        await fleet.submit("one")
        await other.submit("two")
        await anyio.sleep(300)
        assert len(await copies(fleet)) == 2
        assert [await side.ready() for side in (fleet, other)] == [True, True]
        assert fleet.requests("worker1", "create", WORKLOAD) == 2
