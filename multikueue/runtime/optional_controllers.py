"""What an inventory does in a manager: it fills configs, and makes the workers that they list."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.runtime.controller import Controller
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.selection import PlacementSelection, Selection
from multikueue.runtime.inventory.service import PlacementController
from multikueue.runtime.inventory.spokes import Spokes
from multikueue.runtime.loop import Task
from multikueue.runtime.worker_pool import workloads_on

if TYPE_CHECKING:
    from multikueue.runtime.manager import Manager


@attrs.frozen
class Filling:
    """What a manager runs for its inventory."""

    controllers: tuple[Controller[ObjectKey], ...] = ()
    services: tuple[Task, ...] = ()
    """What runs beside the controllers; nothing waits for it."""
    spokes: Spokes | None = None
    """What makes workers of ManagedClusters."""


def fill_configs(manager: Manager) -> Filling:
    """Build what the settings of a manager ask for, on its caches, before they run."""
    options, known, occupied = manager.settings.placement, manager.cluster, partial(_occupied, manager)
    hub = HubCaches.shared(known.workloads.informer, known.checks, known.configs, known.clusters, occupied)
    filling, selection = Filling(), manager.selection
    if options.wanted:
        found = PlacementController.build(
            manager.client,
            options,
            clock=manager.clock,
            hub=hub,
            hook=manager.placement_hook,
            controller_hook=manager.controller_hook,
            fraction=manager.fraction,
            instance=manager.instance,
        )
        filling = Filling(found.controllers, found.services)
        if selection is None and found.ocm is not None:
            selection = PlacementSelection(hub, found.ocm)
    if manager.settings.spokes is None or selection is None:
        return filling
    spokes = _spokes(manager, hub, selection)
    return Filling((*filling.controllers, spokes.controller), (*filling.services, spokes.run), spokes)


def _spokes(manager: Manager, hub: HubCaches, selection: Selection) -> Spokes:
    if manager.settings.spokes is None:
        raise AssertionError("without settings nothing is made")
    return Spokes(
        manager.client,
        manager.permissions or manager.client,
        hub,
        manager.cluster.secrets,
        partial(_occupied, manager),
        selection,
        manager.settings.spokes,
        manager.instance,
        manager.clock,
        fraction=manager.fraction,
        hook=manager.controller_hook,
    )


def _occupied(manager: Manager, name: str) -> bool:
    """Whether an unfinished Workload is recorded on a worker, or copies are still there."""
    if manager.cluster.placed_on(name):
        return True
    worker = manager.workers.get(name)
    # An eviction erases the name at once: what is still there is stopped and removed first.
    return worker is not None and any(True for _ in workloads_on(worker))
