"""Metrics over HTTPS, for those whom the manager cluster lets read them: as other controllers serve theirs.

Who asks shows a token. The manager's API server says whose it is (TokenReview) and whether that one may `get` the path
`/metrics` (SubjectAccessReview). Its answers are kept for a while, by a digest of the token.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio
import attrs
import structlog
from aiohttp import web

from multikueue.errors import ApiError
from multikueued.metrics.exposition import Exposition
from multikueued.metrics.hooks import Metrics
from multikueued.serving.certificate_files import CertificateFolder
from multikueued.serving.kept_answers import ALLOWED_FOR, REFUSED_FOR, KeptAnswers
from multikueued.serving.port import listening
from multikueued.serving.reviews import Create, bearer_token, digest_of, may, user_of_token
from multikueued.serving.serving_tls import ServingTls
from multikueued.settings.config import ServingSettings

PATH: Final = "/metrics"
TOKENS: Final = 64
"""Tokens whose answers are kept; the oldest is forgotten first."""
REVIEWS: Final = 2
"""Tokens asked about at a time: a stranger with many tokens must not keep the manager's API server busy."""

log = structlog.get_logger(__name__)


@attrs.define(eq=False)
class Readers:
    """Who may read metrics, by the manager cluster's word."""

    create: Create
    """Asks the manager's API server."""
    _verdicts: KeptAnswers[str, HTTPStatus] = attrs.field(init=False, repr=False)
    """By digest of the token."""

    @_verdicts.default
    def _kept_verdicts(self) -> KeptAnswers[str, HTTPStatus]:
        turns = anyio.CapacityLimiter(REVIEWS)
        return KeptAnswers(ALLOWED_FOR, REFUSED_FOR, TOKENS, turns, lambda verdict: verdict is HTTPStatus.OK)

    async def verdict(self, authorization: str) -> HTTPStatus:
        """Whether the sender of this header may read metrics, as the status of the answer."""
        token = bearer_token(authorization)
        if not token:
            return HTTPStatus.UNAUTHORIZED
        try:
            return await self._verdicts.of(digest_of(token), partial(self._ask, token))
        except (ApiError, TimeoutError) as error:
            log.warning("cannot tell who may read metrics", error=str(error) or "no answer in time")
            return HTTPStatus.SERVICE_UNAVAILABLE

    async def _ask(self, token: str) -> HTTPStatus:
        user = await user_of_token(self.create, token)
        if user is None:
            return HTTPStatus.UNAUTHORIZED
        allowed = await may(self.create, user, nonResourceAttributes={"path": PATH, "verb": "get"})
        return HTTPStatus.OK if allowed else HTTPStatus.FORBIDDEN


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
    otherwise = "leave serving.metrics.secure out"
    certificate = await CertificateFolder.open(chosen.cert_dir, tls, "serving.metrics.certDir", otherwise)
    readers, exposition = Readers(create), Exposition(metrics)

    async def get(request: web.Request) -> web.StreamResponse:
        verdict = await readers.verdict(request.headers.get("Authorization", ""))
        if verdict is HTTPStatus.OK:
            return await exposition.show(request)
        challenge = {"WWW-Authenticate": "Bearer"} if verdict is HTTPStatus.UNAUTHORIZED else {}
        return web.Response(status=verdict, text=_WORDS[verdict], headers=challenge)

    application = web.Application()
    application.router.add_get(PATH, get)
    where = settings.bind_address, chosen.port
    async with listening(application, *where, settings="serving.metrics", tls=tls, beside=certificate.run) as port:
        log.info("serving metrics", port=port)
        yield port


_WORDS: Final = {
    HTTPStatus.UNAUTHORIZED: "send a token of the manager cluster: Authorization: Bearer TOKEN\n",
    HTTPStatus.FORBIDDEN: "this user may not get the path /metrics on the manager cluster\n",
    HTTPStatus.SERVICE_UNAVAILABLE: "the manager cluster does not say who may read metrics\n",
}
