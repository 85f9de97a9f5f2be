"""What a fleet does in Kueue's own controller and must not do in ours (`docs/design/defects.md`), seen from outside."""

from __future__ import annotations

import json

import anyio
import pytest

from multikueue.core.model.conditions import is_true, new_condition, updated
from multikueue.core.model.kinds import CLUSTER_QUEUE, JOB, MULTIKUEUE_CLUSTER, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import check, cluster_name, nominated
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.setting_up import CHECK, CLUSTER_QUEUE_NAME
from tests.examples import shared
from tests.scenarios.fleet import Fleet, Scenario
from tests.scenarios.in_memory import MemoryPlane

JOB_KEY = ObjectKey("default", "job")


def asked(fleet: Fleet, number: int) -> dict[str, int]:
    """What a worker was asked for so far, lists and watches of the caches and probes aside."""
    requests, aside = fleet.worker(number).link.requests, ("list", "watch", "probe", "discover")
    return {what: count for what, count in requests.items() if what.partition(" ")[0] not in aside}


def besides_probes(fleet: Fleet, number: int) -> int:
    """How many requests the daemon made on a worker; what silence costs is not of the Workload's doing."""
    requests = fleet.worker(number).link.requests
    return sum(count for what, count in requests.items() if not what.startswith("probe "))


async def test_a_workload_in_the_queue_costs_no_remote_request(scenario: Scenario) -> None:
    """Item 5: however often it changes while it waits for quota."""
    async with scenario() as fleet:
        held = {"spec": {"stopPolicy": "Hold"}}
        await fleet.manager.api.merge_patch(CLUSTER_QUEUE, ObjectKey("", CLUSTER_QUEUE_NAME), held)
        await fleet.submit(quota=False)
        before = [besides_probes(fleet, number) for number in fleet.numbers]
        for number in range(20):
            label = {"metadata": {"labels": {"example.com/n": str(number)}}}
            await fleet.manager.api.merge_patch(WORKLOAD, fleet.key, label)
            await fleet.rest(1)

        assert not fleet.says("QuotaReserved")
        assert [besides_probes(fleet, number) for number in fleet.numbers] == before


@pytest.mark.parametrize("workers", shared([1, 3, 5]))
async def test_a_life_costs_few_writes_and_no_reads(scenario: Scenario, workers: int) -> None:
    """Items 6 and 8: with W workers at most 2W+4 remote requests, none of which reads; at most 4 for the Workload."""
    async with scenario(workers) as fleet:
        await fleet.rest(5)
        writes = _writes_to_the_workload(fleet)
        before = sum(sum(asked(fleet, number).values()) for number in fleet.numbers)
        read = _reads(fleet)
        await fleet.submit(to=1)
        await fleet.until(lambda: fleet.job(1) is not None)
        await fleet.rest(120)
        await fleet.worker(1).api.merge_patch(JOB, JOB_KEY, {"spec": {"suspend": False}})
        await fleet.set_job_status(1, {"active": 1, "ready": 1, "startTime": "2026-01-01T00:00:30Z"})
        await fleet.rest(1_000)
        await fleet.end(1, _complete())
        await fleet.until(lambda: fleet.copy(1) is None and fleet.job(1) is None)
        await fleet.rest(1_000)

        assert is_true(fleet.workload or {}, "Finished")
        assert sum(sum(asked(fleet, number).values()) for number in fleet.numbers) - before <= 2 * workers + 4
        assert _reads(fleet) == read
        late = sum("its job to be seen" in str(write) for write in writes)  # its event may come before its job's
        assert 2 <= len(writes) - late <= 4
        assert fleet.manager.link.requests["patch jobs.batch"] <= 3, "it waits, runs, has ended"


def _reads(fleet: Fleet) -> list[tuple[str, int]]:
    """What was read of objects one by one; a connection begins with a look at Kueue."""
    requests = (item for number in fleet.numbers for item in asked(fleet, number).items())
    return sorted(item for item in requests if item[0].startswith("get "))


