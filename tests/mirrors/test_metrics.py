"""Mirrors as metrics: there are none of them while mirrors are off."""

from __future__ import annotations

from prometheus_client import generate_latest

from multikueued.metrics.hooks import Metrics
from multikueued.reports.worker_facts import ShownPods


def test_mirrors_have_metrics_once_they_are_on() -> None:
    metrics = Metrics("standalone")
    assert b"mirror" not in generate_latest(metrics.registry)
    metrics.mirrors.shown(lambda: {"worker1": ShownPods(2, 1), "worker2": ShownPods(1)})
    assert metrics.mirrors.of("worker1") == ShownPods(2, 1)
    assert metrics.mirrors.of("worker3") == ShownPods()
    metrics.mirrors.refused("Forbidden")
    metrics.mirrors.refused("Forbidden")
    text = generate_latest(metrics.registry).decode()
    assert "multikueue_mirrors 3.0" in text
    assert 'multikueue_mirror_refusals_total{reason="Forbidden"} 2.0' in text
    metrics.mirrors.shown(dict)  # another process leads
    assert "multikueue_mirrors 0.0" in generate_latest(metrics.registry).decode()
