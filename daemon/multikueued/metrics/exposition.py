"""`/metrics`: one page for all who ask within a second, rendered by a thread.

A page of 4,000 series takes 32 ms: rendered in the event loop for each client, it would keep everything else waiting.
"""

from __future__ import annotations

import gzip
from typing import Final

import anyio
import anyio.to_thread
import attrs
from aiohttp import hdrs, web
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest, gzip_accepted

from multikueued.metrics.collectors import MetricsSnapshot
from multikueued.metrics.hooks import Metrics

EVERY: Final = 1.0
"""Seconds for which a page is shown."""


@attrs.frozen
class Page:
    """All metrics, in Prometheus' text format."""

    plain: bytes
    packed: bytes
    """The same, compressed."""

    @classmethod
    def of(cls, snapshot: MetricsSnapshot) -> Page:
        """Render it. This may run in any thread."""
        plain = generate_latest(snapshot)
        return cls(plain, gzip.compress(plain, compresslevel=1))


@attrs.define(eq=False)
class Exposition:
    """Shows the metrics of a process to anybody."""

    metrics: Metrics
    _page: Page | None = attrs.field(default=None, init=False)
    _until: float = attrs.field(default=0.0, init=False)
    """Until when the page is shown, by the loop's clock."""
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    async def page(self) -> Page:
        """The page of this second. Who asks while it is being rendered waits for it."""
        async with self._lock:
            if self._page is None or anyio.current_time() >= self._until:
                self._page = await anyio.to_thread.run_sync(Page.of, self.metrics.snapshot())
                self._until = anyio.current_time() + EVERY
            return self._page

    async def show(self, request: web.Request) -> web.Response:
        """Answer a request."""
        page = await self.page()
        headers = {hdrs.CONTENT_TYPE: CONTENT_TYPE_PLAIN_0_0_4}
        if not gzip_accepted(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
            return web.Response(body=page.plain, headers=headers)
        return web.Response(body=page.packed, headers={**headers, hdrs.CONTENT_ENCODING: "gzip"})
