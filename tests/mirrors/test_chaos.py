"""Mirrors where anything may happen; and that what must hold there would be seen not to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import attrs
import pytest

from multikueue.protocols import ApiClient
from multikueued.mirrors import part, plan
from tests.examples import shared
from tests.mirrors import chaos


@pytest.mark.parametrize("seed", shared([*range(6), 115], first=2))
def test_a_seed(seed: int) -> None:
    assert chaos.broken_by(seed) == []


def mirrors_stay_without_their_pod() -> AbstractContextManager[Any]:
    """A pod that is gone leaves its mirror."""
    original = plan._is_over
    return mock.patch.object(plan, "_is_over", lambda seen: seen.pod is not None and original(seen))


def mirrors_of_what_is_over_stay() -> AbstractContextManager[Any]:
    """An attempt that is over and has ended is shown on."""
    original = plan._is_over
    return mock.patch.object(plan, "_is_over", lambda seen: original(attrs.evolve(seen, current=True)))


def mirrors_outlive_their_setting() -> AbstractContextManager[Any]:
    """With mirrors off nothing is taken away."""

    async def nothing(_client: ApiClient, _origin: str) -> None:
        return None

    return mock.patch.object(part, "take_away", nothing)


@pytest.mark.parametrize(
    ("mutation", "says", "first"),
    [
        (mirrors_stay_without_their_pod, "its pod is gone", 0),
        pytest.param(mirrors_of_what_is_over_stay, "its attempt is over, and has ended", 7, marks=pytest.mark.gate),
        pytest.param(mirrors_outlive_their_setting, "though mirrors are off", 0, marks=pytest.mark.gate),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_defect_is_seen(mutation: Callable[[], AbstractContextManager[Any]], says: str, first: int) -> None:
    """By one of the seeds from the first that is known to show it."""
    with mutation():
        assert any(says in text for seed in range(first, first + 20) for text in chaos.broken_by(seed))
