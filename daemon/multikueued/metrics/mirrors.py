"""How many mirrors there are, and which pods are not shown, as metrics. Without `mirrorPods` there are none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import Counter, Gauge
from prometheus_client.registry import CollectorRegistry

from multikueued.metrics.collectors import Children
from multikueued.reports.worker_facts import ShownPods

MAX_REASONS: Final = 20


class MirrorMetrics:
    """Two metrics in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Gauge("multikueue_mirrors", "Pods of runs that are shown on the manager.", registry=registry)
        about = "Pods of runs that were not shown, or not as they were."
        counter = Counter("multikueue_mirror_refusals", about, ("reason",), registry=registry)
        self._refusals = Children(counter, MAX_REASONS)
        self._counted: Callable[[], Mapping[str, ShownPods]] = dict
        self._count.set_function(lambda: sum(pods.shown for pods in self._counted().values()))

    def shown(self, counted: Callable[[], Mapping[str, ShownPods]]) -> None:
        """What counts the mirrors of each worker from now on."""
        self._counted = counted

    def of(self, worker: str) -> ShownPods:
        """The pods of one worker."""
        return self._counted().get(worker, ShownPods())

    def refused(self, reason: str) -> None:
        """A pod is not shown: the API's word, as `Forbidden`, or `NoPlace`."""
        self._refusals.of(reason).inc()
