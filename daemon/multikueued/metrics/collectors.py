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
class LeaderCollector(Collector):
    """Reads at each scrape what only a leader has."""

    role: str
    queues: QueueSource = dict
    workers: StatusSource = tuple
    counts: CountSource = tuple

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The lengths of queues; how the workers are, a metric of Kueue's (v0.20); what they have and are offered."""
        by_controller, by_cluster = ["controller"], ["cluster"]
        due = GaugeMetricFamily("multikueue_queue_waiting", "Keys due or delayed.", labels=by_controller)
        active = GaugeMetricFamily("multikueue_queue_active", "Keys being reconciled.", labels=by_controller)
        for controller, statistics in self.queues().items():
            due.add_metric([controller], statistics.ready_or_delayed)
            active.add_metric([controller], statistics.held)
        labels = ("cluster_queue", "cluster", "active", "replica_role")
        status = GaugeMetricFamily("multikueue_cluster_status", "The Active condition of workers.", labels=labels)
        for queue, cluster, now in itertools.islice(self.workers(), MAX_STATUSES):
            for one in ("True", "False", "Unknown"):
                status.add_metric([queue, cluster, one, self.role], one == now)
        running = GaugeMetricFamily("multikueue_workloads_running", "Workloads that a worker has.", labels=by_cluster)
        about = "Workloads that are offered to a worker, and that no worker has."
        waiting = GaugeMetricFamily("multikueue_workloads_waiting", about, labels=by_cluster)
        for cluster, placed, offered in itertools.islice(self.counts(), MAX_COUNTED):
            running.add_metric([cluster], placed)
            waiting.add_metric([cluster], offered)
        yield from (due, active, status, running, waiting)


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
