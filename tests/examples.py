"""What `nox` runs of many examples, and what its gate: of a property a quarter and all, of a parameter the first and
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import settings

USUAL = 100
"""Hypothesis' own number; the profiles of `conftest.py` have others."""


def examples(number: int) -> int:
    """So many of a property that needs another number than usual; fewer if the profile draws fewer than usual.

    Args:
        number: in the gate, and at night.
    """
    return min(number, number * settings().max_examples // USUAL)


def shared(values: Iterable[Any], name: Callable[[Any], str] | None = None, first: int = 1) -> list[Any]:
    """The values of a parameter: `nox` runs the first, its gate the others, which are further inputs of the same code.

    Args:
        values: what the test is run with.
        name: gives each the name that it is listed under; pytest's own if there is none.
        first: how many of them `nox` runs.
    """
    return [
        pytest.param(value, id=name(value) if name else None, marks=() if number < first else pytest.mark.gate)
        for number, value in enumerate(values)
    ]
