"""Defects in what is special about kinds, slices, gates, topologies, dispatchers and settings; see `mutations`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import attrs

from multikueue.adapters.kind import JobKind
from multikueue.core.dispatchers.dispatcher import AllAtOnce, Candidates, External, Nomination
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload import check_updates, pending, preemption_gates
from multikueue.core.workload import plan as planning
from multikueue.core.workload.check_updates import retry
from multikueue.core.workload.effects import Plan
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.worker_states import Idle, WritingStatus
from multikueue.core.workload.removal import remove_all
from multikueue.runtime.workers.executor import WorkerExecutor

Mutation = Callable[[], AbstractContextManager[Any]]


@contextmanager
def _row(name: str, **changes: Any) -> Iterator[None]:
    """Have one row of the table apply, or decide, otherwise."""
    rows = [attrs.evolve(row, **changes) if row.name == name else row for row in planning.TABLE]
    assert any(row.name == name for row in rows), f"there is no row {name}"
    with mock.patch.object(planning, "TABLE", tuple(rows)):
        yield


def all_gates_open_at_once() -> AbstractContextManager[Any]:
    """Every worker that must preempt for a Workload may: several evict somebody for one job."""

    def open_all(situation: Situation, names: Sequence[str]) -> Plan:
        offered = [
            (worker, copy)
            for worker in situation.workers
            if worker.can_run and worker.name in names and (copy := situation.current(worker)) is not None
        ]
        shut = [one for one in offered if one[0].copy.is_blocked and one[0].copy.opened_at is None]
        return Plan(tuple(preemption_gates._open(situation, worker, copy) for worker, copy in shut))

    return mock.patch.object(pending, "open_next", open_all)


def a_gate_that_is_being_opened_is_shut() -> AbstractContextManager[Any]:
    """What is under way on one worker is not known when another's gate is looked at."""
    original = WorkerExecutor.in_flight

    def in_flight(self: WorkerExecutor, *part: Any) -> Any:
        found = original(self, *part)
        return Idle() if isinstance(found, WritingStatus) else found

    return mock.patch.object(WorkerExecutor, "in_flight", in_flight)


def external_nominations_are_ignored() -> AbstractContextManager[Any]:
    """Workers are chosen although another controller does that."""

    def nominate(self: External, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        return AllAtOnce().nominate(workload, candidates, now)

    return mock.patch.object(External, "nominate", nominate)


def kinds_taken_out_are_forgotten() -> AbstractContextManager[None]:
    """A Workload that a worker has is rejected after a restart without its kind."""

    def applies(seen: Situation) -> bool:
        adapter = seen.snapshot.adapter
        return adapter is None or adapter.traits.draining

    return _row("unknown kind", applies=applies)


def an_erased_worker_is_a_lost_job() -> AbstractContextManager[None]:
    """Ready without a recorded worker: everything is deleted, and tried again."""

    def decide(seen: Situation) -> Plan:
        return Plan((retry(seen, "no admitting cluster is recorded"), *remove_all(seen)))

    return _row("unrecorded", decide=decide)


def placed_pods_are_not_told() -> AbstractContextManager[Any]:
    """The manager's Kueue waits for ever for pods that a worker has placed."""
    return mock.patch.object(check_updates, "_placed", return_value={})


def sizes_stay_on_the_manager() -> AbstractContextManager[Any]:
    """What runs on a worker does not grow nor shrink."""
    return mock.patch.object(JobKind, "forward_patch", return_value=None)


def pods_become_ready() -> AbstractContextManager[Any]:
    """The check of pods becomes Ready as that of jobs does: the manager's Kueue opens their gates."""
    original = check_updates.admit

    def admit(seen: Situation, cluster: ClusterName, state: CheckState, *copy: Any) -> Any:
        del state
        return original(seen, cluster, CheckState.READY, *copy)

    return mock.patch.object(check_updates, "admit", admit)


KIND_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            all_gates_open_at_once,
            a_gate_that_is_being_opened_is_shut,
            external_nominations_are_ignored,
            kinds_taken_out_are_forgotten,
            an_erased_worker_is_a_lost_job,
            placed_pods_are_not_told,
            sizes_stay_on_the_manager,
            pods_become_ready,
        )
    }
)
