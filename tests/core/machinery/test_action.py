"""What a reconciler may answer."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from multikueue.core.machinery.action import Action


def test_done_waits_for_a_change() -> None:
    assert Action.done().delay is None


@pytest.mark.parametrize(("asked", "delay"), [(5.0, 5.0), (0.0, 0.0), (-3.0, 0.0)])
def test_after_is_never_in_the_past(asked: float, delay: float) -> None:
    """A time that has passed means at once."""
    assert Action.after(asked).delay == delay
    assert Action(asked).delay == delay
    assert Action.earliest(asked).delay == delay


@pytest.mark.parametrize("asked", [math.inf, 10**400], ids=["inf", "beyond"])
def test_an_infinite_time_waits_for_a_change(asked: float) -> None:
    """A number that no clock can add ended the controller."""
    for action in (Action.after(asked), Action(asked), Action.earliest(asked, None)):
        assert action == Action.done()
    assert Action.after(-asked).delay == 0.0
    assert Action.earliest(asked, 5.0).delay == 5.0


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (math.nan, "is a number of seconds, not nan"),
        (timedelta(seconds=5), r"not datetime\.timedelta\(seconds=5\): give its total_seconds\(\)"),
        ("5", "not '5'"),
        (True, "not True"),
        (Decimal(5), "not Decimal"),
        ([5], r"not \[5\]"),
    ],
)
def test_what_is_no_time_is_an_error_where_it_is_said(asked: Any, why: str) -> None:
    """Of nan a key was looked at without a pause."""
    for say in (Action.after, Action, Action.earliest):
        with pytest.raises((TypeError, ValueError), match=why):
            say(asked)


@pytest.mark.parametrize(
    ("delays", "delay"), [((), None), ((None, None), None), ((9.0, None, 4.0), 4.0), ((0.0, None), 0.0)]
)
def test_of_several_times_the_earliest_counts(delays: tuple[float | None, ...], delay: float | None) -> None:
    """Zero is a time, None is none."""
    assert Action.earliest(*delays).delay == delay
