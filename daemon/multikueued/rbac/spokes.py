"""The rules for workers that are made of OCM's ManagedClusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from multikueue.core.inventory.names import BASE_NAME, CLUSTER_PERMISSION, MANAGED_CLUSTER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.model.kinds import CLUSTER_PROFILE, KUEUE_GROUP, OCM_GROUP
from multikueue.core.model.names import Json
from multikueued.rbac.role_rule import merged, rule
from multikueued.settings.inventory import OcmSettings

PROFILES: Final = (rule(CLUSTER_PROFILE.gvk.group, [CLUSTER_PROFILE.plural], ["list", "watch"]),)
"""For workers that ClusterProfiles describe."""
_ACCOUNT: Final = MANAGED_SERVICE_ACCOUNT.gvk.group, [MANAGED_SERVICE_ACCOUNT.plural]
_PERMISSION: Final = CLUSTER_PERMISSION.gvk.group, [CLUSTER_PERMISSION.plural]
SPOKES: Final[Mapping[str, Sequence[Json]]] = {
    "workers": (  # each has a namespace there
        rule(OCM_GROUP, [MANAGED_CLUSTER.plural], ["list", "watch"]),
        rule(*_PERMISSION, ["list", "watch"]),
        rule(KUEUE_GROUP, ["multikueueclusters"], ["create", "delete", "patch"]),
    ),
    "accounts": (
        rule(*_ACCOUNT, ["list", "watch", "create"]),  # RBAC knows no name when an object is created
        rule(*_ACCOUNT, ["delete", "patch"], [BASE_NAME]),
    ),
    # To write kubeconfigs: Secrets of all namespaces, but only those of this name.
    "tokens": (rule("", ["secrets"], ["get"], [BASE_NAME]),),
}
"""In the whole manager cluster, by the chart's name of what needs it."""
SPOKES_IN_NAMESPACE: Final[Mapping[str, Sequence[Json]]] = {
    # To write kubeconfigs. Their names are those of clusters, which RBAC cannot know.
    "kubeconfigs": (rule("", ["secrets"], ["create", "delete", "patch"]),),
    "ocmprofiles": PROFILES,
    # To delete the kubeconfigs of those who made the workers before.
    "replaced": (rule("", ["secrets"], ["delete"]),),
}
"""In the namespace, for the same."""
GRANTING: Final = rule(*_PERMISSION, ["create"]), rule(*_PERMISSION, ["delete", "patch"], [BASE_NAME])
"""Of the ServiceAccount that writes ClusterPermissions. An admission policy says what it may grant."""


def spokes_wanted(ocm: OcmSettings) -> dict[str, bool]:
    """Which of them settings need."""
    kubeconfigs = ocm.makes_workers and ocm.clusters.source == "kubeconfig"
    profiles = ocm.makes_workers and not kubeconfigs
    return {
        "workers": ocm.makes_workers,
        "accounts": ocm.makes_workers and ocm.clusters.credentials == "managedServiceAccount",
        "tokens": kubeconfigs,
        "kubeconfigs": kubeconfigs,
        "ocmprofiles": profiles,
        "replaced": profiles and ocm.adopt != "none",
    }


def impersonation_rules(account: str) -> list[Json]:
    """In the namespace, to write ClusterPermissions as the ServiceAccount that may."""
    return [rule("", ["serviceaccounts"], ["impersonate"], [account])]


def spoke_agent_rules(granted: list[Json], group: str) -> list[Json]:
    """The rules of OCM's work agent on a spoke, so that it can apply a ClusterPermission of ours and nothing more.

    Args:
        granted: the rules of the daemon there.
        group: of roles and bindings.
    """
    kinds = ["clusterroles", "clusterrolebindings"]
    changes = ["delete", "get", "patch", "update"]
    return merged([rule(group, kinds, ["create"]), rule(group, kinds, changes, [BASE_NAME]), *granted])
