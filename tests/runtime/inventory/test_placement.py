"""The placement check on a hub with OCM's kinds: from a decision to a job, and what happens when things change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import attrs
import pytest

from multikueue.core.dispatchers.incremental import Incremental
from multikueue.core.effects import ConfigStatistics
from multikueue.core.inventory.names import ADDON_FINALIZER, FINALIZER
from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER, PlacementSettings, Policy
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import (
    ADMISSION_CHECK,
    CLUSTER_PROFILE,
    EVENT,
    JOB,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    PLACEMENT_DECISION,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.runtime import inventory_part as inventories
from multikueue.runtime.inventory.service import Inventory, PlacementController, PlacementOptions
from multikueue.sandbox.apiserver import DirectClient, Match, Refuse
from multikueue.sandbox.crds import install_ocm
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE, cluster
from multikueue.testing import running
from tests.runtime.fleet import now, until
from tests.runtime.inventory.placing import PLACED, Hub, placement_check

pytestmark = pytest.mark.looptime

CONFIG = ObjectKey("", CHECK)
CHECKED = ObjectKey("", PLACED)


def lists(hub: Hub, *names: str, config: str = CHECK) -> Callable[[], Awaitable[bool]]:
    """For `until`: the config lists these."""

    async def holds() -> bool:
        return await hub.listed(config) == (list(names) or None)

    return holds


def runs(hub: Hub, job: str, where: str, state: str = "Ready") -> Callable[[], Awaitable[bool]]:
    """For `until`: the job runs there, and our check is so."""

    async def holds() -> bool:
        return await hub.state(job) == (state, where)

    return holds


def says(hub: Hub, reason: str, words: str = "") -> Callable[[], Awaitable[bool]]:
    """For `until`: the check says so."""

    async def holds() -> bool:
        _, shown, message = await hub.said()
        return shown == reason and words in message

    return holds


async def test_the_three_stories_of_the_guide() -> None:
    """All clusters, those of a label, and another one while a job runs: the running job stays, the next one moves."""
    hub = await Hub.of("c1", "c2", "c3")
    async with hub.fleet.kueues(), hub.running():
        await hub.decide("c1", "c2", "c3")
        await until(lists(hub, "c1", "c2", "c3"))
        await hub.decide("c2")
        await anyio.sleep(61)  # two of three have gone: that has to last
        await until(lists(hub, "c2"))
        await hub.fleet.submit("first")
        await until(runs(hub, "first", "c2"))
        before = await hub.fleet.running_on()
        await hub.decide("c3")
        await until(lists(hub, "c3"))
        await hub.fleet.submit("second")
        await until(runs(hub, "second", "c3"))
        await anyio.sleep(600)
        assert await hub.state("first") == ("Ready", "c2")
        assert (await hub.fleet.running_on())["c2"] == before["c2"]
        assert set(await hub.fleet.running_on()) == {"c2", "c3"}


async def test_our_entry_is_written_under_our_own_name() -> None:
    hub = await Hub.of("c1")
    async with hub.fleet.kueues(), hub.running():
        await hub.decide("c1")
        await hub.fleet.submit()
        await until(runs(hub, "job", "c1"))
        workload = await hub.fleet.workload()
        kept = [entry for entry in workload["metadata"]["managedFields"] if entry["manager"] == PLACEMENT_CONTROLLER]
        assert [entry["operation"] for entry in kept] == ["Apply"]
        assert await hub.said() == (
            "True", "Active", f"MultiKueueConfig {CHECK} is generated successfully; clusters: c1",
        )  # fmt: skip


async def test_a_workload_that_was_written_meanwhile_is_tried_again() -> None:
    """What others write need not be anything that decisions go by, so no event of it can be waited for."""
    hub = await Hub.of("c1")
    await hub.decide("c1")
    async with hub.running():
        await until(lists(hub, "c1"))
        await anyio.sleep(5)
        mine = Match(user="multikueue", verbs=("patch",), resource="workloads", subresource="status")
        conflict = hub.fleet.manager.faults.add(Refuse(409), on=mine, times=1)
        await hub.queue("job")
        await until(runs(hub, "job", "", "Ready"), 10)
        assert conflict.hits == 1


async def test_evict_moves_the_job() -> None:
    hub = await Hub.of("c1", "c2")
    async with hub.fleet.kueues(), hub.running(hub.manager(PlacementSettings(Policy.EVICT))):
        await hub.decide("c1")
        await hub.fleet.submit()
        await until(runs(hub, "job", "c1"))
        await hub.decide("c2")
        await until(runs(hub, "job", "c2"))
        await until(lambda: _only(hub, "c2"))


async def _only(hub: Hub, worker: str) -> bool:
    return set(await hub.fleet.running_on()) == {worker}


async def test_what_others_change_or_delete_is_mended() -> None:
    """W14: nobody watched it."""
    hub = await Hub.of("c1", "c2")
    async with hub.running():
        await hub.decide("c1", "c2")
        await until(lists(hub, "c1", "c2"))
        await hub.admin.merge_patch(MULTIKUEUE_CONFIG, CONFIG, {"spec": {"clusters": ["x"]}})
        await until(lists(hub, "c1", "c2"))
        await hub.admin.merge_patch(MULTIKUEUE_CONFIG, CONFIG, {"spec": {"quotaManagement": "Automated"}})
        await anyio.sleep(1)
        await hub.admin.delete(MULTIKUEUE_CONFIG, CONFIG)
        await until(lists(hub, "c1", "c2"))
        assert (await hub.admin.get(MULTIKUEUE_CONFIG, CONFIG))["spec"]["quotaManagement"] == "Automated"


async def test_an_empty_placement_stops_new_jobs_and_keeps_running_ones() -> None:
    hub = await Hub.of("c1")
    async with hub.fleet.kueues(), hub.running():
        await hub.decide("c1")
        await hub.fleet.submit("old")
        await until(runs(hub, "old", "c1"))
        await hub.decide()
        await until(says(hub, "NoClustersAvailable"), 120)
        assert await hub.listed() == ["c1"]
        await hub.fleet.submit("new")
        await anyio.sleep(30)
        assert await hub.state("old") == ("Ready", "c1")
        assert (await hub.state("new"))[1] == ""
        await hub.decide("c1")
        await until(runs(hub, "new", "c1"))


async def test_ocm_is_installed_later() -> None:
    hub = await Hub.of("c1", ocm=False)
    async with hub.running():
        await until(says(hub, "PlacementError", f"Failed to get placement {CHECK}: "))
        install_ocm(hub.fleet.manager.registry)
        await until(says(hub, "PlacementNotFound", f"looked for in namespace {KUEUE_NAMESPACE}"), 600)
        placement = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "spec": {}}
        named = {**placement, "metadata": {"name": CHECK, "namespace": KUEUE_NAMESPACE}}
        await hub.admin.create(PLACEMENT, named)
        await until(says(hub, "PlacementDecisionError", "not scheduled yet"))
        await hub.decide("c1")
        await until(lists(hub, "c1"))


async def test_a_check_without_parameters_at_start() -> None:
    """§0.8: the others were not reconciled."""
    hub = await Hub.of("c1")
    bad = placement_check("bad")
    del bad["spec"]["parameters"]
    await hub.admin.create(ADMISSION_CHECK, bad)
    await hub.decide("c1")
    async with hub.running():
        await until(lists(hub, "c1"))
        assert (await hub.said("bad"))[1] == "BadParameters"


async def test_a_deleted_check_takes_its_config_along_once_nothing_runs() -> None:
    hub = await Hub.of("c1")
    async with hub.fleet.kueues(), hub.running():
        await hub.decide("c1")
        await hub.fleet.submit()
        await until(runs(hub, "job", "c1"))
        await hub.admin.delete(ADMISSION_CHECK, CHECKED)
        await anyio.sleep(30)
        assert await hub.listed() == ["c1"]
        checked = await hub.admin.get(ADMISSION_CHECK, CHECKED)
        await hub.admin.merge_patch(ADMISSION_CHECK, CHECKED, {"metadata": {"finalizers": [FINALIZER]}})
        assert FINALIZER in checked["metadata"]["finalizers"]
        await anyio.sleep(5)
        assert await hub.listed() == ["c1"]
        await hub.admin.delete(JOB, ObjectKey("default", "job"), propagation="Background")
        await until(lists(hub))


async def test_the_finalizer_stays_while_the_config_cannot_be_deleted() -> None:
    hub = await Hub.of("c1")
    async with hub.running():
        await hub.decide("c1")
        await until(lists(hub, "c1"))
        await hub.admin.merge_patch(MULTIKUEUE_CONFIG, CONFIG, {"metadata": {"finalizers": ["example.com/held"]}})
        await anyio.sleep(1)
        await hub.admin.delete(ADMISSION_CHECK, CHECKED)
        await anyio.sleep(30)
        assert (await hub.admin.get(ADMISSION_CHECK, CHECKED))["metadata"]["finalizers"] == [FINALIZER]
        await hub.admin.merge_patch(MULTIKUEUE_CONFIG, CONFIG, {"metadata": {"finalizers": None}})
        await until(lists(hub))


async def test_a_refused_write_is_told_on_the_check() -> None:
    hub = await Hub.of("c1")
    async with hub.running():
        await hub.decide("c1", "x" * 300)
        await until(says(hub, "MultiKueueConfigError", f"Failed to create/update multi kueue config {CHECK}: "))
        await hub.decide("c1")
        await until(says(hub, "Active"))


async def test_beside_the_addon_nothing_is_written() -> None:
    hub = await Hub.of("c1")
    await hub.admin.merge_patch(ADMISSION_CHECK, CHECKED, {"metadata": {"finalizers": [ADDON_FINALIZER]}})
    await hub.decide("c1")
    async with hub.running():
        await anyio.sleep(10)
        checked = await hub.admin.get(ADMISSION_CHECK, CHECKED)
        assert (condition(checked, "PlacementConflict") or {})["reason"] == "Conflict"
        assert condition(checked, "Active") is None
        assert await hub.listed() is None
        events = [event for event in (await hub.admin.list(EVENT)).items if event["reason"] == "Conflict"]
        assert [event["regarding"]["name"] for event in events] == [PLACED]


async def test_changes_of_the_set_are_events() -> None:
    hub = await Hub.of("c1", "c2")
    async with hub.running():
        await hub.decide("c1", "c2")
        await until(lists(hub, "c1", "c2"))
        await hub.decide("c2")
        await until(lists(hub, "c2"))
        await anyio.sleep(5)
        notes = [event["note"] for event in (await hub.admin.list(EVENT)).items if event["reason"] == "ClustersChanged"]
        assert notes == [f"MultiKueueConfig {CHECK}: +c1 +c2", f"MultiKueueConfig {CHECK}: -c1"]


async def test_a_worker_that_becomes_active_opens_the_check() -> None:
    hub = await Hub.of("c1")
    await hub.fleet.write_secret("c1", {})
    async with hub.fleet.kueues(), hub.running():
        await hub.decide("c1")
        await hub.fleet.submit()
        await anyio.sleep(10)
        assert (await hub.state("job"))[1] == ""
        await hub.fleet.rotate("c1", "new")
        await until(runs(hub, "job", "c1"))


async def test_decisions_replaced_one_by_one_change_nothing() -> None:
    hub = await Hub.of("c1", "c2")
    async with hub.running():
        await hub.decide("c1", "c2")
        await until(lists(hub, "c1", "c2"))
        generation = (await hub.admin.get(MULTIKUEUE_CONFIG, CONFIG))["metadata"]["generation"]
        for _ in range(5):
            await hub.admin.delete(PLACEMENT_DECISION, ObjectKey(KUEUE_NAMESPACE, f"{CHECK}-decision-1"))
            await anyio.sleep(5)
            await hub.decide("c1", "c2")
            await anyio.sleep(5)
        assert (await hub.admin.get(MULTIKUEUE_CONFIG, CONFIG))["metadata"]["generation"] == generation


async def test_the_cluster_with_most_free_gpus_is_asked_first() -> None:
    """And another one after its score has fallen, five minutes later at the earliest."""
    hub = await Hub.of("c1", "c2")
    await hub.weigh("gpus")
    await hub.report("gpus", c1=-100, c2=50)
    await hub.decide("c1", "c2")
    manager = attrs.evolve(hub.manager(), dispatcher=Incremental(step=1))
    async with hub.fleet.kueues(), hub.running(manager):
        await until(lists(hub, "c2", "c1"))
        await hub.fleet.submit("first")
        await until(runs(hub, "first", "c2"))
        await hub.report("gpus", c1=100)
        await anyio.sleep(200)
        assert await hub.listed() == ["c2", "c1"]
        await until(lists(hub, "c1", "c2"), 200)
        await hub.fleet.submit("second")
        await until(runs(hub, "second", "c1"))
        assert await hub.state("first") == ("Ready", "c2")


class Noted:
    """What the metrics are told."""

    def __init__(self) -> None:
        self.statistics: dict[str, ConfigStatistics] = {}

    def filled(self, config: str, statistics: ConfigStatistics) -> None:
        """See `PlacementHook`."""
        self.statistics[config] = statistics

    def put_off(self, config: str) -> None:
        """See `PlacementHook`."""

    def released(self, config: str) -> None:
        """See `PlacementHook`."""
        del self.statistics[config]


async def test_alone_beside_another_controller() -> None:
    """With caches of its own; MultiKueue is somebody else's, who is told Ready and keeps what runs."""
    hub, noted = await Hub.of("c1", "c2"), Noted()
    await hub.admin.merge_patch(
        MULTIKUEUE_CLUSTER, ObjectKey("", "c1"), {"status": {"conditions": [_active()]}}, subresource="status"
    )
    await hub.admin.merge_patch(
        MULTIKUEUE_CLUSTER, ObjectKey("", "c2"), {"status": {"conditions": [_active()]}}, subresource="status"
    )
    alone = PlacementController.build(
        DirectClient(hub.fleet.manager, user="multikueue"),
        PlacementOptions(PlacementSettings(dispatched_as="")),
        clock=now,
        hook=noted,
    )
    async with hub.fleet.kueues(), running(alone.run):
        await hub.decide("c1")
        await until(says(hub, "Active"))
        # Nobody keeps the condition of the other check here, so Kueue would give no quota.
        shown = {"status": {"conditions": [_active()]}}
        await hub.admin.merge_patch(ADMISSION_CHECK, ObjectKey("", CHECK), shown, subresource="status")
        await hub.fleet.submit("old")
        await until(runs(hub, "old", ""))
        await _assign(hub, "c1")
        await hub.decide("c2")
        await until(lists(hub, "c2", "c1"))
        assert (noted.statistics[CHECK].listed, noted.statistics[CHECK].draining) == (2, 1)
        await hub.fleet.submit("new")
        await anyio.sleep(300)
        assert (await hub.state("new")) == ("Pending", "")
        await hub.admin.delete(JOB, ObjectKey("default", "old"), propagation="Background")
        await until(lists(hub, "c2"), 200)
        await until(runs(hub, "new", ""))
    assert alone.idle


