"""The kubeconfigs that the manager holds: read for a connection, and for when they expire. No secret is told."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
from cryptography import x509

from multikueue.core.config.cluster_profiles import profile_reference
from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, name_of
from multikueue.errors import Forbidden, KubeconfigError, ServerFault, Unreadable
from multikueue.kube import ClusterConfig, parse_worker_kubeconfig
from multikueue.kube.worker_kubeconfig import credentials_digest
from multikueue.runtime.reconcilers.configuration import KUBECONFIG_KEY
from multikueued.doctor.seeing import Sight
from multikueued.remote.by_profile import access_by_profile
from multikueued.reports.doctor.facts import Credentials
from multikueued.tokens.bound import bound_in, claims_of
from multikueued.workers.objects import location
from multikueued.workers.places import decoded


@attrs.frozen
class Held:
    """What the manager holds for a worker."""

    credentials: Credentials
    config: ClusterConfig | None
    """None: it cannot be used."""


async def held_for(cluster: Json, sight: Sight, namespace: str) -> Held | None:
    """What the Secret of a MultiKueueCluster holds; None: it may not be read, or is elsewhere, which is noted."""
    worker, secret = name_of(cluster), location(cluster)
    if (profile := profile_reference(cluster)) is not None:
        return await _held_by_profile(ObjectKey(namespace, profile), sight, worker)
    if not secret:
        told = "its kubeconfig is no Secret" + (
            ": a file beside the daemon" if dig(cluster, "spec", "clusterSource", "kubeConfig") else ""
        )
        sight.blind(f"{worker} itself", told, "run multikueue doctor where that file is, with a Secret of the same")
        return None
    found = await sight.one(SECRET, ObjectKey(namespace, secret), f"{worker} itself, and when its credentials expire")
    if found is None:
        return None
    if not dig(found, "data", KUBECONFIG_KEY):
        return Held(Credentials(secret, problem=f'it has no key "{KUBECONFIG_KEY}"'), None)
    try:
        config = parse_worker_kubeconfig(decoded(found, KUBECONFIG_KEY).encode())
    except KubeconfigError as error:
        return Held(Credentials(secret, problem=f"the kubeconfig cannot be used: {error}"), None)
    dates = token_expires(config.token), certificate_expires(config.client_cert_pem)
    return Held(Credentials(secret, credentials_digest(config), *dates, bound=bound_in(found)), config)


async def _held_by_profile(profile: ObjectKey, sight: Sight, worker: str) -> Held | None:
    """What is held for a worker that a ClusterProfile describes; without a digest: the daemon may use another way."""
    told = f'it is reached by ClusterProfile "{profile.name}", whose credentials only the daemon gets'
    try:
        found = await access_by_profile(sight.client, profile.namespace, profile.name)
    except (Forbidden, Unreadable, ServerFault, KubeconfigError) as error:
        found, told = None, f'it is reached by ClusterProfile "{profile.name}": {error}'
    if found is None:
        sight.blind(f"{worker} itself", told, "look at the condition Active of its MultiKueueCluster")
        return None
    ends = token_expires(found.config.token)
    return Held(Credentials(found.secret, token_expires=ends, profile=profile.name), found.config)


def token_expires(token: str) -> datetime | None:
    """The claim `exp` of a JWT; None: it is none, or does not expire. Whether it is valid is the server's to say."""
    expires = claims_of(token).get("exp")
    try:
        return datetime.fromtimestamp(expires, UTC) if isinstance(expires, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None


def certificate_expires(pem: str) -> datetime | None:
    """When the first certificate expires; None: there is none that can be read."""
    try:
        return x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc if pem else None
    except ValueError:
        return None
