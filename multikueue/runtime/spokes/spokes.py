"""The reconciler of spokes put together with its caches and event handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import name_of
from multikueue.core.spokes.names import kubeconfig_secret, older_secret, synced_secret
from multikueue.core.spokes.ownership import spokes_of
from multikueue.core.spokes.settings import SpokeSettings
from multikueue.kube.informer import Informer
from multikueue.protocols import ApiClient, ControllerHook
from multikueue.runtime.controller import Controller
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.placement.caches import HubCaches
from multikueue.runtime.spokes.executor import SpokeExecutor
from multikueue.runtime.spokes.informers import SpokeInformers
from multikueue.runtime.spokes.reading import SpokeReader
from multikueue.runtime.spokes.reconciler import SpokeReconciler
from multikueue.runtime.spokes.selection import Selection

CONCURRENCY: Final = 4
"""Spokes reconciled at a time."""


@attrs.define(eq=False)
class Spokes:
    """The workers that are made for selected ManagedClusters: nothing is done before `run`."""

    client: ApiClient
    permissions: ApiClient
    """Who writes ClusterPermissions."""
    hub: HubCaches
    secrets: Informer
    """Of Kueue's namespace. Both are run by somebody else, and later."""
    occupied: Callable[[str], bool]
    """Whether a worker has Workloads."""
    selection: Selection
    settings: SpokeSettings
    instance: str
    clock: Callable[[], datetime]
    fraction: Callable[[], float] = attrs.field(default=lambda: 0.0, kw_only=True)
    hook: ControllerHook | None = attrs.field(default=None, kw_only=True)
    informers: SpokeInformers = attrs.field(init=False)
    controller: Controller[ObjectKey] = attrs.field(init=False)
    reconciler: SpokeReconciler = attrs.field(init=False)
    _events: EventRecorder = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Build each part from those before it."""
        settings = self.settings
        self.informers = SpokeInformers.build(
            self.client, settings, self.enqueue, self.enqueue_all, fraction=self.fraction
        )
        self._events = EventRecorder(self.client, "multikueue-ocm", instance=self.instance, clock=self.clock)
        reader = SpokeReader(
            self.client, self.hub, self.secrets, self.occupied, self.informers, self.selection, settings
        )
        executor = SpokeExecutor(self.client, self.permissions, reader.caches, self._events)
        self.reconciler = SpokeReconciler(reader, executor, self._events, settings, self.clock)
        self.controller = Controller(
            "multikueue_spoke", self.reconciler, concurrency=CONCURRENCY, fraction=self.fraction, hook=self.hook
        )
        for informer in (self.hub.clusters, self.hub.configs, self.secrets):
            informer.subscribe(partial(self._changed, informer.resource))
        self.selection.listen(self.enqueue, self.enqueue_all)

    async def run(self) -> None:
        """Keep the caches and send events until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.informers.run)
            tasks.start_soon(self._events.run)

    def problem(self, cluster: str) -> str:
        """Why a ManagedCluster is no worker; empty: nothing is wrong, or nothing is known."""
        return self.reconciler.problems.get(cluster, "")

    def enqueue(self, spoke: str) -> None:
        """Have a spoke looked at."""
        self.controller.enqueue(ObjectKey("", spoke))

    def enqueue_all(self) -> None:
        """Have all looked at: a kind can be read now, or what is selected has changed."""
        informers = self.informers
        names = [name_of(cluster) for cluster in informers.clusters.values()]
        names += [key.namespace for key in (*informers.accounts.keys(), *informers.permissions.keys())]
        names += [name for worker in self.hub.clusters.values() for name in spokes_of(worker)]
        for name in dict.fromkeys(names):
            self.enqueue(name)

    def _changed(self, resource: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        """Something that the manager's own caches show has changed."""
        for name in dict.fromkeys(self._concerned(resource, key, [one for one in (old, new) if one is not None])):
            self.enqueue(name)

    def _concerned(self, resource: Resource, key: ObjectKey, objects: Iterable[Json]) -> Iterator[str]:
        if resource == MULTIKUEUE_CLUSTER:
            for changed in objects:
                yield from spokes_of(changed)
        elif resource == MULTIKUEUE_CONFIG:
            for name in (name for config in objects for name in clusters(config)):
                worker = self.hub.clusters.get(ObjectKey("", name))
                yield from spokes_of(worker) if worker is not None else (name,)
        elif resource == SECRET:
            yield from _possible(key.name)


def _possible(secret: str) -> Iterator[str]:
    """The spokes that a Secret of this name may belong to."""
    for naming in (kubeconfig_secret, synced_secret, older_secret):
        before, _, after = naming("\0").partition("\0")
        name = secret[len(before) : len(secret) - len(after)]
        if name and naming(name) == secret:
            yield name
