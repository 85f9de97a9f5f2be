"""AdmissionChecks follow their config and its clusters, and nobody else's check is touched."""

from __future__ import annotations

import anyio
import pytest

from multikueue.core.model.conditions import conditions
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from multikueue.core.model.names import ObjectKey
from multikueue.sandbox.setting_up import admission_check, cluster, config
from tests.runtime.fleet import CHECK, Fleet, is_active, until

pytestmark = pytest.mark.looptime

CONFIG = ObjectKey("", CHECK)
GOOD = ("True", "Active", "The admission check is active")
BAD = "Cannot load the AdmissionChecks parameters: "


async def settled(fleet: Fleet) -> tuple[str, str, str]:
    await anyio.sleep(1)
    return await fleet.check()


async def test_a_check_follows_its_clusters() -> None:
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.running():
        assert await settled(fleet) == GOOD
        await fleet.write_secret("worker2", {})
        assert await settled(fleet) == ("True", "SomeActiveClusters", "Inactive clusters: [worker2]")
        await fleet.admin.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        expected = ("False", "NoUsableClusters", "Missing clusters: [worker1], Inactive clusters: [worker2]")
        assert await settled(fleet) == expected
        await fleet.admin.create(MULTIKUEUE_CLUSTER, cluster("worker1"))
        assert await settled(fleet) == ("True", "SomeActiveClusters", "Inactive clusters: [worker2]")


async def test_a_check_follows_its_config() -> None:
    """Changed, deleted, created again, and pointed at another one."""
    fleet = await Fleet.connected("worker1")
    async with fleet.running():
        assert await settled(fleet) == GOOD
        await fleet.admin.merge_patch(MULTIKUEUE_CONFIG, CONFIG, {"spec": {"clusters": ["worker1", "a", "b"]}})
        assert await settled(fleet) == ("True", "SomeActiveClusters", "Missing clusters: [a b]")
        await fleet.admin.delete(MULTIKUEUE_CONFIG, CONFIG)
        message = f'{BAD}MultiKueueConfig.kueue.x-k8s.io "{CHECK}" not found'
        assert await settled(fleet) == ("False", "BadConfig", message)
        await fleet.admin.create(MULTIKUEUE_CONFIG, config(["worker1"]))
        assert await settled(fleet) == GOOD
        await fleet.admin.create(MULTIKUEUE_CONFIG, {**config(["c"]), "metadata": {"name": "other"}})
        await fleet.admin.merge_patch(ADMISSION_CHECK, CONFIG, {"spec": {"parameters": {"name": "other"}}})
        assert await settled(fleet) == ("False", "NoUsableClusters", "Missing clusters: [c]")


async def test_a_check_that_does_not_exist_may_be_ours() -> None:
    """It may be about to be created again: what was offered by it is not taken away."""
    fleet = await Fleet.connected("worker1")
    foreign = {**admission_check("example.com/other"), "metadata": {"name": "foreign"}}
    await fleet.admin.create(ADMISSION_CHECK, foreign)
    async with fleet.dispatching() as manager:
        answers = [
            manager.cluster.our_check(names) for names in ([], ["foreign"], ["gone"], ["gone", "foreign", CHECK])
        ]
        assert answers == [(None, False), (None, False), (None, True), (CHECK, True)]


async def test_nothing_is_written_while_nothing_changes() -> None:
    """A failing worker is tried again and again; the check has nothing new to say about it."""
    fleet = await Fleet.connected("worker1", "worker2")
    async with fleet.running():
        assert await settled(fleet) == GOOD
        fleet.workers["worker1"].faults.partition("reset")
        await until(is_active(fleet, status="False"))
        await anyio.sleep(1)
        before = await fleet.admin.get(ADMISSION_CHECK, CONFIG)
        await anyio.sleep(900)
        assert await fleet.admin.get(ADMISSION_CHECK, CONFIG) == before


async def test_conditions_of_others_stay() -> None:
    """The status is patched as a list, and holds what others wrote."""
    fleet = await Fleet.connected("worker1")
    theirs = {
        "type": "Seen",
        "status": "True",
        "reason": "Seen",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await fleet.admin.merge_patch(ADMISSION_CHECK, CONFIG, {"status": {"conditions": [theirs]}}, subresource="status")
    async with fleet.running():
        assert await settled(fleet) == GOOD
        admission_check = await fleet.admin.get(ADMISSION_CHECK, CONFIG)
        assert theirs in conditions(admission_check)
        assert {
            condition["type"]: condition.get("observedGeneration") for condition in conditions(admission_check)
        } == {
            "Seen": None,
            "Active": 1,
        }
