"""A certificate in a Secret that all replicas of a server share: looked at in turn, renewed and served.

There is no leader: of several replicas that write at once one succeeds, and the others take what it has written.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, Final

import attrs
import structlog

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import resource_version
from multikueue.protocols import ApiClient
from multikueue.webhook.certificate_secret import credentials_in
from multikueue.webhook.certificates import pem, read_certificates
from multikueue.webhook.rotation import WebhookCredentials, renewed
from multikueued.serving.looking import look_again
from multikueued.serving.serving_tls import ServingTls

INTERVAL: Final = 60.0
"""Seconds between two looks at the Secret."""
RETRY: Final = 5.0
"""The same after a failure, and while a request waits."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class SharedCertificate(ABC):
    """Has a certificate served, and renewed; `keep` says which."""

    client: ApiClient
    key: ObjectKey
    """The Secret."""
    host: str
    """By which clients know the server: a DNS name, or an IP address."""
    tls: ServingTls
    clock: Callable[[], datetime]
    of: ClassVar[str]
    """Whose it is, for the log."""
    _served: str = attrs.field(default="", init=False)

    async def run(self) -> None:
        """Keep it until cancelled. What fails, or waits, is logged once, and tried again."""
        about = {"of": self.of, "secret": str(self.key)}
        await look_again(self.keep, _pause, "the certificate cannot be kept", **about)

    @abstractmethod
    async def keep(self) -> None:
        """Serve the certificate, and have it renewed if that is due.

        Raises:
            ApiError: an object cannot be read or written.
            UnusableError: there is none that can be served.
        """

    async def keep_own(self, secret: Json, trusted: str | None = None) -> WebhookCredentials:
        """Serve a certificate of our own making, renewed if that is due; raises as `keep`.

        Args:
            secret: as it is.
            trusted: PEM of the authorities that clients have been told of; None: they look at none.
        """
        known = credentials_in(secret)
        if trusted is None:
            trusted = known.bundle if known is not None else ""
        wanted = renewed(known, self.host, self.clock(), trusted)
        if wanted is not None:
            await self.write(secret, wanted.written())
            log.info("certificate renewed", of=self.of, secret=str(self.key), host=self.host)
        credentials = wanted or known
        assert credentials is not None, "without a certificate one is made"
        self.serve(pem(credentials.serving.certificate), credentials.serving.key_pem)
        return credentials

    async def write(self, secret: Json, fields: Mapping[str, str | None]) -> Json:
        """Write texts into the Secret as it was read; None takes one away. Of two replicas one writes."""
        data = {name: None if text is None else encoded(text) for name, text in fields.items()}
        precondition = {"resourceVersion": resource_version(secret)}
        return await self.client.merge_patch(SECRET, self.key, {"metadata": precondition, "data": data})

    def serve(self, certificate: str, key: str) -> None:
        """Serve a certificate to new connections, PEM with its key; raises as `ServingTls.load`."""
        if certificate == self._served:
            return
        self.tls.load(certificate, key)
        self._served = certificate
        ends = read_certificates(certificate)[0].not_valid_after_utc
        log.info("certificate served", of=self.of, until=f"{ends:%F}")


def _pause(failed: bool) -> float:
    return RETRY if failed else INTERVAL


def encoded(text: str) -> str:
    """A text as a Secret has it."""
    return base64.b64encode(text.encode()).decode()
