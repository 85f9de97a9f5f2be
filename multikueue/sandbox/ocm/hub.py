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
from multikueue.kube.informer import Informer
from multikueue.kube.informer_start import start_informers
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
    _clusters: Controller[ObjectKey] = attrs.field(init=False)
    _bindings: Controller[ObjectKey] = attrs.field(init=False)
    _placements: Controller[ObjectKey] = attrs.field(init=False)
    _profiles: Controller[str] = attrs.field(init=False)
    _accounts: Controller[ObjectKey] = attrs.field(init=False)
    _permissions: Controller[ObjectKey] = attrs.field(init=False)
    _copies: Controller[ObjectKey] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        client, clock, spokes = self.client, self.clock, self.spokes
        self._caches = {kind: Informer(client, kind, on_change=partial(self._changed, kind)) for kind in _WATCHED}
        self._clusters = Controller("ocm-cluster", ClusterReconciler(client, clock, spokes))
        self._bindings = Controller("ocm-binding", BindingReconciler(client, clock))
        self._placements = Controller("ocm-placement", PlacementReconciler(client, clock, self.pause))
        self._profiles = Controller("ocm-profile", ProfileReconciler(client, spokes))
        self._accounts = Controller("ocm-account", AccountReconciler(client, clock, spokes))
        self._permissions = Controller("ocm-permission", PermissionReconciler(client, clock, spokes))
        self._copies = Controller("ocm-sync", SyncReconciler(client))

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started once everything there is has been seen."""
        async with anyio.create_task_group() as tasks:
            await start_informers(list(self._caches.values()), tasks)
            for controller in self._controllers:
                tasks.start_soon(controller.run)
            task_status.started()

    def changed(self, name: str) -> None:
        """A spoke has become available, or is not any more."""
        self._clusters.enqueue(ObjectKey("", name))
        for kind, controller in ((ACCOUNT, self._accounts), (PERMISSION, self._permissions)):
            for key in self._keys(kind):
                if key.namespace == name:
                    controller.enqueue(key)

    @property
    def idle(self) -> bool:
        """Whether nothing is due."""
        return all(controller.idle for controller in self._controllers)

    @property
    def _controllers(self) -> list[Controller[Any]]:
        return [
            self._clusters,
            self._bindings,
            self._placements,
            self._profiles,
            self._accounts,
            self._permissions,
            self._copies,
        ]

    def _changed(self, kind: Resource, key: ObjectKey, old: Json | None, new: Json | None) -> None:
        own: dict[Resource, Controller[ObjectKey]] = {
            MANAGED_CLUSTER: self._clusters,
            SET_BINDING: self._bindings,
            PLACEMENT: self._placements,
            ACCOUNT: self._accounts,
            PERMISSION: self._permissions,
            PROFILE: self._copies,
        }
        if kind in own:
            own[kind].enqueue(key)
        if kind in (MANAGED_CLUSTER, SET_BINDING, SCORE):
            self._look_again(PLACEMENT, self._placements)
        if kind in (MANAGED_CLUSTER, SET_BINDING, PROFILE):
            for namespace in self._bound_namespaces(key.namespace):
                self._profiles.enqueue(namespace)
        if kind == DECISION:
            name = labels_of(new or old or {"metadata": {}}).get(PLACEMENT_LABEL)
            if name:
                self._placements.enqueue(ObjectKey(key.namespace, name))
        if kind == SECRET:
            self._accounts.enqueue(key)
        if kind in (SECRET, ACCOUNT):
            self._look_again(PROFILE, self._copies)

    def _look_again(self, kind: Resource, controller: Controller[ObjectKey]) -> None:
        for key in self._keys(kind):
            controller.enqueue(key)

    def _keys(self, kind: Resource) -> list[ObjectKey]:
        return list(self._caches[kind].keys())

    def _bound_namespaces(self, changed: str) -> set[str]:
        """The namespaces with a binding, and the one of what has changed."""
        found = {key.namespace for key in self._keys(SET_BINDING)}
        return found | ({changed} if changed else set())
