"""Serves reviews over HTTPS, limited in size and time. The certificate can be replaced meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio
from aiohttp import web

from multikueue.core.admission.registration import PATH
from multikueue.webhook.reviewer import ReviewAnswer
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening
from multikueued.serving.serving_tls import ServingTls
from multikueued.settings.config import WebhookSettings
from multikueued.webhook.bodies import Bodies

READ_TIMEOUT: Final = 5.0
"""Seconds a review may take to arrive and to get its turn. API servers do not wait that long for the answer."""
_MEDIA_TYPE: Final = "application/json"

Review = Callable[[bytes], ReviewAnswer]


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
