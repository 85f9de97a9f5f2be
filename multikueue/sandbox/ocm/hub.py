"""The hub itself: informers, controllers, and what a change of one object means for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import anyio
import anyio.abc
import attrs

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import labels_of
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.informer_start import start_informers
from multikueue.protocols import ApiClient
from multikueue.runtime.controller import Controller
from multikueue.runtime.loop import utc_now
from multikueue.sandbox.ocm.accounts import AccountReconciler, SyncReconciler
from multikueue.sandbox.ocm.kinds import (
    ACCOUNT,
    DECISION,
    MANAGED_CLUSTER,
    PERMISSION,
    PLACEMENT,
    PLACEMENT_LABEL,
    PROFILE,
    SCORE,
    SET_BINDING,
)
from multikueue.sandbox.ocm.permissions import PermissionReconciler
from multikueue.sandbox.ocm.placing import PlacementReconciler
from multikueue.sandbox.ocm.profiling import ProfileReconciler
from multikueue.sandbox.ocm.registering import BindingReconciler, ClusterReconciler
from multikueue.sandbox.ocm.spokes import Spoke

_WATCHED: Final = (
    MANAGED_CLUSTER,
    SET_BINDING,
    PLACEMENT,
    DECISION,
    SCORE,
    PROFILE,
    ACCOUNT,
    PERMISSION,
    SECRET,
)


@attrs.define(eq=False)
class OcmHub:
    """Open Cluster Management for the sandbox: an ordinary client of the hub's API server, and agents on the spokes.

    It schedules Placements, keeps ClusterProfiles, issues tokens and applies permissions. What is not here: sets as
    objects (every set is there), spread constraints, and the proxy (a profile names the cluster's own address).
    """

    client: ApiClient
    """Its server has to serve the kinds: see `crds.install_ocm`."""
    spokes: Mapping[str, Spoke]
    """By the name of their ManagedCluster. May change while it runs: call `changed` then."""
    clock: Callable[[], datetime] = attrs.field(default=utc_now, kw_only=True)
    pause: float = attrs.field(default=0.0, kw_only=True)
    """Seconds between two writes of a decision."""
    _caches: dict[Resource, Informer] = attrs.field(init=False)
    _controllers: dict[Resource | None, Controller[Any]] = attrs.field(init=False)
    """By the kind whose keys it takes; None: the one that takes namespaces."""

    def __attrs_post_init__(self) -> None:
        client, clock, spokes = self.client, self.clock, self.spokes
        self._caches = {kind: Informer(client, kind, on_change=partial(self._changed, kind)) for kind in _WATCHED}
        self._controllers = {
            MANAGED_CLUSTER: Controller("ocm-cluster", ClusterReconciler(client, clock, spokes)),
            SET_BINDING: Controller("ocm-binding", BindingReconciler(client, clock)),
            PLACEMENT: Controller("ocm-placement", PlacementReconciler(client, clock, self.pause)),
            None: Controller("ocm-profile", ProfileReconciler(client, spokes)),
            ACCOUNT: Controller("ocm-account", AccountReconciler(client, clock, spokes)),
            PERMISSION: Controller("ocm-permission", PermissionReconciler(client, clock, spokes)),
            PROFILE: Controller("ocm-sync", SyncReconciler(client)),
        }

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once everything there is has been seen."""
        async with anyio.create_task_group() as tasks:
            await start_informers(list(self._caches.values()), tasks)
            for controller in self._controllers.values():
                tasks.start_soon(controller.run)
            task_status.started()

    def changed(self, name: str) -> None:
        """A spoke has become available, or is not any more."""
        self._controllers[MANAGED_CLUSTER].enqueue(ObjectKey("", name))
        for kind in (ACCOUNT, PERMISSION):
            for key in self._keys(kind):
                if key.namespace == name:
                    self._controllers[kind].enqueue(key)

    @property
    def idle(self) -> bool:
        """Whether nothing is due."""
        return all(controller.idle for controller in self._controllers.values())

    def _changed(self, kind: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        if kind in self._controllers:
            self._controllers[kind].enqueue(key)
        if kind in (MANAGED_CLUSTER, SET_BINDING, SCORE):
            self._look_again(PLACEMENT)
        if kind in (MANAGED_CLUSTER, SET_BINDING, PROFILE):
            for namespace in self._bound_namespaces(key.namespace):
                self._controllers[None].enqueue(namespace)
        if kind == DECISION:
            name = labels_of(new or old or {"metadata": {}}).get(PLACEMENT_LABEL)
            if name:
                self._controllers[PLACEMENT].enqueue(ObjectKey(key.namespace, name))
        if kind == SECRET:
            self._controllers[ACCOUNT].enqueue(key)
        if kind in (SECRET, ACCOUNT):
            self._look_again(PROFILE)

    def _look_again(self, kind: Resource) -> None:
        for key in self._keys(kind):
            self._controllers[kind].enqueue(key)

    def _keys(self, kind: Resource) -> list[ObjectKey]:
        return list(self._caches[kind].keys())

    def _bound_namespaces(self, changed: str) -> set[str]:
        """The namespaces with a binding, and the one of what has changed."""
        namespaces = {key.namespace for key in self._keys(SET_BINDING)}
        return namespaces | ({changed} if changed else set())
