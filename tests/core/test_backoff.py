"""Exponential back-off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multikueue.core.backoff import ITEM_BACKOFF, REFUSED_BACKOFF, WATCH_BACKOFF, Backoff

BACKOFFS = st.builds(
    Backoff,
    base=st.floats(0.001, 10),
    cap=st.floats(10, 1000),
    factor=st.floats(1, 4),
    jitter=st.floats(0, 1),
)
FRACTIONS = st.floats(0, 1, exclude_max=True)


def test_the_wait_doubles_up_to_the_cap() -> None:
    """Kueue's table for workers: 5 … 320 s."""
    backoff = Backoff(base=5, cap=320)
    assert [backoff.delay(failures) for failures in range(9)] == [0, 5, 10, 20, 40, 80, 160, 320, 320]


def test_jitter_only_ever_adds() -> None:
    """Many that failed together come back apart, and none sooner than it should."""
    backoff = Backoff(base=10, cap=10, jitter=0.5)
    assert (backoff.delay(1), backoff.delay(1, 0.5)) == (10, 12.5)


@pytest.mark.parametrize("backoff", [ITEM_BACKOFF, WATCH_BACKOFF, REFUSED_BACKOFF])
def test_the_daemons_own_never_wait_zero_and_never_overflow(backoff: Backoff) -> None:
    """After years of failures it is still the cap."""
    assert backoff.delay(1) == backoff.base > 0
    assert backoff.delay(10**9) == backoff.cap


@given(BACKOFFS, st.integers(1, 10_000), FRACTIONS)
def test_more_failures_never_mean_a_shorter_wait(backoff: Backoff, failures: int, fraction: float) -> None:
    """For the same luck."""
    first, second = backoff.delay(failures, fraction), backoff.delay(failures + 1, fraction)
    assert 0 < first <= second <= backoff.cap * (1 + backoff.jitter)
