"""Bounds what reviews may take while they arrive and are answered: bytes, and the loop's time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import anyio
import attrs
from aiohttp import web

MAX_BODY: Final = 7 << 20
"""Bytes of a review: API servers accept objects of 3 MiB, and a review may hold two versions of one."""
MAX_IN_FLIGHT: Final = 32 << 20
"""Bytes of all reviews that have arrived and are not answered: four of the largest at least."""
LARGE: Final = 256 << 10
"""Bytes from which on a review takes the loop for more than a few milliseconds."""

T = TypeVar("T")


@attrs.define(eq=False)
class Bodies:
    """The bodies of a server's requests."""

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
