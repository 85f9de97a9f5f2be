"""The simulation of several replicas: what must hold whatever its numbers are."""

from __future__ import annotations

import random

from tests.benchmarks.scale_out import SHARDS, Cost, cost, owners, simulate


def test_a_replica_that_is_asked_for_more_than_it_can_do_falls_behind() -> None:
    """50 a second of 8 ms are 0.4 of a core; 150 are more than there is."""
    each = cost(0.008, labelled=False)
    calm, busy = simulate(50, 1, each), simulate(150, 1, each)
    assert calm.p99 < 0.1 < busy.p99
    assert 0.3 < calm.busiest < 0.45
    assert simulate(50, 1, each) == calm, "the same seed gives the same"


def test_others_events_are_what_keeps_replicas_from_adding_up() -> None:
    """Without them, and with shards that are alike, two do nearly half each."""
    whole, alone = simulate(50, 1, Cost(0.008, 0.0)), simulate(50, 2, Cost(0.008, 0.0))
    shared = simulate(50, 2, cost(0.008, labelled=False))
    labelled = simulate(50, 2, cost(0.008, labelled=True))
    assert alone.busiest < labelled.busiest < shared.busiest < whole.busiest


def test_shards_are_dealt_evenly() -> None:
    dealt = owners(3, random.Random(1))
    counts = [dealt.count(replica) for replica in range(3)]
    assert (sum(counts), max(counts) - min(counts)) == (SHARDS, 1)