async def test_what_decides_is_acted_on_at_once(scenario: Scenario) -> None:
    """Item 9: an admission on a worker is on the manager long before a second has passed."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        before = anyio.current_time()
        await fleet.assign(1)

        assert anyio.current_time() - before < 0.5


async def test_the_same_credentials_again_change_nothing(scenario: Scenario) -> None:
    """Item 37: configurations are compared by what they say; the same one again is no reason to connect again."""
    async with scenario() as fleet:
        await fleet.rest(5)
        before = besides_probes(fleet, 1)
        for _ in range(5):
            await fleet.write_kubeconfig(1)
            await fleet.write_kubeconfig(1, _reformatted(fleet))
            await fleet.rest(1)

        assert besides_probes(fleet, 1) == before


async def test_what_waits_for_a_worker_goes_to_the_first_that_comes(scenario: Scenario) -> None:
    """Item 38: submitted while no worker could be reached, and nothing else ever happens to it."""
    async with scenario() as fleet:
        for number in fleet.numbers:
            fleet.worker(number).link.change(down=True)
        await fleet.until(lambda: fleet.check_active()[1] == "NoUsableClusters")
        await fleet.submit(quota=False)
        await _give_quota(fleet)
        await fleet.rest(120)
        assert not any(fleet.copy(number) for number in fleet.numbers)
        fleet.worker(2).link.change(down=False)

        await fleet.until(lambda: fleet.copy(2) is not None, seconds=90)


async def test_a_worker_that_hangs_is_forgotten_at_once(scenario: Scenario) -> None:
    """Item 40: nothing waits for its watches or for a call that is under way."""
    async with scenario() as fleet:
        await fleet.submit()
        await fleet.until(lambda: fleet.copy(1) is not None)
        fleet.worker(1).link.change(silent=True)
        await fleet.manager.api.merge_patch(WORKLOAD, fleet.key, {"spec": {"priority": 7}})  # a call begins to hang
        await fleet.until(lambda: dig(fleet.copy(2) or {}, "spec", "priority") == 7)
        before = anyio.current_time()
        await fleet.manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await fleet.until(lambda: fleet.check_active()[2] == "Missing clusters: [worker1]")
        await fleet.assign(2)

        assert anyio.current_time() - before < 1


async def _give_quota(fleet: Fleet) -> None:
    """A queue whose check is inactive admits nobody, so it is said by hand that this one got in before."""
    workload = await fleet.manager.api.get(WORKLOAD, fleet.key)
    reserved = new_condition("QuotaReserved", True, "QuotaReserved", "by hand", now=fleet.now(), generation=1)
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "default-flavor"}, "resourceUsage": {"cpu": "1"}}
    admission = {"clusterQueue": CLUSTER_QUEUE_NAME, "podSetAssignments": [assignment]}
    conditions = updated(dig(workload, "status", "conditions") or [], reserved)
    patch = {"status": {"conditions": conditions, "admission": admission}}
    await fleet.manager.user("kueue").merge_patch(WORKLOAD, fleet.key, patch, subresource="status")


def _writes_to_the_workload(fleet: Fleet) -> list[object]:
    """Will have an entry for every change of what is ours on the manager's Workload."""
    plane, values = fleet.manager, list[object]()
    assert isinstance(plane, MemoryPlane)

    def ours(workload: Json) -> object:
        return nominated(workload), cluster_name(workload), check(workload, CHECK), is_true(workload, "Finished")

    def changed(row: ResourceType, old: Json | None, new: Json | None) -> None:
        if row.plural == WORKLOAD.plural and old and new and check(old, CHECK) and ours(old) != ours(new):
            values.append(ours(new))

    plane.cluster.registry.cluster.listeners.append(changed)
    return values


def _complete() -> Json:
    start, stamp = "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z"
    entry = {"status": "True", "lastProbeTime": stamp, "lastTransitionTime": stamp}
    conditions = [{**entry, "type": "SuccessCriteriaMet"}, {**entry, "type": "Complete"}]
    counts = {"active": 0, "ready": 0, "succeeded": 1}
    return {**counts, "startTime": start, "completionTime": stamp, "conditions": conditions}


def _reformatted(fleet: Fleet) -> str:
    """The same kubeconfig in other bytes."""
    return json.dumps(fleet.kubeconfig(1), indent=2)
