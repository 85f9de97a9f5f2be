"""What only some managers do: an inventory fills configs, and makes the workers that they list."""

from __future__ import annotations

from functools import partial

import attrs

from multikueue.core.inventory.settings import SpokeSettings
from multikueue.core.machinery.connection import CREDENTIALS
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import ObjectKey
from multikueue.protocols import ApiClient, PlacementHook
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.selection import PlacementSelection, PlacementSelector
from multikueue.runtime.inventory.service import PlacementController, PlacementOptions
from multikueue.runtime.inventory.spokes import Spokes
from multikueue.runtime.parts import Part, PartHost
from multikueue.runtime.workers.pool import WorkerPool, workloads_on


@attrs.frozen
class InventoryOptions:
    """What is filled, and what is made."""

    placement: PlacementOptions = attrs.field(factory=PlacementOptions)
    """Which MultiKueueConfigs are filled from an inventory. None by default."""
    hook: PlacementHook | None = None
    """Observes configs that are filled, for metrics."""
    spokes: SpokeSettings | None = None
    """Of the MultiKueueClusters that are made for selected ManagedClusters. None: none are."""
    selection: PlacementSelector | None = None
    """Which ManagedClusters are. None: those that placement checks select."""
    permissions: ApiClient | None = None
    """Who writes ClusterPermissions: whoever may create one can grant any role on a spoke. None: the client of the
    manager."""

    def part(self, host: PartHost) -> Part:
        """What a manager does of it; see `Manager.parts`."""
        return inventory(host, self)[0]


def inventory(host: PartHost, options: InventoryOptions) -> tuple[Part, Spokes | None]:
    """Build what the options ask for; and what makes workers, if any."""
    cluster, workers, process = host.manager, host.workers, host.process
    occupied = partial(_occupied, cluster, workers)
    hub = HubCaches.shared(cluster.workloads, cluster.checks, cluster.configs, cluster.clusters, occupied)
    part, selection = Part(), options.selection
    if options.placement.wanted:
        placements = PlacementController.build(
            cluster.client,
            options.placement,
            clock=process.clock,
            hub=hub,
            hook=options.hook,
            controller_hook=process.hook,
            fraction=process.fraction,
            instance=process.instance,
        )
        part = Part(placements.controllers, placements.services)
        if selection is None and placements.ocm is not None:
            selection = PlacementSelection(hub, placements.ocm)
    if options.spokes is None or selection is None:
        return part, None
    spokes = Spokes(
        cluster.client,
        options.permissions or cluster.client,
        hub,
        cluster.secrets,
        selection,
        options.spokes,
        process,
    )
    return Part((*part.controllers, spokes.controller), (*part.services, spokes.run)), spokes


def _occupied(manager: ManagerCluster, workers: WorkerPool, name: str) -> bool:
    """Whether an unfinished Workload is recorded on a worker, or copies are still there, or may be."""
    if manager.placed_on(name):
        return True
    worker = workers.get(name)
    # An eviction erases the name at once: what is still there is stopped and removed first.
    if worker is None:
        return True
    if worker.known is None or not worker.known.have_read(None):
        # This process has not looked yet. Without credentials it cannot, and if there never were any there is nothing.
        ever = condition(manager.clusters.get(ObjectKey("", name)) or {}, CREDENTIALS) is not None
        return ever or worker.state.wanted is not None
    return any(True for _ in workloads_on(worker))
