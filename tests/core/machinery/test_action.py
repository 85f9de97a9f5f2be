"""What a reconciler may answer."""

from __future__ import annotations

import pytest

from multikueue.core.machinery.action import Action


def test_done_waits_for_a_change() -> None:
    assert Action.done().delay is None


@pytest.mark.parametrize(("asked", "delay"), [(5.0, 5.0), (0.0, 0.0), (-3.0, 0.0)])
def test_after_is_never_in_the_past(asked: float, delay: float) -> None:
    """A time that has passed means at once."""
    assert Action.after(asked).delay == delay


@pytest.mark.parametrize(
    ("delays", "delay"), [((), None), ((None, None), None), ((9.0, None, 4.0), 4.0), ((0.0, None), 0.0)]
)
def test_of_several_times_the_earliest_counts(delays: tuple[float | None, ...], delay: float | None) -> None:
    """Zero is a time, None is none."""
    assert Action.earliest(*delays).delay == delay
