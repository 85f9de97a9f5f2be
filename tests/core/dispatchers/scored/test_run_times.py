"""Medians of run times."""

from __future__ import annotations

from multikueue.core.dispatchers.scored.facts import PodSet, ResourceRequest
from multikueue.core.dispatchers.scored.run_times import KEPT, KINDS, Ended, RunTimes, size

GPUS = size({"cpu": 4000, "nvidia.com/gpu": 1000})


def test_a_median_of_a_queue_and_a_size() -> None:
    found = RunTimes()
    assert found.run_time("team", GPUS) is None

    for seconds in (10.0, 20.0, 900.0):
        found.add(Ended("team", GPUS, seconds))
    assert found.run_time("team", GPUS) == 20.0

    found.add(Ended("team", GPUS, 900.0))
    assert found.run_time("team", GPUS) == 460.0
    assert found.run_time("others", GPUS) is None
    assert found.run_time("team", size({"cpu": 4000})) is None


def test_only_the_last_ones_count() -> None:
    found = RunTimes()
    for seconds in (10.0, 70.0):
        for _ in range(KEPT):
            found.add(Ended("team", GPUS, seconds))

    assert found.run_time("team", GPUS) == 70.0


def test_the_size_is_what_all_pods_need_whatever_the_order() -> None:
    request = ResourceRequest((PodSet({"nvidia.com/gpu": 1000}), PodSet({"cpu": 4000})))

    assert size(request.total) == GPUS


def test_of_many_sizes_those_are_kept_of_which_one_has_ended_last() -> None:
    found = RunTimes()
    for cpu in range(KINDS):
        found.add(Ended("team", size({"cpu": cpu}), 1.0))
    found.add(Ended("team", size({"cpu": 0}), 3.0))
    found.add(Ended("team", size({"cpu": KINDS}), 1.0))

    assert found.run_time("team", size({"cpu": 0})) == 2.0
    assert found.run_time("team", size({"cpu": 1})) is None
