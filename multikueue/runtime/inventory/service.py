"""The placement check and inventories put together: in a manager, or alone beside another MultiKueue controller."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import anyio
import anyio.abc
import attrs

from multikueue.core.inventory.settings import PlacementSettings
from multikueue.core.model.names import ObjectKey
from multikueue.hooks import unfailing
from multikueue.kube.informers.informer import Informer
from multikueue.protocols import ApiClient, ControllerHook, PlacementHook
from multikueue.runtime.controller import Controller, KeyQueue, Process
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.inventory.caches import HubCaches, OcmCaches, profile_informer, start_hub
from multikueue.runtime.inventory.executor import Executor
from multikueue.runtime.inventory.handlers import PlacementHandlers
from multikueue.runtime.inventory.reconcilers import InventoryReconciler, PlacementReconciler
from multikueue.runtime.loop import Task


@attrs.frozen
class Inventory:
    """ClusterProfiles with certain labels fill a config."""

    selector: str
    """A label selector, as kubectl takes it."""
    config: str
    """The name of the MultiKueueConfig."""
    settings: PlacementSettings = attrs.field(factory=PlacementSettings)


@attrs.frozen
class PlacementOptions:
    """Which configs are filled, and by what."""

    checks: PlacementSettings | None = None
    """Of placement checks; None: they are somebody else's."""
    inventories: tuple[Inventory, ...] = ()
    namespace: str = "kueue-system"
    """Where Placements and ClusterProfiles are."""

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do."""
        return self.checks is not None or bool(self.inventories)


@attrs.define(eq=False)
class PlacementController:
    """Fills MultiKueueConfigs from an inventory.

    `build` makes one with caches of its own, for a program that runs nothing else: another MultiKueue controller, as
    Kueue's own, may dispatch. Let one of them run at a time, as by `Elector`.
    """

    hub: HubCaches
    controllers: tuple[Controller[ObjectKey], ...]
    services: tuple[Task, ...]
    """What runs beside the controllers; nothing waits for it."""
    ocm: OcmCaches | None = None
    """What OCM's Placements have decided, with placement checks."""

    @classmethod
    def build(
        cls,
        client: ApiClient,
        options: PlacementOptions,
        *,
        clock: Callable[[], datetime],
        hub: HubCaches | None = None,
        hook: PlacementHook | None = None,
        controller_hook: ControllerHook | None = None,
        fraction: Callable[[], float] = lambda: 0.0,
        instance: str = "multikueue",
    ) -> PlacementController:
        """Build it; `run` works.

        Args:
            client: of the manager cluster.
            options: what is filled.
            clock: the wall clock.
            hub: the caches of a manager, before they run; None: caches of its own.
            hook: for metrics.
            controller_hook: for metrics of reconciles.
            fraction: the source of jitter: numbers in [0, 1).
            instance: who writes the events: the process's name.
        """
        hub, hook = hub or HubCaches.build(client, fraction), unfailing(hook)
        process = Process(clock, fraction, instance, controller_hook)
        events = EventRecorder(client, "multikueue-placement", instance, clock)
        executor = Executor(client, events)
        checks, inventories = KeyQueue[ObjectKey](), KeyQueue[ObjectKey]()
        names = frozenset(inventory.config for inventory in options.inventories)
        handlers = PlacementHandlers(hub, checks, inventories, names)
        controllers, services = list[Controller[ObjectKey]](), list[Task]([events.run])
        ocm = None
        if options.checks is not None:
            ocm = OcmCaches.build(client, options.namespace, handlers.all_checks, fraction)
            reconciler = PlacementReconciler(hub, ocm, executor, options.checks, clock, hook)
            controllers.append(process.controller("multikueue_placement", reconciler, checks))
            services.append(ocm.run)
        profiles = {
            fills.config: (_profiles(client, options.namespace, fills, inventories, fraction), fills.settings)
            for fills in options.inventories
        }
        if profiles:
            filling = InventoryReconciler(hub, profiles, executor, clock, hook)
            controllers.append(process.controller("multikueue_inventory", filling, inventories))
            services += [informer.run for informer, _ in profiles.values()]
        handlers.listen(ocm)
        return cls(hub, tuple(controllers), tuple(services), ocm)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Fill configs until cancelled; ready once the caches of Kueue's kinds are complete."""
        async with anyio.create_task_group() as tasks:
            await start_hub(self.hub, tasks)
            for service in (*self.services, *(controller.run for controller in self.controllers)):
                tasks.start_soon(service)
            task_status.started()

    @property
    def idle(self) -> bool:
        """Whether no controller has anything to do right now."""
        return all(controller.idle for controller in self.controllers)


def _profiles(
    client: ApiClient,
    namespace: str,
    inventory: Inventory,
    queue: KeyQueue[ObjectKey],
    fraction: Callable[[], float],
) -> Informer:
    def changed() -> None:
        queue.enqueue(ObjectKey("", inventory.config))

    return profile_informer(client, namespace, inventory.selector, changed, fraction)
