"""Which change has which checks and inventories decided about again, and when."""

from __future__ import annotations

from typing import Final, cast

import anyio
import attrs
import pytest

from multikueue.core.inventory.settings import PLACEMENT_CONTROLLER
from multikueue.core.model.labels import CORDON_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.inventory.caches import HubCaches, OcmCaches
from multikueue.runtime.inventory.handlers import BATCH, SCORES, PlacementHandlers
from tests.runtime.inventory.test_caches import KEY, caches, workload

pytestmark = pytest.mark.looptime

FILLED: Final = "gpus"
"""The config of an inventory."""


def check(name: str, placement: str = "") -> Json:
    """An AdmissionCheck whose parameters name a Placement."""
    parameters = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": placement or name}
    spec = {"controllerName": PLACEMENT_CONTROLLER, "parameters": parameters}
    return {"metadata": {"name": name, "uid": name}, "spec": spec}


def of_kueue(config: str) -> Json:
    """An AdmissionCheck of MultiKueue's."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": config}
    spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    return {"metadata": {"name": "kueues", "uid": "k"}, "spec": spec}


def config(name: str, *clusters: str, owner: str = "", kind: str = "AdmissionCheck") -> Json:
    """A MultiKueueConfig that a check has made."""
    reference = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "name": owner, "uid": owner, "controller": True}
    metadata = {"name": name, "uid": name, "ownerReferences": [reference] if owner else []}
    return {"metadata": metadata, "spec": {"clusters": list(clusters)}}


def cluster(name: str = "w1", *, active: bool = True, **labels: str) -> Json:
    """A MultiKueueCluster."""
    condition = {"type": "Active", "status": str(active), "reason": "Active", "message": ""}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"conditions": [condition]}}


@attrs.define(eq=False)
class Wired:
    """The handlers, over caches with two placement checks, one config of each, and the config of an inventory."""

    hub: HubCaches = attrs.field(factory=caches)
    checks: KeyQueue[ObjectKey] = attrs.field(factory=KeyQueue)
    inventories: KeyQueue[ObjectKey] = attrs.field(factory=KeyQueue)
    handlers: PlacementHandlers = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handlers = PlacementHandlers(self.hub, self.checks, self.inventories, frozenset((FILLED,)))
        for obj in (check("a"), check("placed"), of_kueue(FILLED)):
            self.hub.checks.put(ObjectKey.of(obj), obj)
        for obj in (config("a", "w1"), config("placed", "w2"), config(FILLED), config("old", owner="a")):
            self.hub.configs.put(ObjectKey.of(obj), obj)

    def due(self) -> tuple[list[str], list[str]]:
        """The names of the checks, and of the inventories, whose time has come."""
        due: tuple[list[str], list[str]] = ([], [])
        for names, queue in zip(due, (self.checks, self.inventories), strict=True):
            while (key := queue.take()) is not None:
                queue.release(key)
                names.append(key.name)
        return due

    async def due_after(self, seconds: float) -> tuple[list[str], list[str]]:
        """Those that wait for so long, and no less."""
        await anyio.sleep(seconds - 0.01)
        assert self.due() == ([], [])
        await anyio.sleep(0.02)
        return self.due()


async def test_checks() -> None:
    """One that is ours now, or was; with what fills the same config."""
    wired = Wired()
    wired.handlers.check_changed(ObjectKey("", "a"), None, check("a"))
    assert wired.due() == (["a"], [])
    wired.handlers.check_changed(ObjectKey("", "a"), check("a"), of_kueue("a"))
    assert wired.due() == (["a"], [])
    wired.handlers.check_changed(ObjectKey("", "a"), of_kueue("a"), check("a"))
    assert wired.due() == (["a"], [])
    wired.handlers.check_changed(ObjectKey("", "a"), check("a"), check("a", placement="placed"))
    assert wired.due() == (["a", "placed"], [])
    wired.handlers.check_changed(ObjectKey("", "kueues"), None, of_kueue(FILLED))
    assert wired.due() == ([], [FILLED])
    wired.handlers.check_changed(ObjectKey("", "kueues"), of_kueue("a"), None)
    assert wired.due() == (["a"], [])
    wired.handlers.check_changed(ObjectKey("", "kueues"), None, of_kueue(""))
    assert wired.due() == ([], [])


async def test_placements_and_decisions() -> None:
    wired = Wired()
    wired.handlers.placement_changed(ObjectKey("kueue-system", "a"), None, {})
    assert wired.due() == (["a"], [])
    wired.handlers.placement_changed(ObjectKey("kueue-system", "another"), None, {})
    assert wired.due() == ([], [])
    label = "cluster.open-cluster-management.io/placement"
    before, after = ({"metadata": {"labels": {label: name}}} for name in ("a", "placed"))
    wired.handlers.decision_changed(KEY, before, after)
    assert {*wired.due()[0]} == {"a", "placed"}
    wired.handlers.decision_changed(KEY, before, None)
    assert wired.due() == (["a"], [])


async def test_configs() -> None:
    """By name, and by the check that has made it: it may be called otherwise by now."""
    wired = Wired()
    wired.handlers.config_changed(ObjectKey("", "placed"), None, config("placed"))
    assert wired.due() == (["placed"], [])
    wired.handlers.config_changed(ObjectKey("", "old"), config("old", owner="a"), config("old", owner="a"))
    assert wired.due() == (["a"], [])
    wired.handlers.config_changed(ObjectKey("", "gone"), config("gone", owner="placed"), None)
    assert wired.due() == (["placed"], [])
    wired.handlers.config_changed(ObjectKey("", "gone"), None, config("gone", owner="placed", kind="Another"))
    assert wired.due() == ([], [])
    wired.handlers.config_changed(ObjectKey("", FILLED), None, config(FILLED))
    assert wired.due() == ([], [FILLED])


@pytest.mark.parametrize(
    ("old", "new", "checks"),
    [
        (None, cluster(), {"a", "placed"}),
        (cluster(), None, {"a", "placed"}),
        (cluster(), cluster(active=False), {"a"}),
        (cluster(), cluster(region="x"), {"a"}),
        (cluster(), {**cluster(), "spec": {"x": "y"}}, {"a"}),
    ],
)
async def test_workers(old: Json | None, new: Json | None, checks: set[str]) -> None:
    """One that comes or goes may give a selected cluster another name; else it concerns those that list it."""
    wired = Wired()
    wired.handlers.cluster_changed(ObjectKey("", "w1"), old, new)
    due, inventories = await wired.due_after(BATCH)
    assert (set(due), inventories) == (checks, [FILLED])


async def test_a_list_that_is_full_may_have_a_place_for_one_that_becomes_a_worker() -> None:
    """Twenty clusters without an agent were listed, another got one, and nobody looked again."""
    wired = Wired()
    full = config("a", *(f"other-{number}" for number in range(20)))
    wired.hub.configs.put(ObjectKey("", "a"), full)
    wired.handlers.cluster_changed(ObjectKey("", "w1"), cluster(active=False), cluster())
    due, _ = await wired.due_after(BATCH)
    assert "a" in due
    cordoned = {**cluster(), "metadata": {**cluster()["metadata"], "annotations": {CORDON_ANNOTATION: "true"}}}
    wired.handlers.cluster_changed(ObjectKey("", "w1"), cluster(), cordoned)
    due, _ = await wired.due_after(BATCH)
    assert "a" in due


async def test_what_nobody_reads_of_a_worker_wakes_nobody() -> None:
    wired = Wired()
    wired.handlers.cluster_changed(
        ObjectKey("", "w1"), cluster(), {**cluster(), "metadata": {"labels": {}, "uid": "2"}}
    )
    await anyio.sleep(60)
    assert wired.due() == ([], [])


def without_quota(obj: Json) -> Json:
    """It holds no quota."""
    return {**obj, "status": {**obj["status"], "conditions": []}}


@pytest.mark.parametrize(
    ("old", "new", "checks"),
    [
        (None, workload(1, "Ready"), ["placed"]),
        (workload(1, "Ready"), None, ["placed"]),
        (workload(1, "Ready"), workload(2, "Pending"), ["placed"]),
        (workload(1, "Ready"), {**workload(2, "Ready"), "spec": {"active": False}}, ["placed"]),
        (workload(1, "Ready"), without_quota(workload(2, "Ready")), ["placed"]),
        (workload(1, "Ready"), workload(2, "Ready"), []),
        (workload(1, "Pending"), workload(2, "Pending"), ["placed"]),
        (without_quota(workload(1, "Pending")), without_quota(workload(2, "Pending")), []),
    ],
)
async def test_workloads(old: Json | None, new: Json | None, checks: list[str]) -> None:
    """If a decision goes by what has changed, or our entry is still to be written."""
    wired = Wired()
    wired.handlers.workload_changed(KEY, old, new)
    assert (await wired.due_after(BATCH))[0] == checks


async def test_a_check_of_kueue_leads_to_what_fills_its_config() -> None:
    wired = Wired()
    entry = {"name": "kueues", "state": "Ready"}
    named: Json = {**workload(1, "Ready"), "status": {"admissionChecks": [entry]}}
    wired.handlers.workload_changed(KEY, None, named)
    assert await wired.due_after(BATCH) == ([], [FILLED])


async def test_scores_are_collected_for_longer_than_anything_else() -> None:
    """All clusters report theirs every minute."""
    wired = Wired()
    ocm = OcmCaches.build(cast(ApiClient, None), "kueue-system", wired.handlers.all_checks, lambda: 0.0)
    wired.handlers.listen(ocm)
    ocm.scores._on_change(KEY, None, {})
    assert set((await wired.due_after(SCORES))[0]) == {"a", "placed"}
