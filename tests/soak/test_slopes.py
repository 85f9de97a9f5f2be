"""Slopes, and what can be reached."""

from __future__ import annotations

import functools

import pytest

from tests.soak.reachable import reachable
from tests.soak.slopes import growth, slope


def test_the_slope_of_a_line_is_its_own() -> None:
    assert slope([3.0, 5.0, 7.0, 9.0]) == pytest.approx(2.0)
    assert slope([4.0] * 9) == 0.0
    assert slope([1.0]) == 0.0


def test_only_the_second_half_counts() -> None:
    """The first fills caches."""
    settled = growth("tasks", [1.0, 50.0, 90.0, 100.0, 100.0, 100.0, 100.0, 100.0])
    assert (settled.grown, settled.exceeds()) == (0.0, False)
    growing = growth("tasks", [100.0, 100.0, 100.0, 100.0, 100.0, 101.0, 102.0, 103.0])
    assert growing.grown == pytest.approx(3.0 / 101.5)
    assert growing.exceeds()
    assert not growth("tasks", [100.0, 100.0, 100.0, 100.0, 103.0, 102.0, 101.0, 100.0]).exceeds()


def test_one_high_value_is_no_growth() -> None:
    """A least squares line: not the last value against the first."""
    values = [100.0] * 400
    values[-1] = 130.0
    assert not growth("tasks", values).exceeds()


def test_a_measure_that_is_zero_does_not_grow_and_one_that_leaves_zero_does() -> None:
    assert growth("queue entries", [0.0] * 6).grown == 0.0
    assert growth("queue entries", [0.0] * 5 + [1.0]).exceeds()


def test_what_can_be_reached_is_counted_once_and_through_closures_and_caches() -> None:
    shared = [1.5, 2.5]

    def closure() -> list[float]:
        return shared

    @functools.lru_cache
    def cached(number: int) -> list[int]:
        return [number]

    alone, both = reachable([closure]), reachable([closure, closure, shared])
    assert alone == both
    before = reachable([cached]).objects
    for number in range(1_000, 1_050):
        cached(number)
    assert reachable([cached]).objects >= before + 100
