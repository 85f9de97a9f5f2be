"""ClusterProfiles: one for each cluster of a bound set, in the namespace of the binding, with how to get there."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import attrs

from multikueue.core.machinery.action import Action
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, labels_of, name_of
from multikueue.protocols import ApiClient
from multikueue.sandbox.objects import built
from multikueue.sandbox.ocm.kinds import (
    CLUSTER_NAME_LABEL,
    EXEC_EXTENSION,
    MANAGED_CLUSTER,
    MANAGER,
    MANAGER_LABEL,
    PROFILE,
    PROFILE_SET_LABEL,
    SET_BINDING,
    SET_LABEL,
)
from multikueue.sandbox.ocm.scheduling.deciding import bound_sets, in_sets
from multikueue.sandbox.ocm.spokes import Spoke
from multikueue.sandbox.ocm.writing import ensure, remove, write_status

_CONDITIONS = {"ControlPlaneHealthy": "ManagedClusterConditionAvailable", "Joined": "ManagedClusterJoined"}
"""A profile's conditions, and those of the ManagedCluster that they are copied from."""


def profile(namespace: str, name: str) -> Json:
    """The ClusterProfile of a cluster."""
    labels = {MANAGER_LABEL: MANAGER, CLUSTER_NAME_LABEL: name}
    spec = {"displayName": name, "clusterManager": {"name": MANAGER}}
    return built(PROFILE, name, namespace, labels=labels, spec=spec)


def access_provider(name: str, spoke: Spoke) -> Json:
    """How to get to a cluster; the token is for a plugin to find."""
    cluster: Json = {
        "server": spoke.url,
        "extensions": [{"name": EXEC_EXTENSION, "extension": {"clusterName": name}}],
    }
    if spoke.ca_pem:
        cluster["certificate-authority-data"] = base64.b64encode(spoke.ca_pem.encode()).decode()
    return {"name": MANAGER, "cluster": cluster}


def profile_status(cluster: Json, old: Json) -> Json:
    """What a profile tells of its ManagedCluster, without how to get there."""
    copied = []
    for kind, source in _CONDITIONS.items():
        there, before = condition(cluster, source), condition(old, kind)
        if there is None:
            continue
        same = before is not None and before["status"] == there["status"]
        since = before["lastTransitionTime"] if same and before is not None else there["lastTransitionTime"]
        copied.append({**there, "type": kind, "lastTransitionTime": since})
    claims = dig(cluster, "status", "clusterClaims") or []
    return {
        "version": {"kubernetes": dig(cluster, "status", "version", "kubernetes") or ""},
        "properties": [{"name": claim["name"], "value": claim["value"]} for claim in claims],
        "conditions": copied,
    }


@attrs.define(eq=False)
class ProfileReconciler:
    """Keeps the ClusterProfiles of the namespaces. Keys are namespaces with a binding or a profile."""

    client: ApiClient
    spokes: Mapping[str, Spoke]

    async def reconcile(self, namespace: str) -> Action:
        """Bring the profiles of one namespace in line with its bindings."""
        bound = bound_sets((await self.client.list(SET_BINDING, namespace=namespace)).items)
        clusters = (await self.client.list(MANAGED_CLUSTER)).items
        wanted = {
            name_of(cluster): cluster for cluster in clusters if in_sets(cluster, bound) and not is_terminating(cluster)
        }
        ours = await self.client.list(PROFILE, namespace=namespace, label_selector=f"{MANAGER_LABEL}={MANAGER}")
        for existing in ours.items:
            if name_of(existing) not in wanted:
                await remove(self.client, PROFILE, existing)
        for name, cluster in wanted.items():
            await self._write(namespace, name, cluster)
        return Action.done()

    async def _write(self, namespace: str, name: str, cluster: Json) -> None:
        made = profile(namespace, name)
        if cluster_set := labels_of(cluster).get(SET_LABEL):
            made["metadata"]["labels"][PROFILE_SET_LABEL] = cluster_set
        there = await ensure(self.client, PROFILE, made)
        status = profile_status(cluster, there)
        if name in self.spokes:
            others = [
                provider for provider in dig(there, "status", "accessProviders") or [] if provider["name"] != MANAGER
            ]
            status["accessProviders"] = [*others, access_provider(name, self.spokes[name])]
        await write_status(self.client, PROFILE, there, status)
