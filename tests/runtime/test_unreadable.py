"""A worker with more than may be read of it gets no new jobs, and keeps what it runs."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.kube import AnswerLimits
from multikueue.sandbox.apiserver import DirectClient, Match, Reset
from tests.runtime.fleet import Fleet, is_active, until

pytestmark = pytest.mark.looptime

LIMIT: Final = 5
OURS: Final = Match(user="multikueue")
HELD: Final = "example.com/held"
"""A finalizer, so that the objects stay."""


def labelled(resource: Resource, number: int) -> Json:
    """An object of a tenant of the worker with our label on it."""
    metadata = {"name": f"t{number}", "namespace": "default", "labels": {ORIGIN_LABEL: "multikueue"}}
    held = {**metadata, "finalizers": [HELD]}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    if resource == JOB:
        spec: Json = {"suspend": True, "template": template}
    else:
        spec = {"active": False, "podSets": [{"name": "main", "count": 1, "template": template}]}
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, "metadata": held, "spec": spec}


async def flood(fleet: Fleet, resource: Resource) -> None:
    """More of them than may be read of worker1."""
    admin = DirectClient(fleet.workers["worker1"])
    for number in range(LIMIT + 1):
        await admin.create(resource, labelled(resource, number))


async def drain(fleet: Fleet, resource: Resource) -> None:
    """Take our label off them."""
    admin = DirectClient(fleet.workers["worker1"])
    for number in range(LIMIT + 1):
        key = ObjectKey("default", f"t{number}")
        await admin.merge_patch(resource, key, {"metadata": {"labels": {ORIGIN_LABEL: None}, "finalizers": None}})


async def until_told(fleet: Fleet, resource: Resource) -> None:
    """Wait for the condition with the reason."""
    why = f"there are more than {LIMIT} objects"

    async def told() -> bool:
        active = await fleet.active()
        expected = ("True", "Active") if resource == JOB else ("False", "AnswersUnreadable")
        return (active["status"], active["reason"]) == expected and why in str(active["message"])

    await until(told, within=100)


async def goes_on(fleet: Fleet, resource: Resource, first: dict[str, str]) -> None:
    """The next job goes to the other worker; once there is less, all is as before."""
    await fleet.submit("second")

    async def both() -> bool:
        return sorted(await fleet.running_on()) == ["worker1", "worker2"]

    await until(both, within=200)
    assert (await fleet.running_on())["worker1"] == first["worker1"]
    await drain(fleet, resource)

    async def connected() -> bool:
        return str((await fleet.active())["message"]) == "Connected"

    await until(connected, within=200)
    assert (await fleet.running_on())["worker1"] == first["worker1"]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("resource", [WORKLOAD, JOB], ids=["workloads", "jobs"])
async def test_it_gets_nothing_new_and_what_it_runs_stays(resource: Resource, restarted: bool) -> None:
    """Any tenant of the worker can bring this about, so no loss begins: an hour later, and after a restart."""
    fleet = Fleet.of("worker1", "worker2")
    await fleet.connect()
    worker2 = fleet.workers["worker2"]
    async with fleet.kueues():
        worker2.faults.add(Reset(), on=OURS)
        async with fleet.running(fleet.build(worker_limits=AnswerLimits(list_objects=LIMIT))):
            await fleet.submit("first")
            await until(fleet.running_on, within=200)
            first = await fleet.running_on()
            assert list(first) == ["worker1"]
            worker2.faults.clear()
            await until(is_active(fleet, "worker2"), within=200)
            await flood(fleet, resource)
            await until_told(fleet, resource)
            if not restarted:
                await anyio.sleep(3600)
                assert await fleet.running_on() == first
                await goes_on(fleet, resource, first)
        if restarted:
            async with fleet.running(fleet.build(worker_limits=AnswerLimits(list_objects=LIMIT))):
                await anyio.sleep(3600)
                await until_told(fleet, resource)
                assert await fleet.running_on() == first
                await goes_on(fleet, resource, first)
    lost = [event for event in await fleet.events() if event[1] == "ClusterLost"]
    assert len(lost) <= 1, "worker2 was, for a while"
