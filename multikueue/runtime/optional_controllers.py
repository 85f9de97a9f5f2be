"""What an inventory does in a manager: it fills configs, and makes the workers that they list."""

from __future__ import annotations

from functools import partial

import attrs

from multikueue.core.inventory.settings import SpokeSettings
from multikueue.protocols import ApiClient, PlacementHook
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.selection import PlacementSelection, PlacementSelector
from multikueue.runtime.inventory.service import PlacementController, PlacementOptions
from multikueue.runtime.inventory.spokes import Spokes
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.part import Part, Process
from multikueue.runtime.worker_pool import WorkerPool, workloads_on


@attrs.frozen
class InventoryOptions:
    """What is filled, and what is made."""

    placement: PlacementOptions
    hook: PlacementHook | None
    spokes: SpokeSettings | None
    """Of the MultiKueueClusters that are made for selected ManagedClusters. None: none are."""
    selection: PlacementSelector | None
    """Which ManagedClusters are. None: those that placement checks select."""
    permissions: ApiClient | None
    """Who writes ClusterPermissions. None: the client of the manager."""


def inventory(
    cluster: ManagerCluster, workers: WorkerPool, options: InventoryOptions, process: Process
) -> tuple[Part, Spokes | None]:
    """Build what the options ask for, on the caches of a manager before they run; and what makes workers, if any."""
    occupied = partial(_occupied, cluster, workers)
    hub = HubCaches.shared(cluster.workloads.informer, cluster.checks, cluster.configs, cluster.clusters, occupied)
    part, selection = Part(), options.selection
    if options.placement.wanted:
        found = PlacementController.build(
            cluster.client,
            options.placement,
            clock=process.clock,
            hub=hub,
            hook=options.hook,
            controller_hook=process.hook,
            fraction=process.fraction,
            instance=process.instance,
        )
        part = Part(found.controllers, found.services)
        if selection is None and found.ocm is not None:
            selection = PlacementSelection(hub, found.ocm)
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
    """Whether an unfinished Workload is recorded on a worker, or copies are still there."""
    if manager.placed_on(name):
        return True
    worker = workers.get(name)
    # An eviction erases the name at once: what is still there is stopped and removed first.
    return worker is not None and any(True for _ in workloads_on(worker))
