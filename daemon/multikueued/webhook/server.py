"""Serves reviews over HTTPS, limited in size and time. The certificate can be replaced meanwhile."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio
import attrs
from aiohttp import web

from multikueue.core.admission.registration import PATH
from multikueue.errors import SettingsError
from multikueue.kube.http.transport import load_key_pair
from multikueue.webhook.certificates import UnusableError
from multikueue.webhook.reviewer import ReviewAnswer
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening
from multikueued.settings.config import WebhookSettings
from multikueued.webhook.bodies import Bodies

READ_TIMEOUT: Final = 5.0
"""Seconds a review may take to arrive and to get its turn. API servers do not wait that long for the answer."""
_MEDIA_TYPE: Final = "application/json"

Review = Callable[[bytes], ReviewAnswer]


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@attrs.define(eq=False)
class ServingTls:
    """The TLS context of the server. New connections get the certificate that was loaded last; open ones keep theirs.

    Without a certificate every handshake fails.
    """

    context: ssl.SSLContext = attrs.field(factory=_context)

    def load(self, certificate: str, key: str) -> None:
        """Serve this certificate to new connections.

        Args:
            certificate: PEM, with the chain up to the authority that clients trust.
            key: its private key, PEM without a password.

        Raises:
            UnusableError: they are no pair; the old certificate stays. The message quotes nothing of them.
            SettingsError: there is no folder for temporary files.
        """
        try:
            # First into a new context: a failure half-way leaves a context without a usable pair.
            load_key_pair(certificate, key, _context(), self.context)
        except ssl.SSLError:
            raise UnusableError("they are not a PEM certificate and its key without a password") from None
        except OSError as error:
            why = f"cannot write a temporary file: {error.strerror}; OpenSSL reads certificates from files only"
            raise SettingsError(f"webhook: {why}. Give the process a folder for them, with TMPDIR or at /tmp") from None


def reviewing(
    settings: WebhookSettings,
    tls: ServingTls,
    review: Review,
    *,
    read_timeout: float = READ_TIMEOUT,
    limits: Limits | None = None,
    bodies: Bodies | None = None,
) -> AbstractAsyncContextManager[int]:
    """Serve while the context lasts; it yields the port.

    Args:
        settings: address and port.
        tls: the certificate.
        review: answers the body of a request.
        read_timeout: seconds a review may take to arrive and to get its turn.
        limits: of the connections.
        bodies: the bounds of what they send.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    application = _application(review, read_timeout, bodies or Bodies())
    where = settings.bind_address, settings.port
    return listening(application, *where, settings="webhook", tls=tls.context, limits=limits)


def _application(review: Review, read_timeout: float, bodies: Bodies) -> web.Application:
    async def post(request: web.Request) -> web.Response:
        if request.content_type != _MEDIA_TYPE:
            raise web.HTTPUnsupportedMediaType(text=f"send an AdmissionReview as {_MEDIA_TYPE}\n")
        try:
            with anyio.fail_after(read_timeout), bodies.arriving() as body:
                await bodies.read(request, body)
                answer = await bodies.answered(review, body)
        except TimeoutError:
            raise web.HTTPRequestTimeout(text=f"the review did not arrive within {read_timeout:g} s\n") from None
        media_type = _MEDIA_TYPE if answer.status == 200 else "text/plain"
        return web.Response(status=answer.status, body=answer.body, content_type=media_type)

    application = web.Application()
    application.router.add_post(PATH, post)
    return application
