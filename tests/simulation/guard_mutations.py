"""Guards of the product, removed one by one: they keep jobs from running twice or being lost, and copies from staying.

How many of them the simulation finds is measured, and stands in docs/testing.md with the seed that finds each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import attrs

from multikueue.core.machinery import remembered_loss
from multikueue.core.model.workloads import cluster_name, is_finished
from multikueue.core.workload import assigned, ending, evicting, leftovers, pending, unrecorded
from multikueue.core.workload import plan as planning
from multikueue.core.workload.effects import Plan
from multikueue.core.workload.facts import possible_runs as earlier
from multikueue.core.workload.facts.possible_runs import PossibleRun
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Connecting, Idle, Opaque, Served, Syncing, Unserved
from multikueue.core.workload.leftovers import Leftover
from multikueue.runtime import event_handlers
from multikueue.runtime.caches import unregistered_kinds as draining
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.reconcilers import configuration
from multikueue.runtime.reconcilers import workload as reading
from multikueue.runtime.workers.executor import WorkerExecutor
from multikueue.runtime.workers.informers import WorkerInformers
from tests.simulation.leaving_mutations import groups_let_nobody_go, never
from tests.simulation.planted import all_of

Mutation = Callable[[], AbstractContextManager[Any]]


def _without_row(name: str) -> AbstractContextManager[Any]:
    """One row of the table cleans nothing."""
    rows = [attrs.evolve(row, decide=lambda _: Plan()) if row.name == name else row for row in planning.TABLE]
    assert any(row.name == name for row in rows), f"there is no row {name}"
    return mock.patch.object(planning, "TABLE", tuple(rows))


def hidden_workers_are_not_waited_for() -> AbstractContextManager[Any]:
    """A worker is recorded though an earlier attempt may run where nobody sees it."""
    original = earlier.blocking

    def blocking(situation: Situation, chosen: Worker) -> Iterator[PossibleRun]:
        yield from (run for run in original(situation, chosen) if run not in situation.possible_runs)

    told = _ignoring(lambda left: "cannot be seen" in left.why)
    return all_of(mock.patch.object(earlier, "blocking", blocking), told)


def seen_leftovers_are_not_waited_for() -> AbstractContextManager[Any]:
    """A Workload is offered, recorded and Ready though a job copy of an earlier attempt is seen."""
    modules = (assigned, leftovers)
    return all_of(*(mock.patch.object(module, "earlier_runs", return_value=()) for module in modules))


def unproven_jobs_are_not_waited_for() -> AbstractContextManager[Any]:
    """A worker is recorded though another may run the job without our mark."""
    return _ignoring(lambda left: "not of our making" in left.why)


def _ignoring(passes: Callable[[Leftover], bool]) -> AbstractContextManager[Any]:
    """Some of what is seen on other workers keeps nobody from the job."""
    original = leftovers.left_over

    def left_over(situation: Situation, chosen: Worker) -> tuple[Leftover, ...]:
        return tuple(left for left in original(situation, chosen) if not passes(left))

    return mock.patch.object(leftovers, "left_over", left_over)


def evictions_do_not_wait_for_hidden_workers() -> AbstractContextManager[Any]:
    """An evicted job is shown to have stopped though it may run where nobody sees it."""

    def careless(decide: Callable[[Situation], Plan | None]) -> Callable[[Situation], Plan | None]:
        def decided(situation: Situation) -> Plan | None:
            with mock.patch.object(Situation, "possible_runs", ()):
                return decide(situation)

        return decided

    rows = [
        attrs.evolve(row, decide=careless(row.decide)) if row.name in ("gone", "no quota", "evicted") else row
        for row in planning.TABLE
    ]
    return mock.patch.object(planning, "TABLE", tuple(rows))


def evicted_copies_are_not_stopped() -> AbstractContextManager[Any]:
    """Nobody tells the worker of an evicted job."""
    return mock.patch.object(evicting, "_stop", return_value=())


def last_workers_are_not_noted() -> AbstractContextManager[Any]:
    """A restart forgets which worker out of sight may still have what was evicted."""
    return all_of(
        mock.patch.object(evicting, "note_last_worker", return_value=()),
        mock.patch.object(pending, "note_last_worker", return_value=()),
        mock.patch.object(leftovers, "note_last_worker", return_value=()),
    )


def _left(forget: Callable[[Worker], bool]) -> AbstractContextManager[Any]:
    """For some workers out of sight nothing is left to wait for."""
    original = earlier.assumed_for

    def left(situation: Situation, worker: Worker) -> timedelta:
        return timedelta(0) if forget(worker) else original(situation, worker)

    return all_of(*(mock.patch.object(module, "assumed_for", left) for module in (earlier, unrecorded)))


def starts_wait_for_nobodys_first_answer() -> AbstractContextManager[Any]:
    """A worker that has not answered yet since the start counts as lost."""
    return _left(lambda worker: isinstance(worker.reach, Connecting))


def kinds_that_are_read_count_as_gone() -> AbstractContextManager[Any]:
    """A worker whose jobs are still being listed counts as lost."""
    return _left(lambda worker: isinstance(worker.kind, Syncing))


def unserved_kinds_are_lost_at_once() -> AbstractContextManager[Any]:
    """What runs of a kind that a worker does not serve for a moment runs elsewhere at once."""
    return _left(lambda worker: isinstance(worker.kind, Unserved))


def unreadable_workers_are_lost_at_once() -> AbstractContextManager[Any]:
    """A worker that answers with what cannot be read counts as lost."""
    return _left(lambda worker: isinstance(worker.reach, Opaque) or isinstance(worker.kind, Opaque))


def old_losses_count() -> AbstractContextManager[Any]:
    """What stands on a MultiKueueCluster of an earlier loss counts for this attempt."""

    def since(situation: Situation, worker: Worker, noted: Any) -> Any:
        del situation, worker
        return noted

    return mock.patch.object(earlier, "_seen_lost", since)


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
        found = original(self, gvk)
        return Served() if isinstance(found, Syncing) else found

    return all_of(
        mock.patch.object(WorkerInformers, "kind", kind),
        mock.patch.object(WorkerInformers, "have_read", return_value=True),
    )


def doubts_are_not_renewed() -> AbstractContextManager[Any]:
    """What a worker shows when it is back counts as all of it, though a creation without an answer may come later."""
    return mock.patch.object(WorkloadMemory, "reconnected", return_value=None)


def doubts_end_at_once() -> AbstractContextManager[Any]:
    """A creation without an answer that does not show at once has not happened."""
    none = timedelta(0)
    return all_of(mock.patch.object(earlier, "LATE_CREATION", none), mock.patch.object(reading, "LATE_CREATION", none))


def drains_forget_what_is_evicted() -> AbstractContextManager[Any]:
    """A start without a kind does not follow what an eviction has not stopped yet."""

    def may_run(workload: Any) -> bool:
        return not is_finished(workload) and cluster_name(workload) is not None

    return mock.patch.object(draining, "_may_run", may_run)


def rotations_forget_writes() -> AbstractContextManager[Any]:
    """New credentials, and what was just written is not known any more."""
    return mock.patch.object(MutationCache, "inherit", return_value=None)


def work_under_way_is_not_known() -> AbstractContextManager[Any]:
    """A decision does not know what this process is doing on a worker."""
    return mock.patch.object(WorkerExecutor, "in_flight", return_value=Idle())


def stale_jobs_are_taken_over() -> AbstractContextManager[Any]:
    """An earlier attempt's job on the recorded worker is nobody's."""
    return mock.patch.object(Situation, "stale_jobs_on", return_value=[])


def deleted_workloads_leave_copies() -> AbstractContextManager[Any]:
    """Copies of what was deleted stay."""
    return _without_row("gone")


def copies_without_quota_stay() -> AbstractContextManager[Any]:
    """Copies of what has no quota stay."""
    return _without_row("no quota")


def finished_workloads_leave_copies() -> AbstractContextManager[Any]:
    """Copies of what has finished stay."""
    return _without_row("finished")


def ends_are_not_shown() -> AbstractContextManager[Any]:
    """Copies of what has finished go before the manager's job shows how it ended."""

    def synced(situation: Situation, copies: Sequence[Any]) -> Iterator[Any]:
        yield from (
            ()
            if is_finished(situation.workload) or any(map(_is_over(situation), copies))
            else original(situation, copies)
        )

    original = ending.sync_status
    return mock.patch.object(ending, "sync_status", synced)


