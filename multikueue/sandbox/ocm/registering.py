"""Registration: what the hub and the agents say of ManagedClusters and set bindings, and the namespace of a cluster."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.kinds import NAMESPACE
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, name_of
from multikueue.protocols import ApiClient, read
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import ACCOUNT, GLOBAL_SET, MANAGED_CLUSTER, PERMISSION, SET_BINDING, SET_LABEL
from multikueue.sandbox.ocm.spokes import Spoke
from multikueue.sandbox.ocm.writing import ensure, remove, write_status

UNREACHABLE: Final = "cluster.open-cluster-management.io/unreachable"
UNAVAILABLE: Final = "cluster.open-cluster-management.io/unavailable"


def managed_cluster(name: str, spoke: Spoke, cluster_set: str = "default") -> Json:
    """The ManagedCluster of a spoke."""
    config: Json = {"url": spoke.url}
    if spoke.ca_pem:
        config["caBundle"] = base64.b64encode(spoke.ca_pem.encode()).decode()
    spec = {"hubAcceptsClient": True, "managedClusterClientConfigs": [config]}
    return built(MANAGED_CLUSTER, name, labels={SET_LABEL: cluster_set, **spoke.labels}, spec=spec)


def set_binding(namespace: str, cluster_set: str = GLOBAL_SET) -> Json:
    """What lets the Placements of a namespace choose from a set."""
    return built(SET_BINDING, cluster_set, namespace, spec={"clusterSet": cluster_set})


async def join(client: ApiClient, namespace: str, spokes: Mapping[str, Spoke]) -> None:
    """What an administrator does with `clusteradm`: clusters join, and Placements of a namespace may choose them.

    Raises:
        ApiError: the hub refuses it, or does not serve the kinds.
    """
    await ensure(client, NAMESPACE, built(NAMESPACE, namespace))
    await ensure(client, SET_BINDING, set_binding(namespace))
    for name, spoke in spokes.items():
        await ensure(client, MANAGED_CLUSTER, managed_cluster(name, spoke))


@attrs.define(eq=False)
class ClusterReconciler:
    """Looks after ManagedClusters. Keys are theirs."""

    client: ApiClient
    clock: Callable[[], datetime]
    spokes: Mapping[str, Spoke]

    async def reconcile(self, key: ObjectKey) -> Action:
        """Give a cluster its namespace, its conditions, and the taint of one that does not report."""
        cluster = await read(self.client, MANAGED_CLUSTER, key)
        if cluster is not None and is_terminating(cluster):
            await self._detach(key.name)
        if cluster is None or is_terminating(cluster) or not dig(cluster, "spec", "hubAcceptsClient"):
            return Action.done()
        await ensure(self.client, NAMESPACE, built(NAMESPACE, key.name))
        spoke = self.spokes.get(key.name)
        available = spoke is not None and spoke.available
        cluster = await self._tainted(cluster, key.name, available=available)
        status: Json = {"conditions": self._conditions(joined=spoke is not None, available=available)}
        if spoke is not None:
            status["version"] = {"kubernetes": spoke.version}
        await write_status(self.client, MANAGED_CLUSTER, cluster, status)
        return Action.done()

    async def _detach(self, name: str) -> None:
        """Take away what lets others reach a cluster that leaves, at once."""
        for kind in (ACCOUNT, PERMISSION):
            for obj in (await self.client.list(kind, namespace=name)).items:
                await remove(self.client, kind, obj)

    async def _tainted(self, cluster: Json, name: str, *, available: bool) -> Json:
        taints = dig(cluster, "spec", "taints") or []
        others = [taint for taint in taints if taint["key"] != UNREACHABLE]
        if not available and len(others) == len(taints):
            others = [*taints, {"key": UNREACHABLE, "effect": "NoSelect", "timeAdded": timestamp(self.clock())}]
        elif not available:
            others = taints
        if others == taints:
            return cluster
        return await self.client.merge_patch(MANAGED_CLUSTER, ObjectKey("", name), {"spec": {"taints": others}})

    def _conditions(self, *, joined: bool, available: bool) -> list[Json]:
        now = self.clock()
        accepted = ("HubClusterAdminAccepted", "Accepted by hub cluster admin")
        conditions = [new_condition("HubAcceptedManagedCluster", True, *accepted, now=now)]
        if not joined:
            return conditions
        conditions.append(
            new_condition("ManagedClusterJoined", True, "ManagedClusterJoined", "Managed cluster joined", now=now)
        )
        if available:
            said = ("ManagedClusterAvailable", "Managed cluster is available")
            return [*conditions, new_condition("ManagedClusterConditionAvailable", True, *said, now=now)]
        late = ("ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.")
        unknown = new_condition("ManagedClusterConditionAvailable", False, *late, now=now)
        return [*conditions, {**unknown, "status": "Unknown"}]


@attrs.define(eq=False)
class BindingReconciler:
    """Binds sets: every set is there, and a binding has to have its name."""

    client: ApiClient
    clock: Callable[[], datetime]

    async def reconcile(self, key: ObjectKey) -> Action:
        """Say whether a binding is valid."""
        binding = await read(self.client, SET_BINDING, key)
        if binding is None:
            return Action.done()
        bound = dig(binding, "spec", "clusterSet") == name_of(binding)
        said = ("ClusterSetBound", "") if bound else ("ClusterSetNotFound", "it has to have the name of its set")
        condition = new_condition("Bound", bound, *said, now=self.clock())
        await write_status(self.client, SET_BINDING, binding, {"conditions": [condition]})
        return Action.done()
