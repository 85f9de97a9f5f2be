"""Durations are written as in Kueue's own configuration."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.model.written_values import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("15m", 900),
        ("1m30s", 90),
        ("1.5h", 5400),
        ("250ms", 0.25),
        (".5s", 0.5),
        ("1h0m1s", 3601),
        ("+5m", 300),
        ("+0", 0),
        ("1.s", 1),
        ("1µs1h", 3600.000001),
    ],
)
def test_gos_forms_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "m", "15 m", "1m 30s", "-5m", "+-5m", "++1s", "+", "٣m", "1d", "5M", "1s1", "inf", "1e3s", "1mx"]
)
def test_anything_else_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{text}" is not a duration: write it like "15m"')):
        parse_duration(text)


@pytest.mark.parametrize("text", ["9" * 30 + "h", "2562048h", "100000000h", "9" * 400 + "h"])
def test_a_duration_that_is_too_long_is_refused(text: str) -> None:
    """Go's ends with 2^63 nanoseconds; ours could be longer than there are years."""
    with pytest.raises(ValueError, match="too long"):
        parse_duration(text)
    assert parse_duration("2562047h47m") == timedelta(hours=2562047, minutes=47)


@given(st.integers(0, 10_000), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s"

    assert parse_duration(text) == timedelta(hours=hours, minutes=minutes, seconds=seconds)
