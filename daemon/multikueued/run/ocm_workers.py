"""The workers of OCM's ManagedClusters, as the settings have them; and as whom their permissions are written."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from multikueue import ApiClient, ClientOptions, ClusterConfig, KubeClient
from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.inventory.names import BASE_NAME, CLUSTER_MANAGER
from multikueue.core.inventory.settings import Adopt, ConnectionSource, SpokeSettings
from multikueue.protocols import RequestHook
from multikueued.rbac.objects import granting_account
from multikueued.rbac.rules import on_worker
from multikueued.settings.config import Settings

CONNECTIONS: Final = 2
"""Of the client that writes ClusterPermissions: there are few of them."""


def spoke_settings(settings: Settings) -> SpokeSettings | None:
    """The library's settings of these workers; None: none are made."""
    if not settings.ocm.makes_workers:
        return None
    ocm, clusters = settings.ocm, settings.ocm.clusters
    return SpokeSettings(
        ConnectionSource(clusters.source),
        settings.namespace,
        settings.origin,
        accounts=clusters.credentials == "managedServiceAccount",
        validity=clusters.token_validity,
        rules=tuple(on_worker(settings)) if ocm.grants else None,
        adopt=Adopt(ocm.adopt),
    )


def profile_settings(settings: Settings) -> ProfileSettings | None:
    """By which access providers ClusterProfiles may be reached. Where OCM's are to be workers and nothing is set, by
    OCM's: the daemon itself reads the token that OCM has copied."""
    if settings.cluster_profile is not None:
        return settings.cluster_profile.profile_settings()
    if not settings.ocm.makes_workers or settings.ocm.clusters.source != "clusterProfile":
        return None
    return ProfileSettings((AccessProvider(CLUSTER_MANAGER, builtin="cp-creds", managed_service_account=BASE_NAME),))


def granting_client(
    settings: Settings, config: ClusterConfig, hook: RequestHook
) -> AbstractAsyncContextManager[ApiClient | None]:
    """A client of the manager that writes ClusterPermissions, to enter; None where none are written."""
    if not settings.ocm.grants:
        return nullcontext()
    options = ClientOptions(connections=CONNECTIONS, impersonate=granting_account(settings).user)
    return KubeClient(config, name="manager", options=options, hook=hook)
