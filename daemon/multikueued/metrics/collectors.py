"""What is read only when somebody scrapes: queues, workers, and what runs there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from multikueue.core.machinery.queue import QueueStatistics

MAX_STATUSES: Final = 150
"""Pairs of ClusterQueue and worker of which the status is shown, in three series each."""

MAX_COUNTED: Final = 50
"""Workers with series for what runs and waits there."""

QueueSource = Callable[[], Mapping[str, QueueStatistics]]
CountSource = Callable[[], Iterable[tuple[str, int, int]]]
"""Worker, how many Workloads it has, and how many are offered to it."""
StatusSource = Callable[[], Iterable[tuple[str, str, str]]]
"""ClusterQueue, worker, and the status of the worker's Active condition."""


@attrs.frozen(eq=False)
class WithKueuesPrefix(Collector):
    """Shows metrics a second time with `kueue_` before their names, as all of Kueue's own metrics have it."""

    metrics: tuple[MetricWrapperBase, ...]

    def collect(self) -> Iterator[Metric]:
        """The same series under the other name."""
        for family in itertools.chain.from_iterable(metric.collect() for metric in self.metrics):
            renamed = Metric(f"kueue_{family.name}", family.documentation, family.type)
            totals = (sample for sample in family.samples if sample.name.endswith("_total"))
            renamed.samples = [sample._replace(name=f"kueue_{sample.name}") for sample in totals]
            yield renamed


@attrs.define(eq=False)
class QueueCollector(Collector):
    """Reads the controllers' queues at each scrape."""

    source: QueueSource | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The lengths of the queues right now."""
        waiting = GaugeMetricFamily("multikueue_queue_waiting", "Keys due or delayed.", labels=["controller"])
        active = GaugeMetricFamily("multikueue_queue_active", "Keys being reconciled.", labels=["controller"])
        for controller, statistics in (self.source() if self.source else {}).items():
            waiting.add_metric([controller], statistics.ready_or_delayed)
            active.add_metric([controller], statistics.held)
        yield waiting
        yield active


@attrs.define(eq=False)
class WorkerCollector(Collector):
    """Reads at each scrape how the workers behind each ClusterQueue are: a metric of Kueue's (v0.20)."""

    role: str
    source: StatusSource | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One series for each status, of which one is 1."""
        labels = ("cluster_queue", "cluster", "active", "replica_role")
        family = GaugeMetricFamily("multikueue_cluster_status", "The Active condition of workers.", labels=labels)
        for queue, cluster, status in itertools.islice(self.source() if self.source else (), MAX_STATUSES):
            for one in ("True", "False", "Unknown"):
                family.add_metric([queue, cluster, one, self.role], one == status)
        yield family


@attrs.define(eq=False)
class Counts(Collector):
    """Reads at each scrape what the workers have and are offered."""

    source: CountSource | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Two series for each worker."""
        running = GaugeMetricFamily("multikueue_workloads_running", "Workloads that a worker has.", labels=["cluster"])
        about = "Workloads that are offered to a worker, and that no worker has."
        waiting = GaugeMetricFamily("multikueue_workloads_waiting", about, labels=["cluster"])
        for cluster, placed, offered in itertools.islice(self.source() if self.source else (), MAX_COUNTED):
            running.add_metric([cluster], placed)
            waiting.add_metric([cluster], offered)
        yield running
        yield waiting


@attrs.frozen(eq=False)
class MetricsSnapshot(Collector):
    """All metrics, for a thread: what the event loop changes has been read, and the others have locks."""

    read: tuple[Metric, ...]
    registry: CollectorRegistry

    def collect(self) -> Iterator[Metric]:
        """The metrics."""
        yield from self.read
        yield from self.registry.collect()


class Registry(CollectorRegistry):
    """A registry without `_created` samples, which would double the series."""

    def collect(self) -> Iterator[Metric]:
        """The metrics, without `_created` samples."""
        for metric in super().collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
