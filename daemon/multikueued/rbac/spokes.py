"""The rules for workers that are made of OCM's ManagedClusters."""

from __future__ import annotations

from multikueue.core.inventory.names import BASE_NAME, CLUSTER_PERMISSION, MANAGED_CLUSTER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.model.kinds import CLUSTER_PROFILE, KUEUE_GROUP, OCM_GROUP
from multikueue.core.model.names import Json
from multikueued.rbac.role_rule import merged, rule
from multikueued.settings.inventory import OcmSettings


def profile_rules() -> list[Json]:
    """In the namespace, for workers that ClusterProfiles describe."""
    return [rule(CLUSTER_PROFILE.gvk.group, [CLUSTER_PROFILE.plural], ["list", "watch"])]


def spoke_rules(ocm: OcmSettings) -> list[Json]:
    """In the whole manager cluster, for the workers of ManagedClusters: each has a namespace there."""
    accounts = account_rules() if ocm.clusters.credentials == "managedServiceAccount" else []
    return [*worker_rules(), *accounts, *(token_rules() if ocm.clusters.source == "kubeconfig" else [])]


def worker_rules() -> list[Json]:
    """Of these, whatever the settings are."""
    return [
        rule(OCM_GROUP, [MANAGED_CLUSTER.plural], ["list", "watch"]),
        rule(CLUSTER_PERMISSION.gvk.group, [CLUSTER_PERMISSION.plural], ["list", "watch"]),
        rule(KUEUE_GROUP, ["multikueueclusters"], ["create", "delete", "patch"]),
    ]


def account_rules() -> list[Json]:
    """Of these, for ManagedServiceAccounts."""
    group, plural = MANAGED_SERVICE_ACCOUNT.gvk.group, MANAGED_SERVICE_ACCOUNT.plural
    return [
        rule(group, [plural], ["list", "watch", "create"]),  # RBAC knows no name when an object is created
        rule(group, [plural], ["delete", "patch"], [BASE_NAME]),
    ]


def token_rules() -> list[Json]:
    """Of these, to write kubeconfigs: Secrets of all namespaces, but only those of this name."""
    return [rule("", ["secrets"], ["get"], [BASE_NAME])]


def spoke_namespace_rules(ocm: OcmSettings) -> list[Json]:
    """In the namespace, for the workers of ManagedClusters."""
    if ocm.clusters.source == "kubeconfig":
        return kubeconfig_rules()
    return [*profile_rules(), *(replaced_rules() if ocm.adopt != "none" else [])]


def kubeconfig_rules() -> list[Json]:
    """Of these, to write kubeconfigs. Their names are those of clusters, which RBAC cannot know."""
    return [rule("", ["secrets"], ["create", "delete", "patch"])]


def replaced_rules() -> list[Json]:
    """Of these, to delete the kubeconfigs of those who made the workers before."""
    return [rule("", ["secrets"], ["delete"])]


def impersonation_rules(account: str) -> list[Json]:
    """In the namespace, to write ClusterPermissions as the ServiceAccount that may."""
    return [rule("", ["serviceaccounts"], ["impersonate"], [account])]


def granting_rules() -> list[Json]:
    """Of that ServiceAccount, in the whole manager cluster. An admission policy says what it may grant."""
    group, plural = CLUSTER_PERMISSION.gvk.group, CLUSTER_PERMISSION.plural
    return [rule(group, [plural], ["create"]), rule(group, [plural], ["delete", "patch"], [BASE_NAME])]


def spoke_agent_rules(granted: list[Json], group: str) -> list[Json]:
    """The rules of OCM's work agent on a spoke, so that it can apply a ClusterPermission of ours and nothing more.

    Args:
        granted: the rules of the daemon there.
        group: of roles and bindings.
    """
    kinds = ["clusterroles", "clusterrolebindings"]
    changes = ["delete", "get", "patch", "update"]
    return merged([rule(group, kinds, ["create"]), rule(group, kinds, changes, [BASE_NAME]), *granted])
