"""Why a spoke cannot be a worker yet: in words that say what is missing, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from multikueue.core.inventory.names import (
    BASE_NAME,
    CLUSTER_MANAGER,
    CLUSTER_NAME_LABEL,
    CLUSTER_PERMISSION,
    MANAGED_SERVICE_ACCOUNT,
    MANAGER_LABEL,
    TOKEN_LABEL,
    synced_secret,
)
from multikueue.core.inventory.ocm_workers.objects import address_of, token_in
from multikueue.core.inventory.ocm_workers.spoke import Spoke
from multikueue.core.inventory.settings import ConnectionSource, SpokeSettings
from multikueue.core.model.conditions import find, parse_timestamp
from multikueue.core.model.kinds import CLUSTER_PROFILE
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, labels_of

_APPLIED = ("AppliedRBACManifestWork", "Applied")
"""The condition of a ClusterPermission, and its newer name."""


def kinds(settings: SpokeSettings) -> Iterator[Resource]:
    """The kinds that these settings cannot do without."""
    if settings.accounts:
        yield MANAGED_SERVICE_ACCOUNT
    if settings.rules is not None:
        yield CLUSTER_PERMISSION
    if settings.source is ConnectionSource.CLUSTER_PROFILE:
        yield CLUSTER_PROFILE


def obstacle(spoke: Spoke, settings: SpokeSettings, now: datetime) -> str:
    """Why no worker can be made of a spoke that is wanted; empty: one can."""
    return next(_obstacles(spoke, settings, now), "")


def expires_at(account: Json | None) -> datetime | None:
    """When the token of a ManagedServiceAccount expires; None if that is not known."""
    return parse_timestamp(dig(account, "status", "expirationTimestamp"))


def lives_too_long(account: Json | None, settings: SpokeSettings, now: datetime) -> bool:
    """Whether the token of a ManagedServiceAccount has a much longer life than is asked for by now.

    An account that was made within the hour is left alone: an agent that gives other lives is not asked for ever.
    """
    made = parse_timestamp(dig(account, "metadata", "creationTimestamp"))
    refreshed = parse_timestamp(dig(account, "status", "tokenSecretRef", "lastRefreshTimestamp"))
    end = expires_at(account)
    if made is None or refreshed is None or end is None or now - made < timedelta(hours=1):
        return False
    return end - refreshed > 4 * settings.validity


def _obstacles(spoke: Spoke, settings: SpokeSettings, now: datetime) -> Iterator[str]:
    for resource in kinds(settings):
        if resource in spoke.unserved:
            advice = "install what brings them, or grant list and watch"
            yield f"the manager cluster does not give {resource}: {spoke.unserved[resource]}: {advice}"
    if settings.accounts:
        yield from _token(spoke, now)
    yield from _permission(spoke, settings)
    if settings.source is ConnectionSource.CLUSTER_PROFILE:
        yield from _profile(spoke, settings)
    else:
        yield from _connection(spoke)


def _token(spoke: Spoke, now: datetime) -> Iterator[str]:
    account, subject = spoke.account, f"ManagedServiceAccount {spoke.name}/{BASE_NAME}"
    if account is None or not dig(account, "status", "tokenSecretRef", "name"):
        yield f"{subject} has no token yet: does the addon managed-serviceaccount run on the cluster?"
        return
    end = expires_at(account)
    if end is None:
        yield f"{subject} does not say when its token expires"
    elif end <= now:
        yield f"the token of {subject} has expired at {end.isoformat()}: does the addon's agent on the cluster run?"


def _permission(spoke: Spoke, settings: SpokeSettings) -> Iterator[str]:
    subject = f"ClusterPermission {spoke.name}/{BASE_NAME}"
    if spoke.permission is None:
        if settings.rules is not None:
            yield f"{subject} is being made"
        return  # somebody grants what is needed in another way, or the worker will say what is forbidden
    listed = dig(spoke.permission, "status", "conditions")
    known = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    applied = next((condition for kind in _APPLIED if (condition := find(known, kind)) is not None), None)
    if applied is None or applied.get("status") != "True":
        why = str(dig(applied, "message") or "its status says nothing yet: does the controller cluster-permission run?")
        yield f"{subject} is not applied on the cluster: {why}"


def _profile(spoke: Spoke, settings: SpokeSettings) -> Iterator[str]:
    profile, subject = spoke.profile, f"ClusterProfile {settings.namespace}/{spoke.name}"
    if profile is None:
        bound = f"is a cluster set of the cluster bound to namespace {settings.namespace} (ManagedClusterSetBinding)"
        yield f"there is no {subject}: {bound}, and OCM's feature gate ClusterProfile on?"
        return
    for what, label, wanted in (("manager", MANAGER_LABEL, CLUSTER_MANAGER), ("name", CLUSTER_NAME_LABEL, spoke.name)):
        value = labels_of(profile).get(label, "")
        if value != wanted:
            yield f'{subject}: cluster {what} mismatch: the label {label} is "{value}" and not "{wanted}"'
    if CLUSTER_MANAGER not in _providers(profile):
        advice = "does cluster-proxy run with its gate ClusterProfile on?"
        yield f'{subject} has no access provider "{CLUSTER_MANAGER}": {advice}'
    if settings.accounts and not spoke.synced:
        secret = f"{settings.namespace}/{synced_secret(spoke.name)}"
        yield f"the token is not copied to Secret {secret}: is the gate ClusterProfile of managed-serviceaccount on?"


def _providers(profile: Json) -> set[str]:
    listed = [dig(profile, "status", field) for field in ("accessProviders", "credentialProviders")]
    return {str(dig(provider, "name")) for entries in listed if isinstance(entries, list) for provider in entries}


def _connection(spoke: Spoke) -> Iterator[str]:
    if spoke.managed is None or address_of(spoke.managed) is None:
        yield f"ManagedCluster {spoke.name} has no https address in spec.managedClusterClientConfigs"
    subject = f"Secret {spoke.name}/{BASE_NAME}"
    if spoke.token is None:
        yield f"{subject} with the token cannot be read: {spoke.token_unread or 'it is not there yet'}"
    elif labels_of(spoke.token).get(TOKEN_LABEL) != "true":
        yield f"{subject} is not the token of a ManagedServiceAccount: it lacks the label {TOKEN_LABEL}"
    elif not token_in(spoke.token):
        yield f"{subject} has no token"
