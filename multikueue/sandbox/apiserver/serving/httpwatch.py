"""A watch over HTTP: one JSON line per event in a chunked answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import attrs
from aiohttp import web

from multikueue.sandbox.apiserver.encoding import encode
from multikueue.sandbox.apiserver.faults import Fault, Faults
from multikueue.sandbox.apiserver.serving.representations import Representation
from multikueue.sandbox.apiserver.serving.routing import Route
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.streaming import WatchStream
from multikueue.sandbox.apiserver.storage.watching import Emission, WatchOptions
from multikueue.sandbox.apiserver.verbs.registry import Registry

_BATCH = 200  # events in one write: few system calls, and no megabytes in one buffer


@attrs.define(eq=False)
class _LineSink:
    """Writes watch lines into a response."""

    _response: web.StreamResponse
    _form: Representation
    _moment: Callable[[], datetime]
    _first: bool = attrs.field(default=True, init=False)

    async def events(self, emissions: Sequence[Emission]) -> None:
        for start in range(0, len(emissions), _BATCH):
            lines = [self._line(emission) for emission in emissions[start : start + _BATCH]]
            await self._response.write(b"".join(lines))

    def _line(self, emission: Emission) -> bytes:
        raw = self._form.event(emission.entry, self._moment(), first=self._first)
        self._first = False
        return _line(emission.type, raw)

    async def bookmark(self, revision: int, *, initial_end: bool) -> None:
        raw = self._form.bookmark(revision, self._moment(), initial_end=initial_end)
        await self._response.write(_line("BOOKMARK", raw))

    async def failure(self, error: StatusError) -> None:
        await self._response.write(_line("ERROR", encode(error.body())))


def _line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


async def stream_watch(
    request: web.BaseRequest,
    registry: Registry,
    faults: Faults,
    asked: Route,
    form: Representation,
    hit: list[Fault],
) -> web.StreamResponse:
    """Serve a watch until its timeout.

    Raises:
        StatusError: it cannot start.
        ConnectionLostError: a fault cut it.
        OSError: the client is gone.
    """
    options = WatchOptions.from_query(asked.row, request.query, asked.name or None)
    cursor = registry.watch(asked.row, asked.namespace, options)
    headers = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    stream = WatchStream(
        cursor,
        _LineSink(response, form, registry.cluster.moment),
        faults,
        hit,
        timeout=options.timeout or registry.watch_timeout(),
        bookmark_interval=registry.bookmark_interval,
    )
    await stream.run()
    await response.write_eof()
    return response
