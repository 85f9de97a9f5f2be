"""The ways that each kind goes: one table, for the sandbox here and for real servers in `tests/integration`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from tests.kinds import endings, ends, journeys
from tests.kinds.cases import Case
from tests.kinds.journeys import Journey


def _is_copied(case: Case) -> bool:
    """All but Deployments, whose pods are copied."""
    return case.adapter.resource == case.kind.resource


def _is_of_pods(case: Case) -> bool:
    """What becomes pods, or groups of them, on the worker: their end needs Kueue there, which holds them."""
    return case.name in ends.OF_PODS


@attrs.frozen
class Way:
    """A journey, and the kinds that go it."""

    journey: Journey
    concerns: Callable[[Case], bool] = lambda case: True
    on_servers: bool = True
    """Whether it is decisive: what an API server, and not only our sandbox, has to show."""


WAYS: Final = (
    Way(journeys.finishes),
    Way(journeys.fails, lambda case: case.kind.course.ends),
    Way(journeys.leaves_foreign_jobs_alone, _is_copied),
    Way(journeys.follows, lambda case: bool(case.adapter.sync.forwarded)),
    Way(journeys.scales, lambda case: case.adapter.sync.resized is not None),
    Way(journeys.shrinks, lambda case: case.name == "leaderworkerset"),
    Way(journeys.pasted, lambda case: case.name in journeys.TEMPLATES),
    Way(journeys.keeps_its_size, lambda case: case.name in journeys.FIXED),
    Way(journeys.deleted, on_servers=False),
    Way(endings.is_taken_away),
    Way(journeys.runs_again_after_eviction, on_servers=False),
    Way(ends.deleted_while_it_waits, _is_of_pods, on_servers=False),
    Way(ends.evicted_by_the_manager, _is_of_pods, on_servers=False),
    Way(ends.deactivated, _is_of_pods, on_servers=False),
    Way(ends.moved, lambda case: case.name in ends.MOVABLE, on_servers=False),
    Way(ends.ended_by_its_workload, _is_of_pods, on_servers=False),
    Way(ends.scaled_to_nothing, lambda case: case.name in ends.TO_NOTHING, on_servers=False),
)