def _is_over(situation: Situation) -> Callable[[Any], bool]:
    return lambda copy: situation.adapter.outcome(copy) is not None


def earlier_ends_do_not_count() -> AbstractContextManager[Any]:
    """A job that has ended after an eviction that nobody has seen is removed, to be run again."""
    unseen = mock.patch.object(ending, "end_of_earlier_attempt", return_value=None)
    return all_of(unseen, never("has ended"))


def workers_that_return_are_not_cleaned() -> AbstractContextManager[Any]:
    """What lies on a worker that comes back is not looked at."""
    return mock.patch.object(event_handlers, "workloads_on", return_value=())


GUARDS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            hidden_workers_are_not_waited_for,
            seen_leftovers_are_not_waited_for,
            unproven_jobs_are_not_waited_for,
            evictions_do_not_wait_for_hidden_workers,
            evicted_copies_are_not_stopped,
            last_workers_are_not_noted,
            starts_wait_for_nobodys_first_answer,
            kinds_that_are_read_count_as_gone,
            unserved_kinds_are_lost_at_once,
            unreadable_workers_are_lost_at_once,
            old_losses_count,
            absences_count_as_losses,
            jobs_that_are_not_read_yet_are_absent,
            doubts_are_not_renewed,
            doubts_end_at_once,
            drains_forget_what_is_evicted,
            rotations_forget_writes,
            work_under_way_is_not_known,
            stale_jobs_are_taken_over,
            deleted_workloads_leave_copies,
            copies_without_quota_stay,
            finished_workloads_leave_copies,
            ends_are_not_shown,
            earlier_ends_do_not_count,
            workers_that_return_are_not_cleaned,
            groups_let_nobody_go,
        )
    }
)
