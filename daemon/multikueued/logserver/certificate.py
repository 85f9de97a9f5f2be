"""The server's own certificate: in a Secret that its replicas share, and named by the APIService for API servers.

There is no leader: each replica looks in turn, and of several that write at once one succeeds.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime

import attrs
import structlog

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig, resource_version
from multikueue.protocols import ApiClient
from multikueue.webhook.certificate_secret import credentials_in
from multikueue.webhook.certificates import pem
from multikueue.webhook.rotation import WebhookCredentials, renewed
from multikueued.api_answers import API_SERVICE, API_SERVICE_NAME
from multikueued.logserver.tls import FrontTls
from multikueued.serving.kept_certificate import keep_certificate

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class OwnCertificate:
    """Makes the certificate, renews it, and has it trusted."""

    client: ApiClient
    key: ObjectKey
    """The Secret."""
    host: str
    """The Service, as API servers call it."""
    tls: FrontTls
    clock: Callable[[], datetime]
    _served: str = attrs.field(default="", init=False)

    async def run(self) -> None:
        """Keep it renewed until cancelled. What fails is logged, and tried again."""
        await keep_certificate(self.keep, self.key, "the API")

    async def keep(self) -> None:
        """Renew the certificate if it is due, serve it, and name its authorities in the APIService.

        Raises:
            ApiError: one of the objects cannot be read or written.
            UnusableError: the certificate cannot be served.
        """
        secret = await self.client.get(SECRET, self.key)
        service = await self.client.get(API_SERVICE, ObjectKey("", API_SERVICE_NAME))
        trusted = _decoded(dig(service, "spec", "caBundle"))
        known = credentials_in(secret)
        if (wanted := renewed(known, self.host, self.clock(), trusted)) is not None:
            data = {field: _encoded(text) for field, text in wanted.written().items()}
            precondition = {"resourceVersion": resource_version(secret)}
            await self.client.merge_patch(SECRET, self.key, {"metadata": precondition, "data": data})
            log.info("certificate renewed", secret=str(self.key), host=self.host)
        credentials = wanted or known
        assert credentials is not None, "without a certificate one is made"
        self._serve(credentials)
        if credentials.bundle != trusted:
            patch = {"spec": {"caBundle": _encoded(credentials.bundle)}}
            await self.client.merge_patch(API_SERVICE, ObjectKey("", API_SERVICE_NAME), patch)
            log.info("APIService names our authorities", name=API_SERVICE_NAME)

    def _serve(self, credentials: WebhookCredentials) -> None:
        certificate = pem(credentials.serving.certificate)
        if certificate != self._served:
            self.tls.load(certificate, credentials.serving.key_pem)
            self._served = certificate


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str | None) -> str:
    try:
        return base64.b64decode(text or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
