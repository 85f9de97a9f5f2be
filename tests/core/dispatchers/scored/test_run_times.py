"""Medians of run times, and intervals of the start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.facts import PodSet, ResourceRequest
from multikueue.core.dispatchers.scored.run_times import KEPT, KINDS, LEAST, Ended, Interval, RunTimes, size

GPUS = size({"cpu": 4000, "nvidia.com/gpu": 1000})


def seen(*waits: float, run_time: float = 60.0) -> RunTimes:
    found = RunTimes()
    for wait in waits:
        found.add(Ended("team", GPUS, run_time, wait))
    return found


def test_a_median_of_a_queue_and_a_size() -> None:
    found = RunTimes()
    assert found.run_time("team", GPUS) is None

    for seconds in (10.0, 20.0, 900.0):
        found.add(Ended("team", GPUS, seconds, 0.0))
    assert found.run_time("team", GPUS) == 20.0

    found.add(Ended("team", GPUS, 900.0, 0.0))
    assert found.run_time("team", GPUS) == 460.0
    assert found.run_time("others", GPUS) is None
    assert found.run_time("team", size({"cpu": 4000})) is None


def test_only_the_last_ones_count() -> None:
    found = seen(*[5.0] * KEPT, run_time=10.0)
    for _ in range(KEPT):
        found.add(Ended("team", GPUS, 70.0, 5.0))

    assert found.run_time("team", GPUS) == 70.0


def test_the_size_is_what_all_pods_need_whatever_the_order() -> None:
    request = ResourceRequest((PodSet({"nvidia.com/gpu": 1000}), PodSet({"cpu": 4000})))

    assert size(request.total) == GPUS


def test_no_interval_of_too_few() -> None:
    assert seen(*range(1, LEAST)).start("team", GPUS, 0.0) is None
    assert seen(*range(1, LEAST + 1)).start("team", GPUS, 0.0) == Interval(2, 19)


def test_only_those_count_that_had_waited_as_long() -> None:
    found = seen(*range(1, 101))

    assert found.start("team", GPUS, 50.0) == Interval(55, 96)
    assert found.start("team", GPUS, 81.0) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=LEAST, max_size=KEPT))
def test_four_of_five_that_were_seen_lie_in_the_interval(waits: list[float]) -> None:
    found = seen(*waits).start("team", GPUS, 0.0)

    assert found is not None
    assert sum(found.earliest <= wait <= found.latest for wait in waits) >= 0.8 * len(waits)


def test_of_many_sizes_those_are_kept_of_which_one_has_ended_last() -> None:
    found = RunTimes()
    for cpu in range(KINDS):
        found.add(Ended("team", size({"cpu": cpu}), 1.0, 0.0))
    found.add(Ended("team", size({"cpu": 0}), 3.0, 0.0))
    found.add(Ended("team", size({"cpu": KINDS}), 1.0, 0.0))

    assert found.run_time("team", size({"cpu": 0})) == 2.0
    assert found.run_time("team", size({"cpu": 1})) is None
