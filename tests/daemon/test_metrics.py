"""The metrics, and that they stay few."""

from __future__ import annotations

from itertools import product

from prometheus_client import generate_latest

from multikueue.core.machinery.queue import QueueStatistics
from multikueue.core.model.names import ClusterName
from multikueue.protocols import ControllerHook, ManagerHook, RequestHook
from multikueued.metrics.hooks import Metrics
from multikueued.reports.usage import Payer


def series(metrics: Metrics) -> dict[str, float]:
    lines = generate_latest(metrics.snapshot()).decode().splitlines()
    samples = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value in samples}


def test_metrics_implement_every_hook_of_the_library() -> None:
    """Proved by the type checker; here so that it is checked at all."""
    metrics = Metrics("leader")
    hooks: tuple[ManagerHook, ControllerHook, RequestHook] = (metrics, metrics, metrics)

    assert all(hook is metrics for hook in hooks)


def test_kueues_own_metrics_have_kueues_names_and_labels() -> None:
    """Dashboards for the MultiKueue built into Kueue work as before."""
    metrics = Metrics("leader")
    metrics.dispatched("team-a", ClusterName("w1"))
    metrics.dispatched("team-a", ClusterName("w1"))
    metrics.admitted("team-a", ClusterName("w1"))

    labels = '{cluster="w1",cluster_queue="team-a",replica_role="leader"}'
    assert series(metrics)[f"multikueue_workloads_dispatched_total{labels}"] == 2
    assert series(metrics)[f"multikueue_workloads_admitted_total{labels}"] == 1
    assert series(metrics)[f"kueue_multikueue_workloads_dispatched_total{labels}"] == 2
    assert series(metrics)[f"kueue_multikueue_workloads_admitted_total{labels}"] == 1


def test_the_status_of_the_workers_is_shown_as_by_kueue() -> None:
    """One of three series is 1, for each ClusterQueue and worker; only in the process that leads."""
    metrics = Metrics("leader")
    metrics.began(dict, lambda: [("team-a", "w1", "True"), ("team-a", "w2", "Unknown")])

    def active(cluster: str) -> dict[str, float]:
        name = 'multikueue_cluster_status{{active="{}",cluster="{}",cluster_queue="team-a",replica_role="leader"}}'
        return {status: series(metrics)[name.format(status, cluster)] for status in ("True", "False", "Unknown")}

    assert active("w1") == {"True": 1, "False": 0, "Unknown": 0}
    assert active("w2") == {"True": 0, "False": 0, "Unknown": 1}
    metrics.ended()
    assert not any("cluster_status" in name for name in series(metrics))


def test_requests_reconciles_and_connections_are_counted() -> None:
    metrics = Metrics("standalone")
    metrics.observe("w1", "create", "jobs.batch", 201, 0.02)
    metrics.observe("w1", "watch", "jobs.batch", 200, 300.0)
    metrics.observe("w1", "create", "jobs.batch", 0, 30.0)
    metrics.reconciled("multikueue_workload", 0.005, None)
    metrics.reconciled("multikueue_workload", 0.005, ValueError("broken"))
    metrics.cluster_connected(ClusterName("w1"), True)
    metrics.cluster_connected(ClusterName("w2"), False)

    samples = series(metrics)
    assert samples['multikueue_requests_total{cluster="w1",code="201",resource="jobs.batch",verb="create"}'] == 1
    assert samples['multikueue_requests_total{cluster="w1",code="0",resource="jobs.batch",verb="create"}'] == 1
    assert samples['multikueue_request_seconds_count{cluster="w1",verb="create"}'] == 2
    assert 'multikueue_request_seconds_count{cluster="w1",verb="watch"}' not in samples
    assert samples['multikueue_reconcile_seconds_count{controller="multikueue_workload"}'] == 2
    assert samples['multikueue_reconcile_failures_total{controller="multikueue_workload"}'] == 1
    assert samples['multikueue_cluster_connected{cluster="w1"}'] == 1
    assert samples['multikueue_cluster_connected{cluster="w2"}'] == 0


