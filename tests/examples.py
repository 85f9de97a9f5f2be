"""How many examples of a property are drawn: all in the gate, a quarter in `nox`."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""Hypothesis' own number; the profiles of `conftest.py` have others."""


def examples(number: int) -> int:
    """So many of a property that needs another number than usual; fewer if the profile draws fewer than usual.

    Args:
        number: in the gate, and at night.
    """
    return min(number, number * settings().max_examples // USUAL)
