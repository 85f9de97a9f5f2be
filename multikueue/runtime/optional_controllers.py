"""What only some managers do: an inventory fills configs, and makes the workers that they list; a dispatcher looks at
figures of workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.inventory.settings import SpokeSettings
from multikueue.core.machinery.connection import CREDENTIALS
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import ClusterName, ObjectKey
from multikueue.protocols import ApiClient, PlacementHook
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.controller import KeyQueue, Part, Process
from multikueue.runtime.inventory.caches import HubCaches
from multikueue.runtime.inventory.selection import PlacementSelection, PlacementSelector
from multikueue.runtime.inventory.service import PlacementController, PlacementOptions
from multikueue.runtime.inventory.spokes import Spokes
from multikueue.runtime.reconcilers.penalties import PenaltyReconciler
from multikueue.runtime.workers.pool import WorkerPool, workloads_on
from multikueue.runtime.workers.queue_room import WorkerRooms


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


def scored(
    dispatcher: Dispatcher,
    cluster: ManagerCluster,
    workers: WorkerPool,
    enqueue: Callable[[ObjectKey], object],
    process: Process,
) -> tuple[Part, WorkerRooms | None]:
    """What follows the workers' queues, and notes their failures, if the dispatcher looks at those; before anything
    runs."""
    if not isinstance(dispatcher, Scored):
        return Part(), None
    rooms = WorkerRooms(cluster, workers, enqueue, process.clock)
    workers.follow_figures(rooms.changed)
    cluster.clusters.subscribe(lambda key, _old, _new: rooms.changed(ClusterName(key.name)))
    penalties = PenaltyReconciler(cluster, KeyQueue(), process.clock)
    for handler in (rooms.job_changed, penalties.changed):
        cluster.workloads.informer.subscribe(handler)
    return Part((process.controller("multikueue_penalty", penalties, penalties.queue),), (rooms.run,)), rooms


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
