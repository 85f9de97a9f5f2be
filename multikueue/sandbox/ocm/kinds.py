"""The kinds that Open Cluster Management serves on its hub, and the labels that join its objects."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Resource

CLUSTER_GROUP: Final = "cluster.open-cluster-management.io"
MANAGED_CLUSTER: Final = Resource(GVK(CLUSTER_GROUP, "v1", "ManagedCluster"), "managedclusters", namespaced=False)
SET_BINDING: Final = Resource(GVK(CLUSTER_GROUP, "v1beta2", "ManagedClusterSetBinding"), "managedclustersetbindings")
PLACEMENT: Final = Resource(GVK(CLUSTER_GROUP, "v1beta1", "Placement"), "placements")
DECISION: Final = Resource(GVK(CLUSTER_GROUP, "v1beta1", "PlacementDecision"), "placementdecisions")
SCORE: Final = Resource(GVK(CLUSTER_GROUP, "v1alpha1", "AddOnPlacementScore"), "addonplacementscores")
PROFILE: Final = Resource(GVK("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile"), "clusterprofiles")
ACCOUNT: Final = Resource(
    GVK("authentication.open-cluster-management.io", "v1beta1", "ManagedServiceAccount"), "managedserviceaccounts"
)
PERMISSION: Final = Resource(
    GVK("rbac.open-cluster-management.io", "v1alpha1", "ClusterPermission"), "clusterpermissions"
)

_RBAC: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLE: Final = Resource(GVK(_RBAC, "v1", "ClusterRole"), "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(GVK(_RBAC, "v1", "ClusterRoleBinding"), "clusterrolebindings", namespaced=False)
ROLE: Final = Resource(GVK(_RBAC, "v1", "Role"), "roles")
ROLE_BINDING: Final = Resource(GVK(_RBAC, "v1", "RoleBinding"), "rolebindings")
SERVICE_ACCOUNT: Final = Resource(GVK("", "v1", "ServiceAccount"), "serviceaccounts")

SET_LABEL: Final = f"{CLUSTER_GROUP}/clusterset"
"""On a ManagedCluster: the set that it is in."""
GLOBAL_SET: Final = "global"
"""The set that every cluster is in."""
PLACEMENT_LABEL: Final = f"{CLUSTER_GROUP}/placement"
GROUP_INDEX_LABEL: Final = f"{CLUSTER_GROUP}/decision-group-index"
GROUP_NAME_LABEL: Final = f"{CLUSTER_GROUP}/decision-group-name"
UNSCHEDULED_ANNOTATION: Final = f"{CLUSTER_GROUP}/experimental-scheduling-disable"
"""On a Placement, `true`: somebody else decides."""

MANAGER: Final = "open-cluster-management"
"""The manager of OCM's ClusterProfiles, and the name of their access provider."""
MANAGER_LABEL: Final = "x-k8s.io/cluster-manager"
CLUSTER_NAME_LABEL: Final = "open-cluster-management.io/cluster-name"
PROFILE_SET_LABEL: Final = "multicluster.x-k8s.io/clusterset"
SYNC_LABEL: Final = "authentication.open-cluster-management.io/sync-to-clusterprofile"
"""On a ManagedServiceAccount, `true`: its token is copied to where the ClusterProfiles of the cluster are."""
SYNCED_LABEL: Final = "authentication.open-cluster-management.io/synced-from"
"""On a copied Secret: the cluster and the account."""
TOKEN_LABEL: Final = "authentication.open-cluster-management.io/is-managed-serviceaccount"
EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The extension of an access provider that plugins get as their configuration."""
AGENT_NAMESPACE: Final = "open-cluster-management-agent-addon"
"""Where the accounts are on a managed cluster."""
