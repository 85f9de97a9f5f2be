"""Reaches a worker that a ClusterProfile describes, with the Secret that is for that profile.

Which access provider the daemon uses stands in its settings, which commands like `multikueue logs` do not read. A
Secret that is for the profile is enough, by the rules of the built-in providers. What an exec plugin gets, only the
daemon has.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.config.access_providers import AccessProvider, ProfileSettings
from multikueue.core.config.cluster_profiles import chosen_access, offered_clusters
from multikueue.core.config.profile_secrets import is_for, secret_name, token_in
from multikueue.core.model.kinds import CLUSTER_PROFILE, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import ClusterProfileError, NotFound
from multikueue.kube import ClusterConfig
from multikueue.kube.profile_config import profile_config
from multikueue.protocols import Reader
from multikueued.profile_settings import OCM_ACCOUNT


@attrs.frozen
class ProfileAccess:
    """How a worker is reached, and by which Secret."""

    secret: str
    config: ClusterConfig


async def access_by_profile(manager: Reader, namespace: str, name: str) -> ProfileAccess | None:
    """How the worker of a profile is reached; None: no Secret is for it.

    Args:
        manager: its API server.
        namespace: of the profile and its Secret.
        name: of the profile.

    Raises:
        ClusterProfileError: there is no such profile, or what it says cannot be used.
        ApiError: it may not be read.
    """
    profile = await _found(manager, CLUSTER_PROFILE, ObjectKey(namespace, name))
    for settings in _possible(profile):
        access = chosen_access(profile, name, settings)
        try:
            key = ObjectKey(namespace, secret_name(access))
        except ClusterProfileError:
            continue  # it does not say which cluster it is
        secret = await _found(manager, SECRET, key)
        if profile is not None and secret is not None and is_for(secret, profile, access.provider):
            token = token_in(secret, str(key), profile, access.provider)
            return ProfileAccess(key.name, profile_config(access, settings, token))
    return None


def _possible(profile: Json | None) -> Iterator[ProfileSettings]:
    """Each provider of a profile as each of those that are built in."""
    for name in offered_clusters(profile) if profile is not None else ("",):
        yield ProfileSettings((AccessProvider(name, builtin="cp-creds", managed_service_account=OCM_ACCOUNT),))
        yield ProfileSettings((AccessProvider(name, builtin="secretreader"),))


async def _found(manager: Reader, resource: Resource, key: ObjectKey) -> Json | None:
    try:
        return await manager.get(resource, key)
    except NotFound:
        return None
