"""Intervals of the start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.dispatchers.scored.starts import FEW, KEPT, KINDS, LEAST, Interval, Starts, Waited, size
from multikueue.core.model.names import ObjectKey

GPU = size({"cpu": 4000, "nvidia.com/gpu": 1000})
ME = ObjectKey("team", "me")
NOW = datetime(2026, 11, 25, tzinfo=UTC)


def seen(*waits: float) -> Starts:
    """These waited one after the other; one more waits."""
    starts = Starts()
    for number, wait in enumerate(waits):
        key = ObjectKey("team", f"job-{number}")
        starts.reserved(key, "queue", GPU)
        starts.left(key, "queue", GPU, wait)
    starts.reserved(ME, "queue", GPU)
    return starts


def test_no_interval_of_too_few() -> None:
    assert seen(*range(1, LEAST)).interval(ME, "queue", GPU, 0.0) is None
    assert seen(*range(1, LEAST + 1)).interval(ME, "queue", GPU, 0.0) == Interval(1, 20)


def test_only_those_count_that_had_waited_as_long() -> None:
    starts = seen(*range(1, 101))

    assert starts.interval(ME, "queue", GPU, 50.0) == Interval(53, 98)
    assert starts.interval(ME, "queue", GPU, 81.0) is None


def test_it_is_longer_for_each_that_waits_already() -> None:
    starts = seen(*range(1, 101))
    for number in range(2 * FEW):
        starts.reserved(ObjectKey("team", f"{number}"), "queue", GPU)
    last = ObjectKey("team", f"{2 * FEW - 1}")

    assert starts.interval(last, "queue", GPU, 0.0) == Interval(18, 285)
    assert starts.interval(last, "queue", GPU, 60.0) == Interval(186, 297)


def test_it_does_not_begin_before_now() -> None:
    """All of them began with more ahead than this one."""
    starts, keys = Starts(), [ObjectKey("team", f"{number}") for number in range(30)]
    for key in keys:
        starts.reserved(key, "queue", GPU)
    for key in keys:
        starts.left(key, "queue", GPU, 600.0)
    starts.reserved(ME, "queue", GPU)

    interval = starts.interval(ME, "queue", GPU, 500.0)

    assert interval is not None
    assert interval.earliest == 500.0 < interval.latest < 600.0


def test_who_does_not_wait_has_none() -> None:
    starts = seen(*range(1, 101))
    starts.left(ME, "queue", GPU, None)

    assert starts.interval(ME, "queue", GPU, 0.0) is None
    assert starts.interval(ME, "other", GPU, 0.0) is None
    assert starts.interval(ME, "queue", size({"cpu": 1}), 0.0) is None


def test_only_the_last_ones_count() -> None:
    starts = seen(*[5.0] * KEPT, *[70.0] * KEPT)

    assert starts.interval(ME, "queue", GPU, 0.0) == Interval(70.0, 70.0)


def test_of_many_sizes_those_are_kept_of_which_one_has_come_last() -> None:
    starts = seen(*range(1, 101))
    for cpu in range(KINDS - 1):
        starts.reserved(ObjectKey("team", "other"), "queue", size({"cpu": cpu}))
    assert starts.interval(ME, "queue", GPU, 0.0) is not None

    starts.reserved(ObjectKey("team", "other"), "queue", size({"cpu": KINDS}))
    assert starts.interval(ME, "queue", GPU, 0.0) is None


def test_of_those_that_are_there_as_it_happened() -> None:
    """Each waits for a minute, and the next one gets its quota once it has started; the last two wait together."""
    begun = [NOW + number * timedelta(seconds=61) for number in range(LEAST + 2)]
    jobs = [
        Waited(ObjectKey("team", f"job-{number}"), "queue", GPU, at, at + timedelta(minutes=1))
        for number, at in enumerate(begun[:LEAST])
    ]
    first, second = (Waited(ObjectKey("team", name), "queue", GPU, begun[-1], None) for name in ("first", "second"))

    starts = Starts.of([second, *reversed(jobs), first])

    assert starts.interval(second.key, "queue", GPU, 0.0) == Interval(60.0, 60.0)
    assert starts.interval(first.key, "queue", GPU, 0.0) == Interval(66.0, 66.0)


@given(st.lists(st.floats(0.1, 1e6), min_size=LEAST, max_size=200))
def test_four_of_five_that_were_seen_lie_in_the_interval(waits: list[float]) -> None:
    interval = seen(*waits).interval(ME, "queue", GPU, 0.0)

    assert interval is not None
    assert sum(interval.earliest * 0.999 <= wait <= interval.latest * 1.001 for wait in waits) >= 0.8 * len(waits)