def test_queues_and_connections_are_shown_while_the_process_works() -> None:
    """A replica that has lost the lease must not look as if it still held connections."""
    metrics = Metrics("leader")
    assert series(metrics)["multikueue_leading"] == 0

    waiting = {"multikueue_workload": QueueStatistics(ready_or_delayed=3, held=1)}
    metrics.began(lambda: waiting, list)
    metrics.cluster_connected(ClusterName("w1"), True)
    assert series(metrics)["multikueue_leading"] == 1
    assert series(metrics)['multikueue_queue_waiting{controller="multikueue_workload"}'] == 3
    assert series(metrics)['multikueue_queue_active{controller="multikueue_workload"}'] == 1

    metrics.ended()
    assert series(metrics)["multikueue_leading"] == 0
    assert not any("queue_" in name or "connected" in name for name in series(metrics))


def test_a_cluster_that_is_removed_has_no_series() -> None:
    metrics = Metrics("leader")
    for number in range(300):
        cluster = ClusterName(f"worker-{number}")
        metrics.cluster_connected(cluster, False)
        metrics.cluster_removed(cluster)
        metrics.cluster_removed(cluster)
    assert not any("connected" in name for name in series(metrics))
    metrics.cluster_connected(ClusterName("new"), False)
    assert series(metrics)['multikueue_cluster_connected{cluster="new"}'] == 0


def test_what_runs_and_waits_is_read_at_each_scrape() -> None:
    metrics = Metrics("leader")
    counts = [("w1", 3, 2), ("w2", 0, 1)]
    metrics.began(dict, list, lambda: counts, lambda: 4)
    assert series(metrics)['multikueue_workloads_running{cluster="w1"}'] == 3
    assert series(metrics)['multikueue_workloads_waiting{cluster="w2"}'] == 1
    assert series(metrics)["multikueue_workloads_starving"] == 4
    counts.pop()
    assert not any("w2" in name for name in series(metrics))
    metrics.ended()
    assert not any("workloads_running" in name for name in series(metrics))


def test_placements_lags_rounds_and_refusals_are_counted() -> None:
    metrics = Metrics("leader")
    metrics.placed(ClusterName("w1"), 3.0)
    metrics.status_synced(ClusterName("w1"), 0.3)
    metrics.round_begun("team-a")
    metrics.refused(ClusterName("w1"), "Forbidden")
    metrics.rejected(ClusterName("w1"), "NoRoom")

    samples = series(metrics)
    assert samples['multikueue_placement_seconds_bucket{cluster="w1",le="10.0"}'] == 1
    assert samples['multikueue_placement_seconds_bucket{cluster="w1",le="2.0"}'] == 0
    assert samples['multikueue_status_lag_seconds_sum{cluster="w1"}'] == 0.3
    assert samples['multikueue_dispatch_rounds_total{cluster_queue="team-a"}'] == 1
    assert samples['multikueue_refusals_total{cluster="w1",reason="Forbidden"}'] == 1
    assert samples['multikueue_dispatch_rejections_total{reason="NoRoom",worker="w1"}'] == 1


def test_the_process_and_its_build_are_described() -> None:
    samples = series(Metrics("leader"))
    assert samples["process_cpu_seconds_total"] > 0
    (build,) = [value for name, value in samples.items() if name.startswith("multikueue_build_info{")]
    assert build == 1


def test_no_series_of_a_removed_worker_is_left() -> None:
    """Whatever has its name as a label; others stay."""
    metrics = Metrics("leader")
    for cluster in (ClusterName("gone"), ClusterName("stays")):
        metrics.cluster_connected(cluster, True)
        metrics.dispatched("team-a", cluster)
        metrics.admitted("team-a", cluster)
        metrics.observe(cluster, "create", "jobs.batch", 201, 0.01)
        metrics.placed(cluster, 1.0)
        metrics.status_synced(cluster, 1.0)
        metrics.refused(cluster, "Invalid")
    metrics.cluster_removed(ClusterName("gone"))

    assert not [name for name in series(metrics) if '"gone"' in name]
    assert len([name for name in series(metrics) if '"stays"' in name and "_bucket" not in name]) == 13


