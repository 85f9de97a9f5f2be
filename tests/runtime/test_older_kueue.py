"""Workers whose Kueue is older than the manager's: what they lack is seen, said, and reckoned with."""

from __future__ import annotations

import anyio
import attrs
import pytest

from multikueue import PlanSettings
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.worker_kueue import GATES, KUEUE, Version
from multikueue.runtime.manager import Manager
from multikueue.runtime.workers.kueue_check import CONTROLLER, INTERVAL
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.direct import OPENAPI
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.setting_up import namespace
from tests.kueue_versions import definitions_of, deployment_of
from tests.runtime.fleet import CRDS, Fleet, is_active, until

pytestmark = pytest.mark.looptime


async def serve(fleet: Fleet, name: str, version: Version) -> None:
    """Have a worker serve the definitions of a version of Kueue."""
    admin = DirectClient(fleet.workers[name])
    (crd,) = (
        definition for definition in definitions_of(version, CRDS) if definition["spec"]["names"]["kind"] == "Workload"
    )
    key = ObjectKey("", crd["metadata"]["name"])
    stored = await admin.get(CUSTOM_RESOURCE_DEFINITION, key)
    await admin.replace(CUSTOM_RESOURCE_DEFINITION, {**stored, "spec": crd["spec"]})


async def said(fleet: Fleet, name: str = "worker1") -> tuple[str, str]:
    """What the MultiKueueCluster says of the worker's Kueue: status and message."""
    cluster = condition(await fleet.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", name)), KUEUE) or {}
    return cluster.get("status", ""), cluster.get("message", "")


async def test_what_a_worker_drops_is_said_until_it_is_upgraded() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    await serve(fleet, "worker1", (0, 15))
    async with fleet.running():
        await until(is_active(fleet, "worker2"))
        await anyio.sleep(5.0)
        status, message = await said(fleet)
        assert status == "False"
        assert message.startswith(f"Kueue there lacks {GATES} (it preempts at once")
        assert await said(fleet, "worker2") == ("", "")

        await serve(fleet, "worker1", (0, 19))
        await anyio.sleep(INTERVAL + 5.0)
        assert await said(fleet) == ("True", "Kueue there")


def orchestrating(fleet: Fleet) -> Manager:
    """A manager with orchestrated preemption."""
    manager = fleet.build()
    return attrs.evolve(
        manager, settings=attrs.evolve(manager.settings, plan=PlanSettings(orchestrated_preemption=True))
    )


def copies_made(fleet: Fleet, name: str) -> int:
    return fleet.requests(name, "create", WORKLOAD)


async def test_an_older_worker_is_asked_when_no_other_has_room() -> None:
    """The first two jobs fill worker2."""
    fleet = await Fleet.connected("worker1", "worker2", cpu=1, on_manager=4)
    await serve(fleet, "worker1", (0, 15))
    async with fleet.kueues(), fleet.dispatching(orchestrating(fleet)):
        await anyio.sleep(5.0)
        for number in range(3):
            await fleet.submit(f"job-{number}")
            await anyio.sleep(20.0)
        assert sorted(await fleet.running_on()) == ["worker1", "worker2"]
        assert copies_made(fleet, "worker1") == 1


async def test_a_worker_that_does_not_publish_its_schemas_shows_by_its_answers_what_it_drops() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    await serve(fleet, "worker1", (0, 15))
    fleet.workers["worker1"].faults.add(Refuse(403), on=Match(resource=OPENAPI))
    async with fleet.running(orchestrating(fleet)):
        await until(is_active(fleet, "worker1"))
        assert await said(fleet) == ("", "")
        await fleet.submit()
        async with fleet.kueues():
            await until(lambda: copies_made(fleet, "worker1"))
            await anyio.sleep(5.0)
        assert (await said(fleet))[0] == "False"


@pytest.mark.parametrize(("version", "name"), [((0, 17), "worker2"), ((0, 19), "worker1")])
async def test_a_name_that_a_label_cannot_hold_goes_where_it_is_read(version: Version, name: str) -> None:
    """Kueue 0.17 would not find the Workload of the job, and run it beside that."""
    fleet = await Fleet.connected("worker1", "worker2")
    for server, its in (("worker1", version), ("worker2", (0, 18))):
        fleet.workers[server].registry.create_object(namespace(CONTROLLER.namespace))
        await DirectClient(fleet.workers[server]).create(DEPLOYMENT, deployment_of(its))
    async with fleet.kueues(), fleet.dispatching():
        await anyio.sleep(5.0)
        await fleet.submit("a-job-with-a-name-of-many-letters-and-hyphens-that-is-long-63")
        await anyio.sleep(20.0)
        assert len((await fleet.workload())["metadata"]["name"]) > 63
        assert list(await fleet.running_on()) == [name]
        assert (await said(fleet))[1].startswith("Kueue 0.17 there lacks names" if version < (0, 18) else "")
