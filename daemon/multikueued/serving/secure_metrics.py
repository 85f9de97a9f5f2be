"""Metrics over HTTPS, for those whom the manager cluster lets read them: as other controllers serve theirs.

Who asks shows a token. The manager's API server says whose it is (TokenReview) and whether that one may `get` the path
`/metrics` (SubjectAccessReview). Its answers are kept for a while, by a digest of the token.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Final

import anyio
import attrs
import structlog
from aiohttp import web

from multikueue.core.model.names import Json
from multikueue.errors import ApiError
from multikueue.runtime.loop import utc_now
from multikueued.metrics.exposition import Exposition
from multikueued.metrics.hooks import Metrics
from multikueued.serving.certificate_files import CertificateFolder
from multikueued.serving.port import listening
from multikueued.serving.reviews import ACCESS_REVIEW, TOKEN_REVIEW, Create, reviewed
from multikueued.serving.serving_tls import ServingTls
from multikueued.settings.config import ServingSettings

PATH: Final = "/metrics"
ALLOWED_FOR: Final = 60.0
"""Seconds for which a token that may read metrics is not asked about again: how late a revoked one is noticed."""
REFUSED_FOR: Final = 10.0
"""The same for one that may not."""
TOKENS: Final = 64
"""Tokens whose answers are kept; the oldest is forgotten first."""
REVIEWS: Final = 2
"""Tokens asked about at a time: a stranger with many tokens must not keep the manager's API server busy."""
REVIEW_TIMEOUT: Final = 10.0
MAX_TOKEN: Final = 16 << 10
"""Bytes of an `Authorization` header."""

log = structlog.get_logger(__name__)


class AccessVerdict(Enum):
    """What is answered, as HTTP status."""

    ALLOWED = 200
    UNKNOWN = 401
    FORBIDDEN = 403
    UNCLEAR = 503
    """The manager's API server does not say."""


@attrs.define(eq=False)
class Readers:
    """Who may read metrics, by the manager cluster's word."""

    create: Create
    """Asks the manager's API server."""
    _known: dict[str, tuple[AccessVerdict, float]] = attrs.field(factory=dict, init=False, repr=False)
    """By digest of the token: the verdict, and until when it holds."""
    _turns: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(REVIEWS), init=False)

    async def verdict(self, authorization: str) -> AccessVerdict:
        """Whether the sender of this header may read metrics."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN:
            return AccessVerdict.UNKNOWN
        if not token.isascii():
            return AccessVerdict.UNKNOWN
        digest = hashlib.sha256(token.encode()).hexdigest()
        if (known := self._kept(digest)) is not None:
            return known
        try:
            with anyio.fail_after(REVIEW_TIMEOUT):
                async with self._turns:
                    return self._kept(digest) or self._keep(digest, await self._ask(token))
        except (ApiError, TimeoutError) as error:
            log.warning("cannot tell who may read metrics", error=str(error) or "no answer in time")
            return AccessVerdict.UNCLEAR

    async def _ask(self, token: str) -> AccessVerdict:
        told = await reviewed(self.create, TOKEN_REVIEW, {"token": token})
        if told.get("authenticated") is not True:
            return AccessVerdict.UNKNOWN
        user = told.get("user") or {}
        spec: Json = {"user": user.get("username", ""), "nonResourceAttributes": {"path": PATH, "verb": "get"}}
        spec |= {field: user[field] for field in ("groups", "uid", "extra") if user.get(field)}
        access = await reviewed(self.create, ACCESS_REVIEW, spec)
        return AccessVerdict.ALLOWED if access.get("allowed") is True else AccessVerdict.FORBIDDEN

    def _kept(self, digest: str) -> AccessVerdict | None:
        verdict, until = self._known.get(digest, (None, 0.0))
        return verdict if anyio.current_time() < until else None

    def _keep(self, digest: str, verdict: AccessVerdict) -> AccessVerdict:
        self._known.pop(digest, None)
        lasts = ALLOWED_FOR if verdict is AccessVerdict.ALLOWED else REFUSED_FOR
        self._known[digest] = verdict, anyio.current_time() + lasts
        while len(self._known) > TOKENS:  # whoever invents tokens pushes out only such ones
            refused = (one for one, (known, _) in self._known.items() if known is not AccessVerdict.ALLOWED)
            del self._known[next(refused, next(iter(self._known)))]
        return verdict


@asynccontextmanager
async def serving_securely(settings: ServingSettings, create: Create, metrics: Metrics) -> AsyncIterator[int]:
    """Serve metrics over HTTPS while the context lasts; it yields the port.

    Args:
        settings: where to listen, and where the certificate is.
        create: sends a review to the manager's API server.
        metrics: served at `/metrics`.

    Raises:
        SettingsError: the address cannot be listened on, or the certificate cannot be used.
    """
    chosen, tls = settings.metrics, ServingTls()
    folder, otherwise = Path(chosen.cert_dir), "leave serving.metrics.secure out"
    certificate = await CertificateFolder.open(
        folder, tls, utc_now, setting="serving.metrics.certDir", otherwise=otherwise
    )
    where = settings.bind_address, chosen.port
    application = _application(Readers(create), metrics)
    async with (
        listening(application, *where, settings="serving.metrics", tls=tls.context) as port,
        anyio.create_task_group() as tasks,
    ):
        log.info("serving metrics", port=port)
        tasks.start_soon(certificate.run)
        yield port
        tasks.cancel_scope.cancel()


def _application(readers: Readers, metrics: Metrics) -> web.Application:
    exposition = Exposition(metrics)

    async def get(request: web.Request) -> web.StreamResponse:
        verdict = await readers.verdict(request.headers.get("Authorization", ""))
        if verdict is AccessVerdict.ALLOWED:
            return await exposition.show(request)
        challenge = {"WWW-Authenticate": "Bearer"} if verdict is AccessVerdict.UNKNOWN else {}
        return web.Response(status=verdict.value, text=_WORDS[verdict], headers=challenge)

    application = web.Application()
    application.router.add_get(PATH, get)
    return application


_WORDS: Final = {
    AccessVerdict.UNKNOWN: "send a token of the manager cluster: Authorization: Bearer TOKEN\n",
    AccessVerdict.FORBIDDEN: "this user may not get the path /metrics on the manager cluster\n",
    AccessVerdict.UNCLEAR: "the manager cluster does not say who may read metrics\n",
}
