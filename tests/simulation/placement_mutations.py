"""Defects of what fills configs from an inventory: each must be caught by a run with a hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.core.inventory import selection, target
from multikueue.core.inventory.members import Members, members
from multikueue.core.inventory.ranking import Scores
from multikueue.core.inventory.settings import Policy


def busy_clusters_are_dropped_beside_another_controller() -> AbstractContextManager[Any]:
    """W2: a cluster leaves the config at once, though another controller has work there: it runs the job again."""

    def dropped(
        ranked: Sequence[str], listed: Iterable[str], running: Set[str], *, policy: Policy, **options: Any
    ) -> Members:
        del policy
        return members(ranked, listed, running, policy=Policy.IMMEDIATE, **options)

    return mock.patch.object(target, "members", dropped)


def orders_have_no_hysteresis() -> AbstractContextManager[Any]:
    """W10: the order is rewritten for a change of one point."""

    def turned(order: Sequence[str], scores: Scores, hysteresis: float) -> bool:
        del hysteresis
        points = [scores.points.get(name, float("-inf")) for name in order]
        return points != sorted(points, reverse=True)

    return mock.patch.object(target, "has_turned", turned)


def orders_are_written_at_once() -> AbstractContextManager[Any]:
    """W10: the order is rewritten with each change of the scores, every minute."""
    return mock.patch.object(target, "due_in", return_value=0.0)


def decisions_are_believed_at_once() -> AbstractContextManager[Any]:
    """W5: most clusters are dropped for a decision that holds for a moment."""
    return mock.patch.object(selection, "is_doubtful", return_value=False)


def parts_of_decisions_are_believed() -> AbstractContextManager[Any]:
    """W5: what is between two writes of the scheduler counts as its decision."""
    return mock.patch.object(selection, "_problems", return_value=iter(()))


PLACEMENT_MUTATIONS: Final[Mapping[str, Callable[[], AbstractContextManager[Any]]]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            busy_clusters_are_dropped_beside_another_controller,
            orders_have_no_hysteresis,
            orders_are_written_at_once,
            decisions_are_believed_at_once,
            parts_of_decisions_are_believed,
        )
    }
)
