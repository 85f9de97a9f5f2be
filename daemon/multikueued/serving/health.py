"""Health and metrics over HTTP, in the same event loop as all other work: if the loop is stuck, so is the answer.

* `/healthz`: the loop is alive. It does not fail because of a cluster: a restart would not help.
* `/readyz`: the caches have synced, or another replica leads. A standby is ready, or a rolling update would not end.
* `/metrics`: for Prometheus.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import anyio
import attrs
from aiohttp import web

from multikueued.metrics.exposition import Exposition
from multikueued.metrics.hooks import Metrics
from multikueued.serving.port import health_check, listening
from multikueued.settings.config import ServingSettings

HEARTBEAT: Final = 1.0
"""Seconds between heartbeats."""
MAX_LAG: Final = 10.0
"""Seconds a heartbeat may be late: longer than any garbage collection, shorter than kubelet's usual 30 s."""


@attrs.define(eq=False)
class Heartbeat:
    """Measures how late the loop wakes a task that only sleeps."""

    on_lag: Callable[[float], None]
    """Called with the lag of each beat, in seconds."""
    _last: float = attrs.field(factory=anyio.current_time, init=False)
    _lag: float = attrs.field(default=0.0, init=False)

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self._last = anyio.current_time()
            await anyio.sleep(HEARTBEAT)
            self._lag = max(0.0, anyio.current_time() - self._last - HEARTBEAT)
            self.on_lag(self._lag)

    @property
    def lag(self) -> float:
        """Seconds by which the last beat was late, or the next one is already."""
        return max(self._lag, anyio.current_time() - self._last - HEARTBEAT)


def serving(
    settings: ServingSettings, metrics: Metrics, why_not_ready: Callable[[], str | None]
) -> AbstractAsyncContextManager[int]:
    """Serve while the context lasts; it yields the port.

    Args:
        settings: where to listen.
        metrics: served at `/metrics`, unless they are served elsewhere (`secure_metrics.py`).
        why_not_ready: what readiness waits for; None: ready.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    heartbeat, application = Heartbeat(metrics.lagged), web.Application()

    def why_not_alive() -> str | None:
        lag = heartbeat.lag
        return f"the loop is {lag:.1f} s late" if lag > MAX_LAG else None

    application.router.add_get("/healthz", health_check(why_not_alive))
    application.router.add_get("/readyz", health_check(why_not_ready))
    if not settings.metrics.secure:
        application.router.add_get("/metrics", Exposition(metrics).show)
    where = settings.bind_address, settings.port
    return listening(application, *where, settings="serving", beside=heartbeat.run)
