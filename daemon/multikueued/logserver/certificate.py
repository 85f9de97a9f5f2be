"""The server's own certificate: in a Secret that its replicas share, and named by the APIService for API servers."""

from __future__ import annotations

import base64
from typing import ClassVar

import attrs
import structlog

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import dig
from multikueued.api_answers import API_SERVICE, API_SERVICE_NAME
from multikueued.serving.kept_certificate import SharedCertificate, encoded

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class OwnCertificate(SharedCertificate):
    """Makes the certificate, renews it, and has it trusted."""

    of: ClassVar[str] = "the API"

    async def keep(self) -> None:
        """See `SharedCertificate`; the APIService names its authorities."""
        secret = await self.client.get(SECRET, self.key)
        key = ObjectKey("", API_SERVICE_NAME)
        trusted = _decoded(dig(await self.client.get(API_SERVICE, key), "spec", "caBundle"))
        bundle = (await self.keep_own(secret, trusted)).bundle
        if bundle != trusted:
            await self.client.merge_patch(API_SERVICE, key, {"spec": {"caBundle": encoded(bundle)}})
            log.info("APIService names our authorities", name=API_SERVICE_NAME)


def _decoded(text: str | None) -> str:
    try:
        return base64.b64decode(text or "").decode()
    except ValueError:
        return ""