def test_the_series_of_a_worker_end_with_it_and_those_of_the_next_have_a_place() -> None:
    """Workers that come and go filled the limits: from then on all new ones were counted as one."""
    metrics = Metrics("leader")
    for number in range(500):
        cluster = ClusterName(f"worker-{number}")
        metrics.cluster_connected(cluster, True)
        metrics.dispatched("queue", cluster)
        metrics.admitted("queue", cluster)
        metrics.observe(cluster, "create", "jobs", 201, 0.01)
        metrics.cluster_removed(cluster)
        metrics.observe(cluster, "delete", "jobs", 0, 0.01)  # it was under way
    assert not any("worker-" in name for name in series(metrics))
    assert series(metrics)['multikueue_requests_total{cluster="other",code="0",resource="jobs",verb="delete"}'] == 500

    metrics.cluster_connected(ClusterName("worker-0"), True)
    metrics.observe("worker-0", "create", "jobs", 201, 0.01)
    metrics.cluster_connected(ClusterName("worker-499"), True)  # back under its name
    metrics.observe("worker-499", "create", "jobs", 201, 0.01)
    samples = series(metrics)
    for name in ("worker-0", "worker-499"):
        labels = f'{{cluster="{name}",code="201",resource="jobs",verb="create"}}'
        assert samples[f"multikueue_requests_total{labels}"] == 1


def test_the_requests_to_the_manager_are_told_though_a_worker_of_that_name_is_removed() -> None:
    metrics = Metrics("leader")
    metrics.observe("manager", "create", "jobs", 201, 0.01)
    metrics.cluster_connected(ClusterName("manager"), True)
    metrics.cluster_removed(ClusterName("manager"))
    metrics.observe("manager", "create", "jobs", 201, 0.01)
    samples = series(metrics)
    assert samples['multikueue_requests_total{cluster="manager",code="201",resource="jobs",verb="create"}'] == 2
    assert not any("cluster_connected" in name for name in samples)


def test_a_big_fleet_stays_under_4000_series_and_nothing_is_lost() -> None:
    """A scrape runs in the loop: 10,000 series would stop all work for 100 ms."""
    metrics = Metrics("leader")
    clusters = [ClusterName(f"worker-{number}") for number in range(200)]
    for cluster in clusters:
        metrics.cluster_connected(cluster, True)
        metrics.placed(cluster, 1.0)
        metrics.status_synced(cluster, 1.0)
        for reason in ("Forbidden", "Invalid", "NotFound"):
            metrics.refused(cluster, reason)
        for queue in range(20):
            metrics.used(Payer("team", f"queue-{queue}", cluster, "2.5"), "cpu", 30.0)
            metrics.round_begun(f"queue-{queue}")
            metrics.dispatched(f"queue-{queue}", cluster)
            metrics.admitted(f"queue-{queue}", cluster)
        for verb, kind, code in product(("create", "patch", "delete", "list"), ("jobs", "workloads"), (200, 404, 503)):
            metrics.observe(cluster, verb, kind, code, 0.01)
    statuses = [(f"queue-{queue}", str(cluster), "True") for queue in range(20) for cluster in clusters]
    metrics.began(dict, lambda: statuses, lambda: [(str(cluster), 1, 1) for cluster in clusters])
    for number in range(50):
        metrics.reconciled(f"controller-{number}", 0.1, ValueError())

    samples = series(metrics)
    assert len(samples) < 4_000
    dispatched = sum(
        value for name, value in samples.items() if name.startswith("multikueue_workloads_dispatched_total")
    )
    assert dispatched == 200 * 20
    used = sum(value for name, value in samples.items() if name.startswith("multikueue_resource_seconds_total"))
    assert used == 200 * 20 * 30.0
    assert 'cluster="other",cluster_queue="other",replica_role="leader"' in "".join(samples)
    assert not any("_created" in name for name in samples)
