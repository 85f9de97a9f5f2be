"""Metrics: the library's hooks as Prometheus metrics, in a registry of their own.

A scrape costs about 8 us a series, so there are fewer than 4,000: no label names a workload, and a metric with too many
label values counts the rest under `other`. Series of a worker that is removed vanish.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from prometheus_client import Counter, Gauge, Histogram, ProcessCollector

from multikueue.core.effects import ConfigStatistics
from multikueue.core.model.names import ClusterName
from multikueued.metrics.collectors import (
    OTHER,
    Children,
    CountSource,
    LeaderCollector,
    M,
    MetricsSnapshot,
    QueueSource,
    Registry,
    StatusSource,
    WithKueuesPrefix,
)
from multikueued.metrics.tokens import TokenMetrics
from multikueued.reports.usage import Payer

if TYPE_CHECKING:
    from multikueued.metrics.mirrors import MirrorMetrics

MAX_CONFIGS: Final = 40
"""Configs with series of their own; those beyond are not shown: their figures cannot be added up."""


class PlacementMetrics:
    """What is shown of each config. Implements `multikueue.protocols.PlacementHook`.

    Args:
        new: makes a metric with at most so many series.
    """

    def __init__(self, new: Callable[..., Children[Any]]) -> None:
        def gauge(name: str, about: str) -> Children[Gauge]:
            return new(Gauge, f"placement_{name}", about, ("config",), MAX_CONFIGS)

        self._gauges = {
            "selected": gauge("selected_clusters", "Clusters that a Placement, or labels, select for a config."),
            "listed": gauge("listed_clusters", "Clusters that a config lists."),
            "draining": gauge("draining_clusters", "Clusters that are not selected any more and still have work."),
            "since": gauge("decision_timestamp_seconds", "When the selection changed last, as far as was seen."),
        }
        """By field of the statistics."""
        about = "Better orders of a config that were not written."
        self._put_off: Children[Counter] = new(Counter, "placement_skipped_writes", about, ("config",), MAX_CONFIGS)

    def filled(self, config: str, figures: ConfigStatistics) -> None:
        """See `PlacementHook`."""
        for field, metric in self._gauges.items():
            value = getattr(figures, field)
            if value is not None and (series := metric.within(config)) is not None:
                series.set(value.timestamp() if isinstance(value, datetime) else value)

    def put_off(self, config: str) -> None:
        """See `PlacementHook`."""
        if (series := self._put_off.within(config)) is not None:
            series.inc()

    def released(self, config: str) -> None:
        """See `PlacementHook`."""
        for gauge in self._gauges.values():
            gauge.remove(config)
        self._put_off.remove(config)

    def clear(self) -> None:
        """Forget what was seen: another process looks now."""
        for gauge in self._gauges.values():
            gauge.clear()


MAX_REMOVED: Final = 100
"""Workers that are known to be removed. Requests to them end within a minute."""

HOME: Final = "manager"
"""The label value of the manager itself, also for a worker that has this name."""

MAX_PAIRS: Final = 280
"""Pairs of ClusterQueue and worker with series of their own: 14 queues on 20 workers, two counters under two names."""

MAX_REJECTIONS: Final = 200
"""Pairs of worker and reason: ten reasons of each of 20 workers."""

MAX_USES: Final = 300
"""Series of what was used: 15 queues on ten workers, two resources each."""

MAX_TIMED: Final = 20
"""Workers with histograms of their own."""

Role = Literal["leader", "standalone"]

_request_seconds = functools.partial(Histogram, buckets=(0.01, 0.05, 0.25, 1.0, 5.0, 30.0))
"""From a request in the same data centre to the client's deadline."""
_reconcile_seconds = functools.partial(Histogram, buckets=(0.001, 0.01, 0.1, 1.0, 10.0))
_placement_seconds = functools.partial(Histogram, buckets=(0.5, 2.0, 10.0, 60.0, 300.0, 1_800.0, 7_200.0, 43_200.0))
"""From a free worker to a day in its queue."""
_lag_seconds = functools.partial(Histogram, buckets=(0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0))


