"""The ways that each kind goes: one table, for the sandbox here and for real servers in `tests/integration`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from tests.kinds import endings, ends, journeys
from tests.kinds.cases import Case, of_each_sort
from tests.kinds.journeys import Journey


def _is_of_pods(case: Case) -> bool:
    """What becomes pods, or groups of them, on the worker: their end needs Kueue there, which holds them."""
    return case.name in ends.OF_PODS


@attrs.frozen
class Way:
    """A journey, and the kinds that go it."""

    journey: Journey
    concerns: Callable[[Case], bool] = lambda case: True
    on_servers: Callable[[Case], bool] = lambda case: False
    """For which of them it is decisive: what an API server, and not only our sandbox, has to show."""
    shows: Callable[[Case], bool] = of_each_sort
    """Which of them go it in `nox`, on the sandbox, for all others, which go it in its gate."""


def _always(case: Case) -> bool:
    """What goes over other fields, or other kinds of objects, for each kind."""
    return True


WAYS: Final = (
    Way(journeys.finishes, on_servers=_always),
    Way(journeys.fails, lambda case: case.kind.course.ends, of_each_sort),
    Way(journeys.leaves_foreign_jobs_alone, lambda case: case.is_copied, of_each_sort),
    Way(journeys.follows, lambda case: case.is_copied and bool(case.adapter.sync.forwarded), _always),
    Way(journeys.scales, lambda case: case.adapter.sync.resized is not None, _always),
    Way(journeys.shrinks, lambda case: case.name == "leaderworkerset", _always),
    Way(journeys.waits_for_its_user, lambda case: case.name == "rayjob", _always),
    Way(journeys.pasted, lambda case: case.name in journeys.TEMPLATES, _always),
    Way(journeys.keeps_its_size, lambda case: case.name in journeys.FIXED, _always),
    Way(endings.is_taken_away, shows=lambda case: case.name == "job"),  # three seconds of CPU for each kind
    Way(journeys.runs_again_after_eviction),
    Way(ends.deleted_while_it_waits, _is_of_pods),
    Way(ends.deactivated, _is_of_pods),
    Way(ends.moved, lambda case: case.name in ends.MOVABLE),
    Way(ends.scaled_to_nothing, lambda case: case.name in ends.TO_NOTHING),
)
