"""What an inventory does in a manager, by the options; and which workers are in use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from multikueue.core.inventory.settings import PlacementSettings, SpokeSettings
from multikueue.core.machinery.connection import CREDENTIALS
from multikueue.core.model.conditions import new_condition
from multikueue.core.model.names import ObjectKey
from multikueue.protocols import ApiClient
from multikueue.runtime import inventory_part
from multikueue.runtime.controller import KeyQueue, Process
from multikueue.runtime.inventory.reconcilers import PlacementReconciler
from multikueue.runtime.inventory.selection import PlacementSelection
from multikueue.runtime.inventory.service import Inventory, PlacementOptions
from multikueue.runtime.inventory_part import InventoryOptions, inventory
from multikueue.runtime.manager import Manager
from multikueue.runtime.parts import PartHost
from multikueue.runtime.workers.pool import WorkerPool
from tests.runtime.fleet import Fleet, now
from tests.runtime.inventory.hub import Chosen, settings
from tests.runtime.test_event_handlers import workload

pytestmark = pytest.mark.looptime

PROCESS = Process(now, lambda: 0.0, "test")
CHECKS, FILLED = PlacementOptions(PlacementSettings()), PlacementOptions(inventories=(Inventory("a=b", "gpus"),))
NOTHING = PlacementOptions()
GRANTING = cast(ApiClient, object())


def host(manager: Manager) -> PartHost:
    return PartHost(manager.cluster, manager.workers, KeyQueue(), PROCESS)


@pytest.mark.parametrize(
    ("placement", "spokes", "chosen", "names", "services", "makes"),
    [
        (NOTHING, None, False, [], 0, False),
        (NOTHING, settings(), False, [], 0, False),
        (NOTHING, None, True, [], 0, False),
        (NOTHING, settings(), True, ["multikueue_spoke"], 1, True),
        (CHECKS, None, False, ["multikueue_placement"], 2, False),
        (CHECKS, settings(), False, ["multikueue_placement", "multikueue_spoke"], 3, True),
        (FILLED, settings(), False, ["multikueue_inventory"], 2, False),
    ],
)
async def test_what_is_built(
    placement: PlacementOptions,
    spokes: SpokeSettings | None,
    chosen: bool,
    names: list[str],
    services: int,
    makes: bool,
) -> None:
    """Workers are made if somebody selects them: who is given, or else the Placements of checks."""
    manager = Fleet.of().build()
    options = InventoryOptions(placement, None, spokes, Chosen() if chosen else None, None)
    part, made = inventory(host(manager), options)
    assert ([controller.name for controller in part.controllers], len(part.services)) == (names, services)
    assert (made is not None) == makes
    if made is not None:
        assert isinstance(made.selection, Chosen if chosen else PlacementSelection)
        assert made.permissions is made.client is manager.client


async def test_somebody_else_may_write_permissions_and_select() -> None:
    manager = Fleet.of().build()
    options = InventoryOptions(CHECKS, None, settings(), Chosen(), GRANTING)
    _, made = inventory(host(manager), options)
    assert made is not None
    assert (made.permissions, type(made.selection)) == (GRANTING, Chosen)


async def test_what_either_writes_of_a_workload_the_other_reads_before_the_watch_shows_it() -> None:
    """Each had a cache of its own over one informer, and was refused what it wrote after the other."""
    manager = Fleet.of().build()
    part, _ = inventory(host(manager), InventoryOptions(CHECKS, None, None, None, None))
    reconciler, key = part.controllers[0].reconciler, ObjectKey("default", "waits")
    assert isinstance(reconciler, PlacementReconciler)
    shown = workload("waits")
    shown["metadata"] |= {"resourceVersion": "5"}
    manager.cluster.workloads.informer.put(key, shown)
    reconciler.hub.wrote({**shown, "metadata": {**shown["metadata"], "resourceVersion": "6"}})
    read = manager.cluster.workloads.get(key)
    assert read is not None
    assert read["metadata"]["resourceVersion"] == "6"


async def test_a_worker_is_in_use_while_a_workload_or_a_copy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Fleet.of().build()
    cluster, copies = manager.cluster, list[ObjectKey]()
    monkeypatch.setattr(inventory_part, "workloads_on", lambda _: copies)
    synced = {"worker1": True, "worker3": False, "worker4": False}
    known = cast(
        WorkerPool,
        {
            name: SimpleNamespace(
                known=SimpleNamespace(have_read=lambda _, name=name: synced[name]),
                state=SimpleNamespace(wanted=None if name == "worker4" else "a configuration"),
            )
            for name in synced
        },
    )

    def occupied(name: str) -> bool:
        return inventory_part._occupied(cluster, known, name)

    assert not occupied("worker1")
    copies.append(ObjectKey("default", "w"))
    assert occupied("worker1")
    copies.clear()
    placed = workload("waits")
    placed["status"]["clusterName"] = "worker1"
    cluster.workloads.informer.put(ObjectKey("default", "waits"), placed)
    assert occupied("worker1")
    # Nobody has looked there yet; where there never were credentials nobody will.
    assert (occupied("worker2"), occupied("worker3"), occupied("worker4")) == (True, True, False)
    used = new_condition(CREDENTIALS, True, "Used", "", now=now(), generation=1)
    cluster.clusters.put(ObjectKey("", "worker4"), {"metadata": {"name": "worker4"}, "status": {"conditions": [used]}})
    assert occupied("worker4")