async def test_figures_of_a_config_that_nobody_fills_any_more_are_forgotten() -> None:
    """Else a metric would say for ever what was true once."""
    hub, noted = await Hub.of("c1"), Noted()
    async with hub.running(hub.manager(hook=noted)):
        await hub.decide("c1")
        await until(lambda: set(noted.statistics) == {CHECK})
        await hub.admin.merge_patch(ADMISSION_CHECK, CHECKED, {"metadata": {"finalizers": [ADDON_FINALIZER]}})
        await until(lambda: not noted.statistics)


def _active() -> Json:
    connected = {"type": "Active", "status": "True", "reason": "Active", "message": "Connected"}
    return {**connected, "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def _assign(hub: Hub, worker: str) -> None:
    """What another controller does when a worker has admitted a Workload."""
    key = ObjectKey.of(await hub.fleet.workload())
    for patch in ({"nominatedClusterNames": [worker]}, {"nominatedClusterNames": None, "clusterName": worker}):
        await hub.admin.merge_patch(WORKLOAD, key, {"status": patch}, subresource="status")


async def test_an_inventory_fills_a_config_by_label() -> None:
    hub = await Hub.of("c1")
    await hub.admin.delete(ADMISSION_CHECK, CHECKED)
    entry = Inventory("accelerator=nvidia-tesla-t4", "gpus")
    async with hub.running(hub.manager(None, entry)):
        await hub.profile("p1", accelerator="nvidia-tesla-t4")
        await hub.profile("p2", accelerator="none")
        await hub.profile("p3", accelerator="nvidia-tesla-t4")
        await until(lists(hub, "p1", "p3", config="gpus"))
        assert await hub.workers() == ["c1", "p1", "p3"]
        worker = await hub.admin.get(MULTIKUEUE_CLUSTER, ObjectKey("", "p1"))
        assert worker["spec"]["clusterSource"] == {"clusterProfileRef": {"name": "p1"}}
        await hub.admin.merge_patch(
            CLUSTER_PROFILE,
            ObjectKey(KUEUE_NAMESPACE, "p2"),
            {"metadata": {"labels": {"accelerator": "nvidia-tesla-t4"}}},
        )
        await hub.admin.delete(CLUSTER_PROFILE, ObjectKey(KUEUE_NAMESPACE, "p3"))
        await until(lists(hub, "p1", "p2", config="gpus"))
        await until(lambda: _workers_are(hub, ["c1", "p1", "p2"]))
        await hub.admin.create(MULTIKUEUE_CLUSTER, cluster("p4"))
        await hub.profile("p4", accelerator="nvidia-tesla-t4")
        await anyio.sleep(5)
        assert await hub.listed("gpus") == ["p1", "p2"]


async def test_a_worker_of_an_inventory_stays_while_copies_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eviction erases the name of the worker before what runs there has stopped."""
    occupied = {"p1"}
    monkeypatch.setattr(inventories, "_occupied", lambda _manager, _workers, name: name in occupied)
    hub = await Hub.of("c1")
    await hub.admin.delete(ADMISSION_CHECK, CHECKED)
    async with hub.running(hub.manager(None, Inventory("accelerator=nvidia-tesla-t4", "gpus"))):
        for name in ("p1", "p2"):
            await hub.profile(name, accelerator="nvidia-tesla-t4")
        await until(lists(hub, "p1", "p2", config="gpus"))
        await hub.admin.delete(CLUSTER_PROFILE, ObjectKey(KUEUE_NAMESPACE, "p1"))
        await anyio.sleep(120)
        assert await hub.listed("gpus") == ["p2"]
        assert await hub.workers() == ["c1", "p1", "p2"]
        occupied.clear()
        await until(lambda: _workers_are(hub, ["c1", "p2"]))


async def _workers_are(hub: Hub, names: list[str]) -> bool:
    return await hub.workers() == names
