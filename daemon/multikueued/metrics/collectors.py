"""What is read only when somebody scrapes: queues, workers, what runs there; and series that are never too many."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

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
    starving: Callable[[], int] = int

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
            for status_value in ("True", "False", "Unknown"):
                status.add_metric([queue, cluster, status_value, self.role], status_value == now)
        running = GaugeMetricFamily("multikueue_workloads_running", "Workloads that a worker has.", labels=by_cluster)
        about = "Workloads that are offered to a worker, and that no worker has."
        waiting = GaugeMetricFamily("multikueue_workloads_waiting", about, labels=by_cluster)
        for cluster, placed, offered in itertools.islice(self.counts(), MAX_COUNTED):
            running.add_metric([cluster], placed)
            waiting.add_metric([cluster], offered)
        about = "Workloads that are held for more than an hour while later ones of their queue have started."
        starving = GaugeMetricFamily("multikueue_workloads_starving", about)
        starving.add_metric([], self.starving())
        yield from (due, active, status, running, waiting, starving)


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


M = TypeVar("M", bound=MetricWrapperBase)

OTHER: Final = "other"
"""The label value of everything beyond a metric's limit."""


@attrs.define(eq=False)
class Children(Generic[M]):
    """A metric's time series by label values, at most `limit` of them and one for all others."""

    metric: M
    limit: int
    last: tuple[str, ...] = ()
    """The values of its last labels: the same in all series, also in that of all others."""
    labels: tuple[str, ...] = ()
    """The names of its labels."""
    _known: dict[tuple[str, ...], M] = attrs.field(factory=dict, init=False)
    """Kept here because a lookup in the metric takes four times as long as counting."""

    def of(self, *values: str) -> M:
        """The series of these label values, or of all others."""
        return self.within(*values) or self.metric.labels(*[OTHER] * len(values), *self.last)

    def within(self, *values: str) -> M | None:
        """The series of these label values; None beyond the limit, for values that cannot be added up."""
        child = self._known.get(values)
        if child is None and len(self._known) < self.limit:
            child = self._known[values] = self.metric.labels(*values, *self.last)
        return child

    def remove(self, *values: str) -> None:
        """Forget one series, if there is one."""
        if self._known.pop(values, None) is not None:
            self.metric.remove(*values, *self.last)

    def remove_all(self, label: str, value: str) -> None:
        """Forget all series with this value of a label, where the metric has that label."""
        if label in self.labels:
            place = self.labels.index(label)
            for values in [values for values in self._known if values[place] == value]:
                self.remove(*values)

    def clear(self) -> None:
        """Forget all series."""
        self._known.clear()
        self.metric.clear()
