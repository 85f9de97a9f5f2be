"""Reviews over HTTPS: bounded in size and time, and nothing else on that port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from aiohttp import web

from multikueue.core.admission.registration import PATH
from multikueue.webhook.reviewer import Answer
from multikueued.config import WebhookSettings
from multikueued.listening import listen
from multikueued.webhook.tls import ServingTls

MAX_BODY: Final = 7 << 20
"""Bytes of a review: API servers take objects of 3 MiB, and a review may hold two versions of one."""
READ_TIMEOUT: Final = 5.0
"""Seconds a review may take to arrive. API servers wait less long for the answer."""
_CLOSE_TIMEOUT: Final = 2.0
_MEDIA_TYPE: Final = "application/json"

Review = Callable[[bytes], Answer]


@asynccontextmanager
async def reviewing(
    settings: WebhookSettings, tls: ServingTls, review: Review, *, read_timeout: float = READ_TIMEOUT
) -> AsyncIterator[int]:
    """Serve while the context lasts; it yields the port.

    Args:
        settings: where to listen.
        tls: the certificate.
        review: answers a body.
        read_timeout: seconds a review may take to arrive.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    runner = web.AppRunner(_application(review, read_timeout), access_log=None, shutdown_timeout=_CLOSE_TIMEOUT / 2)
    try:
        await runner.setup()
        yield await listen(runner, settings.bind_address, settings.port, settings="webhook", tls=tls.context)
    finally:
        with anyio.move_on_after(_CLOSE_TIMEOUT, shield=True):
            await runner.cleanup()


def _application(review: Review, read_timeout: float) -> web.Application:
    async def post(request: web.Request) -> web.Response:
        if request.content_type != _MEDIA_TYPE:
            raise web.HTTPUnsupportedMediaType(text=f"send an AdmissionReview as {_MEDIA_TYPE}\n")
        try:
            with anyio.fail_after(read_timeout):
                body = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout(text=f"the review did not arrive within {read_timeout:g} s\n") from None
        answer = review(body)
        media_type = _MEDIA_TYPE if answer.status == 200 else "text/plain"
        return web.Response(status=answer.status, body=answer.body, content_type=media_type)

    application = web.Application(client_max_size=MAX_BODY)
    application.router.add_post(PATH, post)
    return application
