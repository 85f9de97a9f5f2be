"""Serves reviews over HTTPS, limited in size and time. The certificate can be replaced meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, TypeVar

import anyio
import attrs
from aiohttp import web

from multikueue.core.admission.registration import PATH
from multikueue.webhook.reviewer import ReviewAnswer
from multikueued.serving.gate import Limits
from multikueued.serving.port import listening
from multikueued.serving.serving_tls import ServingTls
from multikueued.settings.config import WebhookSettings

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
    bodies: RequestBodies | None = None,
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
    bodies = bodies or RequestBodies()

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
    where = settings.bind_address, settings.port
    return listening(application, *where, settings="webhook", tls=tls, limits=limits)


MAX_BODY: Final = 7 << 20
"""Bytes of a review: API servers accept objects of 3 MiB, and a review may hold two versions of one."""
MAX_IN_FLIGHT: Final = 32 << 20
"""Bytes of all reviews that have arrived and are not answered: four of the largest at least."""
LARGE: Final = 256 << 10
"""Bytes from which on a review takes the loop for more than a few milliseconds."""

T = TypeVar("T")


@attrs.define(eq=False)
class RequestBodies:
    """The bodies of the requests that a server reads: how many bytes of them are in memory."""

    most: int = MAX_IN_FLIGHT
    """Bytes of all of them together."""
    in_flight: int = attrs.field(default=0, init=False)
    """Bytes that have arrived and are still needed."""
    _turn: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    @contextmanager
    def arriving(self) -> Iterator[bytearray]:
        """A body to fill by `read`; its bytes count until the context ends."""
        body = bytearray()
        try:
            yield body
        finally:
            self.in_flight -= len(body)

    async def read(self, request: web.Request, body: bytearray) -> None:
        """Read what a request sends.

        Raises:
            HTTPRequestEntityTooLarge: it says that it is too large, or turns out to be.
            HTTPServiceUnavailable: all together are too large.
        """
        announced = request.content_length or 0
        if announced > MAX_BODY:
            raise web.HTTPRequestEntityTooLarge(MAX_BODY, announced)
        async for chunk in request.content.iter_any():
            if len(body) + len(chunk) > MAX_BODY:
                raise web.HTTPRequestEntityTooLarge(MAX_BODY, len(body) + len(chunk))
            if self.in_flight + len(chunk) > self.most:
                raise web.HTTPServiceUnavailable(text="too many large reviews at a time\n")
            self.in_flight += len(chunk)
            body += chunk

    async def answered(self, answer: Callable[[bytes], T], body: bytearray) -> T:
        """Answer a body. Large ones take turns, and leave the loop to others for as long as they have taken it."""
        if len(body) < LARGE:
            return answer(bytes(body))
        async with self._turn:
            began = time.perf_counter()
            result = answer(bytes(body))
            await anyio.sleep(time.perf_counter() - began)
        return result