class Metrics:
    """All metrics of one process.

    Implements `RequestHook`, `ControllerHook`, `ManagerHook` and `ReviewHook`, all of `multikueue.protocols`.

    Args:
        role: `leader` with leader election, `standalone` without; a label of Kueue's own metrics.
    """

    def __init__(self, role: Role) -> None:
        self.registry = Registry()
        """What is counted: any thread may read it."""
        self.tokens = TokenMetrics(self.registry)
        self._leader = LeaderCollector(role)
        self._describe_process()
        new, by_controller = self._children, ("controller",)
        pairs, asked = ("cluster_queue", "cluster", "replica_role"), ("cluster", "verb", "resource", "code")
        self._dispatched = new(
            Counter, "workloads_dispatched", "Workloads offered to a cluster.", pairs, MAX_PAIRS, role
        )
        self._admitted = new(
            Counter, "workloads_admitted", "Workloads given to the admitting one.", pairs, MAX_PAIRS, role
        )
        self.registry.register(WithKueuesPrefix((self._dispatched.metric, self._admitted.metric)))
        self._requests = new(Counter, "requests", "Requests to API servers; code 0: no answer.", asked, 400)
        self._request_seconds = new(_request_seconds, "request_seconds", "How long requests took.", asked[:2], 90)
        self._reconcile_seconds = new(
            _reconcile_seconds, "reconcile_seconds", "How long reconciles took.", by_controller, 10
        )
        self._failures = new(Counter, "reconcile_failures", "Reconciles that failed.", by_controller, 10)
        self._reviews = new(Counter, "webhook_reviews", "Answers about new jobs.", ("outcome",), 10)
        self.placements = PlacementMetrics(new)
        """Of configs that are filled from an inventory."""
        self._connected = new(
            Gauge, "cluster_connected", "Whether a worker's Workloads are being watched.", ("cluster",), 100
        )
        by_cluster = ("cluster",)
        self._placement_seconds = new(
            _placement_seconds, "placement_seconds", "From quota to a recorded worker.", by_cluster, MAX_TIMED
        )
        about = "From a change on a worker to the status on the manager."
        self._lag_seconds = new(_lag_seconds, "status_lag_seconds", about, by_cluster, MAX_TIMED)
        rounds = "How often a dispatcher chose more workers for a Workload."
        self._rounds = new(Counter, "dispatch_rounds", rounds, ("cluster_queue",), MAX_TIMED)
        self._refusals = new(Counter, "refusals", "Objects that a worker refused.", ("cluster", "reason"), 80)
        about_rejections = "Times that a dispatcher said anew why a worker is not offered a workload."
        self._rejections = new(Counter, "dispatch_rejections", about_rejections, ("worker", "reason"), MAX_REJECTIONS)
        about = "What jobs have held of workers: a resource's amount times seconds, while this process led."
        payers = ("namespace", "queue", "cluster", "cost", "resource")
        self._used = new(Counter, "resource_seconds", about, payers, MAX_USES)
        first = (self._dispatched, self._admitted, self._requests, self._request_seconds, self._connected)
        self._by_cluster = (*first, self._placement_seconds, self._lag_seconds, self._refusals, self._used)
        self._removed: dict[str, None] = {}
        """Workers that the manager does not know any more, in the order in which they went: what their last requests
        are told to later counts for all others."""
        self._leading = Gauge("multikueue_leading", "Whether this process does the work.", registry=self.registry)
        self._lag = Gauge("multikueue_loop_lag_seconds", "How late the last heartbeat was.", registry=self.registry)

    @functools.cached_property
    def mirrors(self) -> MirrorMetrics:
        """Of pods of runs that the manager shows; there are none before it is asked for."""
        from multikueued.metrics.mirrors import MirrorMetrics  # a ring of its own

        return MirrorMetrics(self.registry)

    def snapshot(self) -> MetricsSnapshot:
        """All metrics as they are now; to be called in the event loop, which changes what is read here."""
        return MetricsSnapshot(tuple(self._leader.collect()), self.registry)

    def dispatched(self, cluster_queue: str, cluster: ClusterName) -> None:
        """See `ManagerHook`."""
        self._dispatched.of(cluster_queue, self._named(cluster)).inc()

    def admitted(self, cluster_queue: str, cluster: ClusterName) -> None:
        """See `ManagerHook`."""
        self._admitted.of(cluster_queue, self._named(cluster)).inc()

    def round_begun(self, cluster_queue: str) -> None:
        """See `ManagerHook`."""
        self._rounds.of(cluster_queue).inc()

    def placed(self, cluster: ClusterName, seconds: float) -> None:
        """See `ManagerHook`."""
        self._placement_seconds.of(self._named(cluster)).observe(seconds)

    def status_synced(self, cluster: ClusterName, seconds: float) -> None:
        """See `ManagerHook`."""
        self._lag_seconds.of(self._named(cluster)).observe(seconds)

    def rejected(self, cluster: ClusterName, reason: str) -> None:
        """See `ManagerHook`."""
        self._rejections.of(self._named(cluster), reason).inc()

    def refused(self, cluster: ClusterName, reason: str) -> None:
        """See `ManagerHook`."""
        self._refusals.of(self._named(cluster), reason).inc()

    def used(self, payer: Payer, resource: str, seconds: float) -> None:
        """What jobs have held of a worker since this was called last."""
        self._used.of(payer.namespace, payer.queue, self._named(payer.worker), payer.cost, resource).inc(seconds)

    def cluster_connected(self, cluster: ClusterName, connected: bool) -> None:
        """See `ManagerHook`."""
        self._removed.pop(cluster, None)
        if (gauge := self._connected.within(cluster)) is not None:
            gauge.set(connected)

    def cluster_removed(self, cluster: ClusterName) -> None:
        """See `ManagerHook`. Its series end: otherwise those of workers long gone would take the place of new ones."""
        self._connected.remove(cluster)
        if cluster == HOME:
            return
        for children in self._by_cluster:
            children.remove_all("cluster", cluster)
        self._rejections.remove_all("worker", cluster)
        self._removed.pop(cluster, None)
        self._removed[cluster] = None
        if len(self._removed) > MAX_REMOVED:
            del self._removed[next(iter(self._removed))]

    def reconciled(self, controller: str, seconds: float, error: Exception | None) -> None:
        """See `ControllerHook`."""
        self._reconcile_seconds.of(controller).observe(seconds)
        if error is not None:
            self._failures.of(controller).inc()

    def observe(self, cluster: str, verb: str, resource: str, status: int, seconds: float) -> None:
        """See `RequestHook`."""
        cluster = self._named(cluster)
        self._requests.of(cluster, verb, resource, str(status)).inc()
        if verb != "watch":  # a watch's duration says nothing
            self._request_seconds.of(cluster, verb).observe(seconds)

    def reviewed(self, outcome: str) -> None:
        """See `ReviewHook`."""
        self._reviews.of(outcome).inc()

    def began(
        self, queues: QueueSource, workers: StatusSource, counts: CountSource = tuple, starving: Callable[[], int] = int
    ) -> None:
        """This process leads from now on; its queues and workers are read at each scrape."""
        self._leading.set(1)
        self._leader = LeaderCollector(self._leader.role, queues, workers, counts, starving)

    def ended(self) -> None:
        """It does not lead any more, and watches no cluster."""
        self._leading.set(0)
        self._leader = LeaderCollector(self._leader.role)
        self._connected.clear()
        self.placements.clear()

    def lagged(self, seconds: float) -> None:
        """How late the loop's last heartbeat was."""
        self._lag.set(seconds)

    def _describe_process(self) -> None:
        """What Prometheus' client tells of every process (`process_*`), and which build this is."""
        ProcessCollector(registry=self.registry)
        about, labels = "The version that runs, always 1.", ("version", "python")
        build = Gauge("multikueue_build_info", about, labels, registry=self.registry)
        build.labels(_version(), platform.python_version()).set(1)

    def _named(self, cluster: str) -> str:
        """The label value of a cluster: that of all others for a worker that was removed."""
        return OTHER if cluster in self._removed else cluster

    def _children(
        self, metric: Callable[..., M], name: str, about: str, labels: tuple[str, ...], limit: int, *last: str
    ) -> Children[M]:
        return Children(
            metric(name, about, labels, namespace="multikueue", registry=self.registry), limit, last, labels
        )


def _version() -> str:
    try:
        return importlib.metadata.version("multikueue")
    except importlib.metadata.PackageNotFoundError:  # it runs from a folder
        return "unknown"
