"""Defects in what is special about kinds, slices, gates, topologies, dispatchers and settings; see `mutations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.adapters.kind import JobKind
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidates, External, Nomination
from multikueue.core.model.names import Json
from multikueue.runtime.workers.executor import WorkerExecutor
from tests.core.door import Idle, InFlight, OutcomeUnknown, WritingStatus

Mutation = Callable[[], AbstractContextManager[Any]]


def a_gate_that_is_being_opened_is_shut() -> AbstractContextManager[Any]:
    """What is under way on one worker is not known when another's gate is looked at."""
    return _idle_instead_of(WritingStatus)


def a_gate_that_may_have_been_opened_is_shut() -> AbstractContextManager[Any]:
    """A write that failed was not done."""
    return _idle_instead_of(OutcomeUnknown)


def _idle_instead_of(state: type[InFlight]) -> AbstractContextManager[Any]:
    original = WorkerExecutor.in_flight

    def in_flight(self: WorkerExecutor, *part: Any) -> InFlight:
        way = original(self, *part)
        return Idle() if isinstance(way, state) else way

    return mock.patch.object(WorkerExecutor, "in_flight", in_flight)


def external_nominations_are_ignored() -> AbstractContextManager[Any]:
    """Workers are chosen although another controller does that."""

    def nominate(self: External, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        return AllAtOnce().nominate(workload, candidates, now)

    return mock.patch.object(External, "nominate", nominate)


def sizes_stay_on_the_manager() -> AbstractContextManager[Any]:
    """What runs on a worker does not grow nor shrink."""
    return mock.patch.object(JobKind, "forward_patch", return_value=None)


KIND_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            a_gate_that_is_being_opened_is_shut,
            a_gate_that_may_have_been_opened_is_shut,
            external_nominations_are_ignored,
            sizes_stay_on_the_manager,
        )
    }
)
