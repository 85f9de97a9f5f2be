"""ResourceFlavors of workers: the scored dispatcher looks for room in those only that a job's pods may use."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from multikueue.core.model.kinds import CLUSTER_QUEUE, RESOURCE_FLAVOR, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime.caches.flavor_list import INTERVAL, SOON
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.apiserver.faults import Match, Refuse
from multikueue.sandbox.setting_up import CLUSTER_QUEUE_NAME
from tests.runtime.fleet import Fleet
from tests.runtime.test_scored import placed, scored

pytestmark = pytest.mark.looptime

WANTS_A100: Json = {"nodeSelector": {"gpu": "a100"}}


async def flavors(fleet: Fleet, worker: str, cpu: Mapping[str, str], *, label: bool = True) -> None:
    """Give a worker's queue these flavors, each with its quota, whose nodes have its name as a label."""
    client = DirectClient(fleet.workers[worker])
    for name in cpu:
        made = {"apiVersion": RESOURCE_FLAVOR.gvk.api_version, "kind": "ResourceFlavor", "metadata": {"name": name}}
        await client.create(RESOURCE_FLAVOR, {**made, "spec": {"nodeLabels": {"gpu": name if label else "other"}}})
    listed = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": quota}]} for name, quota in cpu.items()]
    groups = [{"coveredResources": ["cpu"], "flavors": listed}]
    await client.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), {"spec": {"resourceGroups": groups}})


def offers(fleet: Fleet) -> dict[str, int]:
    return {name: fleet.requests(name, "create", WORKLOAD) for name in fleet.workers}


def lists(fleet: Fleet) -> int:
    return sum(fleet.requests(name, "list", RESOURCE_FLAVOR) for name in fleet.workers)


async def submit(fleet: Fleet, name: str) -> None:
    await fleet.submit(name, template=WANTS_A100)


async def test_a_job_goes_where_the_flavor_that_it_selects_has_room() -> None:
    """And waits here while there is room in another one only, which takes nothing from those that may use that."""
    fleet = Fleet.of("w1", "w2")
    async with scored(fleet):
        await flavors(fleet, "w1", {"t4": "8", "a100": "0"})
        await flavors(fleet, "w2", {"t4": "0", "a100": "500m"})
        await anyio.sleep(10)
        await submit(fleet, "one")
        await submit(fleet, "two")
        await anyio.sleep(60)
        assert await placed(fleet) == {"one": "w2", "two": "-"}
        await fleet.submit("any")
        await anyio.sleep(10)
        assert (await placed(fleet))["any"] == "w1"
        assert offers(fleet) == {"w1": 1, "w2": 1}


async def test_they_are_listed_again_when_a_queue_names_another_and_every_few_minutes() -> None:
    fleet = Fleet.of("w1")
    async with scored(fleet):
        assert lists(fleet) == 1
        await anyio.sleep(2 * INTERVAL)
        assert lists(fleet) == 3
        await flavors(fleet, "w1", {"a100": "1"}, label=False)
        await anyio.sleep(10)
        assert lists(fleet) == 4
        await submit(fleet, "job")
        await anyio.sleep(60)
        assert (await placed(fleet), offers(fleet)) == ({"job": "-"}, {"w1": 0})
        right = {"spec": {"nodeLabels": {"gpu": "a100"}}}
        await DirectClient(fleet.workers["w1"]).merge_patch(RESOURCE_FLAVOR, ObjectKey("", "a100"), right)
        await anyio.sleep(INTERVAL)
        assert (await placed(fleet), lists(fleet)) == ({"job": "w1"}, 5)


@pytest.mark.parametrize("status", [403, 500])
async def test_where_they_cannot_be_listed_any_flavor_counts(status: int) -> None:
    """A server that only fails is asked again soon."""
    fleet = Fleet.of("w1")
    for server in fleet.workers.values():
        server.faults.add(Refuse(status), on=Match(verbs=("list",), resource="resourceflavors", user="multikueue"))
    async with scored(fleet):
        await flavors(fleet, "w1", {"t4": "8", "a100": "1"})
        await anyio.sleep(10)
        await submit(fleet, "one")
        await submit(fleet, "two")
        await anyio.sleep(20)
        assert await placed(fleet) == {"one": "w1", "two": "w1"}
        before = lists(fleet)
        await anyio.sleep(4 * SOON)
        assert (lists(fleet) > before) is (status == 500)


async def test_an_answer_that_says_nothing_of_them_changes_nothing_that_is_known() -> None:
    fleet = Fleet.of("w1")
    async with scored(fleet):
        await flavors(fleet, "w1", {"t4": "8", "a100": "0"})
        await anyio.sleep(10)
        wrong = Match(verbs=("list",), resource="resourceflavors", user="multikueue")
        fleet.workers["w1"].faults.add(Refuse(400), on=wrong)
        await anyio.sleep(INTERVAL + 10)
        await submit(fleet, "one")
        await anyio.sleep(60)
        assert (await placed(fleet), offers(fleet)) == ({"one": "-"}, {"w1": 0})
