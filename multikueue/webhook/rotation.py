"""When the webhook's own certificates are renewed, so that every API server trusts the one that is served.

* A certificate is replaced while a third of its life is left: there are weeks to notice that it fails.
* A new authority is announced beside the old one first. It signs nothing until the registration has named it to API
  servers for `SETTLING`. The old one stays trusted until it expires.
* A certificate that cannot be used (missing, damaged, expired, for another host) is replaced at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Self

import attrs
from cryptography import x509

from multikueue.webhook.certificates import (
    BACKDATED,
    ServerKeyPair,
    is_for,
    is_signed_by,
    make_authority,
    make_certificate,
    pem,
    read_certificates,
    read_pair,
)
from multikueue.webhook.errors import UnusableError

AUTHORITY_LIFETIME: Final = timedelta(days=365)
SERVING_LIFETIME: Final = timedelta(days=90)
SETTLING: Final = timedelta(hours=1)
"""How long API servers have to read a new authority; they watch, so it mostly takes seconds."""

AUTHORITY_NAME: Final = "multikueue webhook"

CERTIFICATE, KEY, AUTHORITIES, AUTHORITY_KEY = FIELDS = ("tls.crt", "tls.key", "ca.crt", "ca.key")
"""Where the Secret has them."""


@attrs.frozen
class WebhookCredentials:
    """What the replicas share."""

    serving: ServerKeyPair
    authorities: tuple[x509.Certificate, ...]
    """The authorities that API servers must trust; the newest first, with `authority`'s key."""
    authority: ServerKeyPair

    @property
    def bundle(self) -> str:
        """The authorities, as PEM."""
        return "".join(pem(authority) for authority in self.authorities)

    @classmethod
    def read(cls, data: Mapping[str, str]) -> Self:
        """Read what `written` gave.

        Raises:
            UnusableError: something is missing or damaged.
        """
        missing = [field for field in FIELDS if not data.get(field)]
        if missing:
            raise UnusableError(f"{', '.join(missing)} missing")
        authorities = read_certificates(data[AUTHORITIES])
        authority = read_pair(data[AUTHORITIES], data[AUTHORITY_KEY])
        return cls(read_pair(data[CERTIFICATE], data[KEY]), tuple(authorities), authority)

    def written(self) -> dict[str, str]:
        """The texts to keep; two of them are secret."""
        return {
            CERTIFICATE: pem(self.serving.certificate),
            KEY: self.serving.key_pem,
            AUTHORITIES: self.bundle,
            AUTHORITY_KEY: self.authority.key_pem,
        }


def renewed(known: WebhookCredentials | None, host: str, now: datetime, trusted: str = "") -> WebhookCredentials | None:
    """The credentials to share from now on; None if the known ones need no change.

    Args:
        known: what is shared; None if there is nothing that can be used.
        host: what the certificate must be for.
        now: the wall clock.
        trusted: the authorities that the registration names, as PEM.
    """
    if known is None or _has_expired(known.authority.certificate, now):
        authority = make_authority(AUTHORITY_NAME, now, AUTHORITY_LIFETIME)
        return WebhookCredentials(_issue(authority, host, now), (authority.certificate,), authority)
    wanted = _with_authority(known, now)
    if _needs_certificate(wanted, host, now, trusted):
        wanted = attrs.evolve(wanted, serving=_issue(wanted.authority, host, now))
    return None if wanted == known else wanted


def is_usable(known: WebhookCredentials, now: datetime) -> bool:
    """Whether API servers can accept the certificate, as far as time is concerned."""
    return not _has_expired(known.serving.certificate, now)


def _with_authority(known: WebhookCredentials, now: datetime) -> WebhookCredentials:
    """With the expired authorities gone, and a new one if the newest is old."""
    kept = tuple(certificate for certificate in known.authorities if not _has_expired(certificate, now))
    if not is_due(known.authority.certificate, now):
        return attrs.evolve(known, authorities=kept)
    authority = make_authority(AUTHORITY_NAME, now, AUTHORITY_LIFETIME)
    return attrs.evolve(known, authorities=(authority.certificate, *kept), authority=authority)


def _needs_certificate(known: WebhookCredentials, host: str, now: datetime, trusted: str) -> bool:
    serving, authority = known.serving.certificate, known.authority
    accepted = any(is_signed_by(serving, certificate) for certificate in known.authorities)
    if not accepted or not is_for(serving, host) or _has_expired(serving, now):
        return True
    settled = authority.certificate.not_valid_before_utc + BACKDATED + SETTLING <= now
    if not settled or pem(authority.certificate) not in trusted:
        return False
    return is_due(serving, now) or not is_signed_by(serving, authority.certificate)


def _issue(authority: ServerKeyPair, host: str, now: datetime) -> ServerKeyPair:
    return make_certificate(authority, host, now, SERVING_LIFETIME)


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether a certificate is to be renewed: a third of its life is left."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return ends - now <= (ends - begins) / 3


def _has_expired(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_after_utc <= now
