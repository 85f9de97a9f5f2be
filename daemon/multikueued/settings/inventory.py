"""The settings of configs that are filled from an inventory: by OCM's Placements, or by labels of ClusterProfiles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

import attrs

from multikueue.core.inventory.names import CLUSTER_MANAGER
from multikueue.core.inventory.settings import DEFAULT_VALIDITY
from multikueued.settings.kueue_configuration import Remark
from multikueued.settings.profiles import ClusterProfileSettings
from multikueued.settings.value_types import AccountName, ConfigName, Selector, TokenValidity


@attrs.frozen
class OcmClusterSettings:
    """MultiKueueClusters and credentials of the ManagedClusters that Placements select."""

    source: Literal["clusterProfile", "kubeconfig", "none"] = "clusterProfile"
    """How a selected cluster is reached. `clusterProfile`: by the ClusterProfile that OCM keeps for it, through
    cluster-proxy. `kubeconfig`: by a kubeconfig that the daemon writes into a Secret, from the ManagedCluster's address
    and a token. `none`: MultiKueueClusters are made by somebody else."""
    credentials: Literal["managedServiceAccount", "external"] = "managedServiceAccount"
    """Whose token is used. `managedServiceAccount`: that of a ManagedServiceAccount that the daemon makes for each
    selected cluster. `external`: the access provider of the ClusterProfile knows one, and nothing is made."""
    token_validity: TokenValidity = DEFAULT_VALIDITY
    """How long a token is valid: a day to a week. OCM's agent on the cluster renews it when a fifth of that is left."""


@attrs.frozen
class OcmPermissionSettings:
    """What the daemon may do on the clusters: by ClusterPermissions, which OCM applies there."""

    enabled: bool = False
    """On: each selected cluster gets a ClusterPermission with what `multikueue rbac worker` prints. Off: somebody else
    grants it. Whoever may create a ClusterPermission can grant any role on a cluster, so it is off by default, is done
    as a ServiceAccount of its own, and a ValidatingAdmissionPolicy lets nothing else pass."""
    service_account_name: AccountName = "multikueue-permissions"
    """As whom they are written: a ServiceAccount in the daemon's namespace, which the daemon impersonates."""


@attrs.frozen
class OcmSettings:
    """The placement check: OCM's Placements fill MultiKueueConfigs."""

    enabled: bool = False
    """On: AdmissionChecks of `open-cluster-management.io/placement` are ours: a MultiKueueConfig named as the Placement
    gets its clusters, and the check becomes Ready on Workloads. It takes the place of OCM's kueue-addon; see
    `multikueue.core.inventory`."""
    policy: Literal["Drain", "Evict", "Immediate"] = "Drain"
    """What becomes of the jobs on a cluster that is not selected any more. `Drain`: they run to their end there.
    `Evict`: they are sent back, and run elsewhere. `Immediate`: the cluster leaves the config whatever runs there, as
    with OCM's addon: beside another MultiKueue controller jobs then run twice."""
    min_dwell: timedelta = timedelta(0)
    """How long a cluster stays selected at least, for a Placement whose choice changes with each score."""
    adopt: Literal["none", "addon", "2024"] = "none"
    """Whose configs are taken over: those of OCM's kueue-addon (`addon`, whose controller must be stopped before), or
    those of the recipe that OCM published in 2024 (`2024`). Running jobs stay. `none`: what somebody else has made is
    left alone and the check says `Conflict`."""
    clusters: OcmClusterSettings = attrs.field(factory=OcmClusterSettings)
    cluster_permissions: OcmPermissionSettings = attrs.field(factory=OcmPermissionSettings)

    @property
    def makes_workers(self) -> bool:
        """Whether selected ManagedClusters become workers."""
        return self.enabled and self.clusters.source != "none"

    @property
    def grants(self) -> bool:
        """Whether ClusterPermissions are written."""
        return self.makes_workers and self.cluster_permissions.enabled


@attrs.frozen
class InventorySettings:
    """One entry of `inventory`: the ClusterProfiles with these labels fill a MultiKueueConfig, without OCM."""

    selector: Selector = ""
    """Which ClusterProfiles in the daemon's namespace: a label selector, as kubectl takes it."""
    config: ConfigName = ""
    """The MultiKueueConfig that lists them."""
    policy: Literal["Drain", "Immediate"] = "Drain"
    """As `ocm.policy`. There is no `Evict`: an inventory has no check by which it could ask for an eviction."""


def ocm_contradictions(settings: OcmSettings) -> Iterator[str]:
    """Settings of OCM that cannot be used together: the setting, and why."""
    clusters = settings.clusters
    if settings.enabled and clusters.source == "kubeconfig" and clusters.credentials == "external":
        yield "ocm.clusters.credentials: a kubeconfig needs a token: write managedServiceAccount, or leave it out"


def ocm_remarks(settings: OcmSettings, profiles: ClusterProfileSettings | None) -> Iterator[Remark]:
    """What has no effect, or cannot work. It ends nothing: the daemon dispatches with and without OCM."""
    named = [provider.name for provider in profiles.access_providers] if profiles is not None else [CLUSTER_MANAGER]
    source, credentials = settings.clusters.source, settings.clusters.credentials
    by_profile = settings.enabled and (source, credentials) == ("clusterProfile", "managedServiceAccount")
    if by_profile and CLUSTER_MANAGER not in named:
        add = f"add {{name: {CLUSTER_MANAGER}, builtin: cp-creds}}, or leave the section out"
        why = f"none is called {CLUSTER_MANAGER}, so no worker that is made of a ManagedCluster can be reached: {add}"
        yield Remark("clusterProfile.accessProviders", why, important=True)
    if settings.cluster_permissions.enabled and not settings.grants:
        advice = "turn on ocm.enabled and choose an ocm.clusters.source, or leave it out"
        yield Remark("ocm.clusterPermissions.enabled", f"no cluster gets one: {advice}", important=True)
