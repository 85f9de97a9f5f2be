"""The kubeconfigs that the manager holds: read for a connection, and for when they expire. No secret is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import attrs

from multikueue.core.config.cluster_profiles import profile_reference
from multikueue.core.inventory.ocm_workers.spoke import OWNER_LABEL
from multikueue.core.model.names import Json
from multikueue.core.model.objects import labels_of, name_of
from multikueue.errors import ServerFault, Unreadable
from multikueue.kube import ClusterConfig
from multikueue.kube.kubeconfigs.worker_kubeconfig import credentials_digest
from multikueued.clusters import Lack, NoAccess, access_to
from multikueued.diagnosis.checks.access import account_named
from multikueued.doctor.cluster_reader import Sight
from multikueued.reports.worker_facts import KubeconfigFacts
from multikueued.tokens.bound import bound_in, claims_of
from multikueued.workers.addresses import is_own_machine
from multikueued.workers.objects import location

_ELSEWHERE: Final = "run multikueue doctor where the daemon runs, or look at Active of its MultiKueueCluster"


@attrs.frozen
class HeldCredentials:
    """What the manager holds for a worker."""

    credentials: KubeconfigFacts
    config: ClusterConfig | None
    """None: it cannot be used."""


async def held_for(cluster: Json, sight: Sight, namespace: str) -> HeldCredentials | None:
    """What the manager holds for a MultiKueueCluster; None: it may not be read, or is elsewhere, which is noted."""
    worker = name_of(cluster)
    try:
        access = await access_to(sight.client, cluster, namespace)
    except (NoAccess, Unreadable, ServerFault) as error:
        lack = error.lack if isinstance(error, NoAccess) else None
        if lack is Lack.UNUSABLE and profile_reference(cluster) is None:
            return HeldCredentials(KubeconfigFacts(location(cluster), problem=str(error.__cause__)), None)
        who = _ELSEWHERE if lack is Lack.ELSEWHERE else ""
        sight.blind(f"{worker} itself, and when its credentials expire", str(error), who, worker=worker)
        return None
    name, config = name_of(access.secret), access.config
    if access.profile:  # without a digest: the daemon may use another way
        return HeldCredentials(_profile_facts(name, config), config)
    return HeldCredentials(kubeconfig_facts(name, config, access.secret, credentials_digest(config)), config)


def kubeconfig_facts(name: str, config: ClusterConfig, secret: Json, digest: str = "") -> KubeconfigFacts:
    """When the credentials of a kubeconfig expire, and what its Secret says of that."""
    dates = token_expires(config.token), certificate_expires(config.client_cert_pem)
    renewed, outside = OWNER_LABEL in labels_of(secret), is_own_machine(config.server)
    account = account_of(config.token)
    return KubeconfigFacts(name, digest, *dates, bound_in(secret), renewed=renewed, outside=outside, account=account)


def facts_in_use(cluster: Json, config: ClusterConfig, secret: Json) -> KubeconfigFacts:
    """The same of what the daemon uses for a MultiKueueCluster; of a ClusterProfile without a Secret's name."""
    if profile_reference(cluster) is not None:
        return _profile_facts("", config)
    return kubeconfig_facts(location(cluster), config, secret)


def _profile_facts(name: str, config: ClusterConfig) -> KubeconfigFacts:
    ends, account = token_expires(config.token), account_of(config.token)
    return KubeconfigFacts(name, token_expires=ends, renewed=True, account=account)


def account_of(token: str) -> str:
    """NAMESPACE/NAME of the service account that a JWT says it is of; empty: of none."""
    return account_named(str(claims_of(token).get("sub") or ""))


def token_expires(token: str) -> datetime | None:
    """The claim `exp` of a JWT; None: it is none, or does not expire. Whether it is valid is the server's to say."""
    expires = claims_of(token).get("exp")
    try:
        return datetime.fromtimestamp(expires, UTC) if isinstance(expires, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None


def certificate_expires(pem: str) -> datetime | None:
    """When the first certificate expires; None: there is none that can be read."""
    from cryptography import x509  # only who reads certificates pays for it

    try:
        return x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc if pem else None
    except ValueError:
        return None
