"""Names of OCM's and Kueue's contracts, and our own: kinds, labels, annotations, finalizers, condition types.

A *spoke* is what OCM (Open Cluster Management) calls a cluster that it manages: a ManagedCluster on the hub, which is
the manager cluster here. The hub has a namespace of the same name for each spoke.
"""

from __future__ import annotations

import re
from typing import Final

from multikueue.core.model.kinds import OCM_GROUP
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig, labels_of

PLACEMENT_LABEL: Final = "cluster.open-cluster-management.io/placement"
"""On a PlacementDecision: its Placement."""
SCHEDULING_DISABLED: Final = "cluster.open-cluster-management.io/experimental-scheduling-disable"
"""On a Placement: another scheduler writes its decisions, and need not write its status."""
ADDON_FINALIZER: Final = "kueue-addon.open-cluster-management.io/admissioncheck-cleanup"
"""OCM's kueue-addon puts it on every AdmissionCheck of its controllerName, and takes it off when that is deleted."""
KUEUE_FINALIZER: Final = "kueue.x-k8s.io/resource-in-use"
"""Kueue keeps it on an AdmissionCheck while a ClusterQueue uses that."""

HUB: Final = "local-cluster"
"""What OCM calls the hub where that is a ManagedCluster, too: never a worker, unless somebody makes it one."""
FINALIZER: Final = "multikueue.dev/placement-cleanup"
"""Ours on an AdmissionCheck: its MultiKueueConfig is left or deleted before it goes."""
CONFIG_LABEL: Final = "multikueue.dev/placement"
"""On a MultiKueueConfig that we fill: the Placement."""
INVENTORY_LABEL: Final = "multikueue.dev/inventory"
"""On a MultiKueueConfig that an inventory fills, and on the MultiKueueClusters made for it: the config's name."""
WRITTEN_ANNOTATION: Final = "multikueue.dev/clusters-written-at"
"""On a config that we fill: when we wrote its list last (RFC 3339). The order waits for it, also after a restart."""

ACTIVE: Final = "Active"
CONFLICT_CONDITION: Final = "PlacementConflict"
"""On an AdmissionCheck that OCM's addon handles: a condition type of our own, because the addon writes `Active`."""
MAX_CLUSTERS: Final = 20
"""The API's limit on `spec.clusters`."""


MANAGED_CLUSTER: Final = Resource(GVK(OCM_GROUP, "v1", "ManagedCluster"), "managedclusters", namespaced=False)
MANAGED_SERVICE_ACCOUNT: Final = Resource(
    GVK("authentication.open-cluster-management.io", "v1beta1", "ManagedServiceAccount"), "managedserviceaccounts"
)
CLUSTER_PERMISSION: Final = Resource(
    GVK("rbac.open-cluster-management.io", "v1alpha1", "ClusterPermission"), "clusterpermissions"
)

BASE_NAME: Final = "multikueue"
"""The ManagedServiceAccount, its token's Secret and the ClusterPermission in the namespace of each spoke, and the role
on the spoke: the names that OCM's kueue-addon gives them, and that its plugin for tokens is set up with."""
AGENT_NAMESPACE: Final = "open-cluster-management-agent-addon"
"""On a spoke: where the ServiceAccount of a ManagedServiceAccount is."""
CLUSTER_MANAGER: Final = "open-cluster-management"
"""OCM as the manager of a ClusterProfile, in its label and its spec, and as an access provider."""
MANAGER_LABEL: Final = "x-k8s.io/cluster-manager"
CLUSTER_NAME_LABEL: Final = "open-cluster-management.io/cluster-name"
SYNC_LABEL: Final = "authentication.open-cluster-management.io/sync-to-clusterprofile"
"""On a ManagedServiceAccount: OCM copies the token beside the ClusterProfiles of its cluster."""
TOKEN_LABEL: Final = "authentication.open-cluster-management.io/is-managed-serviceaccount"
"""On the Secret with the token of a ManagedServiceAccount."""
HUB_LABEL: Final = "local-cluster"
"""On the ManagedCluster that is the hub itself: `true`."""

_OLDER_SECRET: Final = re.compile(r"kueue-admin-(.+)-kubeconfig")
"""The Secret of a spoke in the recipe of 2024."""


def kubeconfig_secret(spoke: str) -> str:
    """The Secret in Kueue's namespace with a spoke's kubeconfig."""
    return f"{BASE_NAME}-{spoke}"


def synced_secret(spoke: str) -> str:
    """The Secret in Kueue's namespace to which OCM copies the token of a spoke."""
    return f"{spoke}-{BASE_NAME}"


def older_secret(spoke: str) -> str:
    """The Secret in Kueue's namespace with a spoke's kubeconfig, in the recipe of 2024."""
    return f"kueue-admin-{spoke}-kubeconfig"


def kubeconfig_location(worker: Json) -> str:
    """The Secret that a MultiKueueCluster names; empty if it has its kubeconfig from elsewhere."""
    reference = dig(worker, "spec", "clusterSource", "kubeConfig")
    is_secret = (dig(reference, "locationType") or "Secret") == "Secret"
    return str(dig(reference, "location") or "") if is_secret else ""


def older_spoke(worker: Json) -> str:
    """The spoke of a MultiKueueCluster of the recipe of 2024; empty if it is none.

    There it is named PLACEMENT-SPOKE; only its Secret tells where the one ends and the other begins.
    """
    match = _OLDER_SECRET.fullmatch(kubeconfig_location(worker))
    name = str(dig(worker, "metadata", "name") or "")
    return match[1] if match is not None and name.endswith(f"-{match[1]}") else ""


def is_hub(managed: Json) -> bool:
    """Whether a ManagedCluster is the hub itself: it is the manager, and no worker of its own."""
    return labels_of(managed).get(HUB_LABEL) == "true" or dig(managed, "metadata", "name") == HUB_LABEL
