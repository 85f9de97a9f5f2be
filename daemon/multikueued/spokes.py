"""The workers of OCM's ManagedClusters, as the settings have them; and as whom their permissions are written."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from multikueue import ApiClient, ClientOptions, ClusterConfig, KubeClient
from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.placement.settings import Adopt
from multikueue.core.spokes.names import BASE_NAME, CLUSTER_MANAGER
from multikueue.core.spokes.settings import Source, SpokeSettings
from multikueue.protocols import RequestHook
from multikueued.config import Settings
from multikueued.rbac.rules import on_worker

CONNECTIONS: Final = 2
"""Of the client that writes ClusterPermissions: there are few of them."""


def makes_workers(settings: Settings) -> bool:
    """Whether selected ManagedClusters become workers."""
    return settings.ocm.enabled and settings.ocm.clusters.source != "none"


def spoke_settings(settings: Settings) -> SpokeSettings | None:
    """The library's settings of these workers; None: none are made."""
    if not makes_workers(settings):
        return None
    ocm, clusters = settings.ocm, settings.ocm.clusters
    return SpokeSettings(
        Source(clusters.source),
        settings.namespace,
        settings.origin,
        accounts=clusters.credentials == "managedServiceAccount",
        validity=clusters.token_validity,
        rules=tuple(on_worker(settings)) if ocm.cluster_permissions.enabled else None,
        adopt=Adopt(ocm.adopt),
    )


def profile_settings(settings: Settings) -> ProfileSettings | None:
    """By which access providers ClusterProfiles may be reached. Where OCM's are to be workers and nothing is set, by
    OCM's: the daemon itself reads the token that OCM has copied."""
    if settings.cluster_profile is not None:
        return settings.cluster_profile.profile_settings()
    if not makes_workers(settings) or settings.ocm.clusters.source != "clusterProfile":
        return None
    return ProfileSettings((AccessProvider(CLUSTER_MANAGER, builtin="cp-creds", managed_service_account=BASE_NAME),))


def granting_user(settings: Settings) -> str:
    """The user as whom ClusterPermissions are written."""
    return f"system:serviceaccount:{settings.namespace}:{settings.ocm.cluster_permissions.service_account_name}"


def granting_client(
    settings: Settings, config: ClusterConfig, hook: RequestHook
) -> AbstractAsyncContextManager[ApiClient | None]:
    """A client of the manager that writes ClusterPermissions, to enter; None where none are written."""
    if spoke_settings(settings) is None or not settings.ocm.cluster_permissions.enabled:
        return nullcontext()
    options = ClientOptions(connections=CONNECTIONS, impersonate=granting_user(settings))
    return KubeClient(config, name="manager", options=options, hook=hook)
