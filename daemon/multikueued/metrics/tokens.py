"""When bound tokens end, and how often they were renewed, as metrics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from prometheus_client import Counter, Gauge
from prometheus_client.registry import CollectorRegistry

from multikueued.metrics.collectors import Children

MAX_WORKERS: Final = 100


class TokenMetrics:
    """Two metrics in a registry; series of workers whose token is not bound any more vanish."""

    def __init__(self, registry: CollectorRegistry) -> None:
        about = "When the bound token of a worker ends, by this process's clock."
        self._ends = Children(
            Gauge("multikueue_token_expires_timestamp_seconds", about, ("cluster",), registry=registry), MAX_WORKERS
        )
        about_renewals, labels = "Attempts to renew bound tokens.", ("cluster", "outcome")
        counter = Counter("multikueue_token_renewals", about_renewals, labels, registry=registry)
        self._renewals = Children(counter, 2 * MAX_WORKERS)
        self._known: set[str] = set()

    def ends(self, times: Mapping[str, datetime]) -> None:
        """The tokens that are bound, by worker."""
        for worker in self._known - times.keys():
            self._ends.remove(worker)
        self._known = set(times)
        for worker, at in times.items():
            if (gauge := self._ends.within(worker)) is not None:
                gauge.set(at.timestamp())

    def tried(self, worker: str, outcome: str) -> None:
        """An attempt: `renewed` or `failed`."""
        self._renewals.of(worker, outcome).inc()
