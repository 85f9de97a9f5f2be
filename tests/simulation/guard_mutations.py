"""Guards of the product, removed one by one: they keep jobs from running twice or being lost, and copies from staying.

How many of them the simulation finds is measured, and stands in docs/testing.md with the seed that finds each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.core.machinery import remembered_loss
from multikueue.core.model.workloads import cluster_name, is_finished
from multikueue.runtime import event_handlers
from multikueue.runtime.caches import unregistered_kinds as draining
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.reconcilers import configuration
from multikueue.runtime.workers.executor import WorkerExecutor
from multikueue.runtime.workers.informers import WorkerInformers
from tests.core.door import Idle, Served, Syncing
from tests.simulation import decision_mutations as decisions
from tests.simulation.decision_mutations import all_of
from tests.simulation.kind_mutations import a_gate_that_may_have_been_opened_is_shut
from tests.simulation.mapping_mutations import what_a_former_workload_left_is_unknown

Mutation = Callable[[], AbstractContextManager[Any]]


def absences_count_as_losses() -> AbstractContextManager[Any]:
    """The time in which no daemon ran counts as the loss of a worker."""
    original = remembered_loss.remembered_loss

    def remembered(cluster: Any, started: Any, led_until: Any) -> Any:
        del led_until
        return original(cluster, started, started)

    return mock.patch.object(configuration, "remembered_loss", remembered)


def jobs_that_are_not_read_yet_are_absent() -> AbstractContextManager[Any]:
    """What an informer has not listed yet counts as not there."""
    original = WorkerInformers.kind

    def kind(self: WorkerInformers, gvk: Any) -> Any:
        served = original(self, gvk)
        return Served() if isinstance(served, Syncing) else served

    return all_of(
        mock.patch.object(WorkerInformers, "kind", kind),
        mock.patch.object(WorkerInformers, "have_read", return_value=True),
    )


def doubts_are_not_renewed() -> AbstractContextManager[Any]:
    """What a worker shows when it is back counts as all of it, though a creation without an answer may come later."""
    return mock.patch.object(WorkloadMemory, "reconnected", return_value=None)


def drains_forget_what_is_evicted() -> AbstractContextManager[Any]:
    """A start without a kind does not follow what an eviction has not stopped yet."""

    def may_run(workload: Any) -> bool:
        return not is_finished(workload) and cluster_name(workload) is not None

    return mock.patch.object(draining, "_may_run", may_run)


def rotations_forget_writes() -> AbstractContextManager[Any]:
    """New credentials, and what was just written is not known any more."""
    return mock.patch.object(MutationCache, "inherit", return_value=None)


def what_went_before_it_was_shown_is_not_told() -> AbstractContextManager[Any]:
    """A list lacks what was written and no watch has shown: nobody knows of its pods."""
    return mock.patch.object(MutationCache, "_unshown", return_value=())


def work_under_way_is_not_known() -> AbstractContextManager[Any]:
    """A decision does not know what this process is doing on a worker."""
    return mock.patch.object(WorkerExecutor, "in_flight", return_value=Idle())


def workers_that_return_are_not_cleaned() -> AbstractContextManager[Any]:
    """What lies on a worker that comes back is not looked at."""
    return mock.patch.object(event_handlers, "workloads_on", return_value=())


GUARDS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            decisions.hidden_workers_are_not_waited_for,
            decisions.seen_leftovers_are_not_waited_for,
            decisions.unproven_jobs_are_not_waited_for,
            decisions.evictions_do_not_wait_for_hidden_workers,
            decisions.evicted_copies_are_not_stopped,
            decisions.last_workers_are_not_noted,
            decisions.starts_wait_for_nobodys_first_answer,
            decisions.kinds_that_are_read_count_as_gone,
            decisions.unserved_kinds_are_lost_at_once,
            decisions.unreadable_workers_are_lost_at_once,
            decisions.old_losses_count,
            absences_count_as_losses,
            jobs_that_are_not_read_yet_are_absent,
            doubts_are_not_renewed,
            a_gate_that_may_have_been_opened_is_shut,
            decisions.doubts_end_at_once,
            drains_forget_what_is_evicted,
            rotations_forget_writes,
            what_went_before_it_was_shown_is_not_told,
            work_under_way_is_not_known,
            decisions.stale_jobs_are_taken_over,
            decisions.deleted_workloads_leave_copies,
            decisions.copies_without_quota_stay,
            decisions.finished_workloads_leave_copies,
            decisions.ends_are_not_shown,
            decisions.earlier_ends_do_not_count,
            decisions.ends_without_a_workload_do_not_count,
            workers_that_return_are_not_cleaned,
            what_a_former_workload_left_is_unknown,
            decisions.groups_let_nobody_go,
        )
    }
)
