"""What is made of the moments that were seen."""

from __future__ import annotations

import pytest

from tests.benchmarks import moments
from tests.benchmarks.moments import Moments, quantiles


def test_a_moment_is_the_first_time_that_something_was_seen() -> None:
    seen = Moments()
    for when in (2.0, 1.0, 3.0):
        seen.note("a", moments.READY, when)
    assert seen.all(moments.READY) == [2.0]


def test_a_latency_needs_both_moments() -> None:
    seen = Moments()
    for job, ready in (("a", 1.5), ("b", None), ("c", 3.0)):
        seen.note(job, moments.CREATED, 1.0)
        if ready is not None:
            seen.note(job, moments.READY, ready)
    assert seen.latencies("created_ready") == [(1.0, 0.5), (1.0, 2.0)]
    assert seen.rate(moments.READY) == 1.0


def test_quantiles_are_values_that_were_measured() -> None:
    seconds = [number / 1000 for number in range(1, 201)]
    assert quantiles(seconds) == {"p50": 100.0, "p95": 190.0, "p99": 198.0, "max": 200.0}
    assert quantiles([0.25]) == pytest.approx({"p50": 250.0, "p95": 250.0, "p99": 250.0, "max": 250.0})
    assert quantiles([]) == {}
