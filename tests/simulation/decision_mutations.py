"""The promises of decisions, each broken by hand: one table of what is broken, and which function is changed for it.

Of all mutations only these name functions of `multikueue.core.workload`: another core changes this module, and the
names of the promises stay. See `mutations` for what they are tried with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from unittest import mock

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition
from multikueue.core.model.marks import Proof
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.worker_names import cordon_of
from multikueue.core.model.worker_states import Connecting, Lost, Opaque, Syncing, Unserved
from multikueue.core.model.workloads import CheckState, cluster_name, is_admitted, is_evicted, is_finished
from multikueue.core.workload import (
    check_updates,
    dependencies,
    ending,
    evicting,
    following,
    leftovers,
    pending,
    preemption_gates,
    reasons,
    removal,
    unrecorded,
)
from multikueue.core.workload import plan as planning
from multikueue.core.workload.effects import ApplyStatus, CreateJob, DeleteJob, Effect, Plan
from multikueue.core.workload.leftovers import Leftover
from multikueue.core.workload.seen import attribution, graces
from multikueue.core.workload.seen import runs as earlier
from multikueue.core.workload.seen.runs import Run
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import Snapshot, Worker
from multikueue.runtime.reconcilers import snapshot_reader as reading

Decide: TypeAlias = Callable[[Situation], Plan | None]
Mutation: TypeAlias = Callable[[], AbstractContextManager[Any]]


@contextmanager
def all_of(*patches: AbstractContextManager[Any]) -> Iterator[None]:
    """Several patches as one."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def _in(modules: Sequence[Any], name: str, value: Any) -> AbstractContextManager[Any]:
    """One function, changed wherever it is known by its name."""
    return all_of(*(mock.patch.object(module, name, value) for module in modules))


def _rows(*names: str, **changes: Any) -> AbstractContextManager[Any]:
    """Some rows of the table apply, decide or remove otherwise."""
    return _each_row(names, lambda row: attrs.evolve(row, **changes))


def _decided(name: str, instead: Callable[[Situation, Plan], Plan]) -> AbstractContextManager[Any]:
    """One row that decides wherever it applies decides otherwise, knowing what it would have decided."""

    def changed(row: planning.Row) -> planning.Row:
        def decide(seen: Situation) -> Plan:
            plan = row.decide(seen)
            assert plan is not None, f"{row.name} decides wherever it applies"
            return instead(seen, plan)

        return attrs.evolve(row, decide=decide)

    return _each_row((name,), changed)


def _each_row(names: Sequence[str], change: Callable[[planning.Row], planning.Row]) -> AbstractContextManager[Any]:
    assert {row.name for row in planning.TABLE} >= set(names), f"there are no rows {names}"
    rows = tuple(change(row) if row.name in names else row for row in planning.TABLE)
    return mock.patch.object(planning, "TABLE", rows)


def _never(name: str) -> AbstractContextManager[Any]:
    """One row of the table never applies."""
    return _rows(name, applies=lambda _: False)


def _create_job(seen: Situation, worker: Worker) -> Effect:
    assert seen.job is not None, "the row before waits for it"
    return CreateJob(worker.name, seen.adapter.resource, seen.adapter.copy(seen.job, seen.stamp_on(worker)))


# A Workload is offered, recorded, and created once, on the worker that is recorded.
def earliest_admission_wins() -> AbstractContextManager[Any]:
    """16: `clusterName` is not sticky; of all Admitted copies the one with the earliest time by its clock wins."""

    def decided(seen: Situation, plan: Plan) -> Plan:
        admitted = [
            (str((condition(worker.copy, "Admitted") or {}).get("lastTransitionTime")), worker.name, worker)
            for worker in seen.workers
            if worker.reachable and worker.copy is not None and is_admitted(worker.copy)
        ]
        winner = min(admitted)[-1] if admitted else None
        if winner is None or winner.name == seen.recorded_on:
            return plan
        created = (_create_job(seen, winner),) if not seen.jobs_on(winner) else ()
        return Plan((*created, *removal.remove_all(seen, winner.name)))

    return _decided("recorded", decided)


def stale_copies_are_believed() -> AbstractContextManager[Any]:
    """17, 18: a copy elsewhere that says Finished or Evicted finishes or evicts a healthy Workload."""

    def decided(seen: Situation, plan: Plan) -> Plan:
        for worker in seen.workers:
            copy = worker.copy
            if worker.reachable and copy is not None and is_finished(copy):
                return ending.sync_end(seen, seen.jobs_on(worker), worker.facts.outcome)
            if worker.reachable and copy is not None and is_evicted(copy):
                return Plan(tuple(check_updates.send_back_evicted(seen, copy)))
        return plan

    return _decided("recorded", decided)


def finished_jobs_are_made_again() -> AbstractContextManager[Any]:
    """14: where the Workload copy is Finished and its job is gone, synchronising makes the job again."""

    def decided(seen: Situation, plan: Plan) -> Plan:
        worker = seen.snapshot.worker(seen.recorded_on) if seen.recorded_on else None
        if worker is None or not worker.reachable or worker.copy is None or not is_finished(worker.copy):
            return plan
        again = () if seen.jobs_on(worker) else (_create_job(seen, worker),)
        return attrs.evolve(plan, effects=(*again, *plan.effects))

    return _decided("recorded", decided)


def every_admitted_worker_runs_it() -> AbstractContextManager[Any]:
    """The job is made on each worker that has admitted its Workload, not on one."""

    def decided(seen: Situation, plan: Plan) -> Plan:
        ready = [
            worker
            for worker in seen.workers
            if worker.can_run and not seen.jobs_on(worker) and is_admitted(seen.this_copy(worker) or {})
        ]
        asked = {effect.cluster for effect in plan.effects if isinstance(effect, CreateJob)}
        more = [_create_job(seen, worker) for worker in ready if worker.name not in asked and not worker.jobs]
        return attrs.evolve(plan, effects=(*more, *plan.effects))

    return _decided("pending", decided)


def jobs_are_created_before_the_record() -> AbstractContextManager[Any]:
    """The order of Kueue's controller: the job is made on the worker that has admitted it, and then recorded."""

    def decided(seen: Situation, plan: Plan) -> Plan:
        chosen = pending.winner(seen)
        recorded = (effect for effect in plan.effects if isinstance(effect, ApplyStatus))
        if chosen is None or not any(cluster_name(effect.object) == chosen.name for effect in recorded):
            return plan
        if seen.jobs_on(chosen):
            return plan
        others = (effect for effect in plan.effects if not isinstance(effect, ApplyStatus))
        return attrs.evolve(plan, effects=(_create_job(seen, chosen), *others))

    return _decided("pending", decided)


def workers_are_recorded_unasked() -> AbstractContextManager[Any]:
    """`clusterName` is written before the nomination that Kueue's webhook asks for."""

    def nominated(situation: Situation, names: tuple[str, ...]) -> AbstractContextManager[Any]:
        return mock.patch.object(Situation, "facts", attrs.evolve(situation.facts, nominated=names))

    def won(situation: Situation) -> Worker | None:
        with nominated(situation, tuple(worker.name for worker in situation.workers)):
            return winner(situation)

    def recorded(situation: Situation, chosen: Worker) -> Iterator[Effect]:
        with nominated(situation, (chosen.name,)):
            return iter(list(record(situation, chosen)))

    winner, record = pending.winner, pending._record
    return mock.patch.multiple(pending, winner=won, _record=recorded)


def unmarked_copies_win() -> AbstractContextManager[Any]:
    """What says nothing of its maker is believed wherever it is, as Kueue's own controller believes it."""
    original = Situation.proof

    def proof(self: Situation, worker: Worker, copy: Json) -> Proof:
        proven = original(self, worker, copy)
        return Proof.EXACT if proven is Proof.NONE else proven

    return mock.patch.object(Situation, "proof", proof)


def copies_are_planned() -> AbstractContextManager[Any]:
    """Where the manager is a worker, too, its copies there are dispatched once more."""
    return _rows("copy", applies=lambda _: False)


def an_erased_worker_is_a_lost_job() -> AbstractContextManager[Any]:
    """Ready without a recorded worker: everything is deleted, and tried again."""

    def decide(seen: Situation) -> Plan:
        return Plan((check_updates.retry(seen, "no admitting cluster is recorded"), *removal.remove_all(seen)))

    return _rows("unrecorded", decide=decide)


def kinds_taken_out_are_forgotten() -> AbstractContextManager[Any]:
    """A Workload that a worker has is rejected after a restart without its kind."""

    original = planning._may_be_rejected

    def may_be_rejected(seen: Situation) -> bool:
        adapter = seen.snapshot.adapter
        return adapter is None or adapter.traits.draining or original(seen)

    return mock.patch.object(planning, "_may_be_rejected", may_be_rejected)


def pods_become_ready() -> AbstractContextManager[Any]:
    """The check of pods becomes Ready as that of jobs does: the manager's Kueue opens their gates."""
    original = check_updates.admit

    def admit(seen: Situation, cluster: ClusterName, state: CheckState, *copy: Any) -> Any:
        del state
        return original(seen, cluster, CheckState.READY, *copy)

    return mock.patch.object(check_updates, "admit", admit)


def placed_pods_are_not_told() -> AbstractContextManager[Any]:
    """The manager's Kueue waits for ever for pods that a worker has placed."""
    return mock.patch.object(check_updates, "_topology", return_value={})


def all_gates_open_at_once() -> AbstractContextManager[Any]:
    """Every worker that must preempt for a Workload may: several evict somebody for one job."""

    def open_all(situation: Situation, names: Sequence[str]) -> Plan:
        asked = [worker for worker in situation.workers if worker.can_run and worker.name in names]
        offered = [worker for worker in asked if situation.this_copy(worker) is not None]
        shut = [worker for worker in offered if worker.facts.is_blocked and worker.facts.opened_at is None]
        return Plan(tuple(preemption_gates._open(situation, worker) for worker in shut))

    return mock.patch.object(pending, "open_next", open_all)


def not_taken_keeps_its_quota() -> AbstractContextManager[Any]:
    """Not taken: nothing comes of it."""
    return mock.patch.object(check_updates, "not_taken", return_value=())


def what_waits_goes_round_at_once() -> AbstractContextManager[Any]:
    """Quota is given back as soon as it is there, where our clock says that it has been held for long."""
    return mock.patch.multiple(check_updates, QUOTA_HELD=timedelta(0), BEHIND_OTHERS=timedelta(0))


def jobs_do_not_wait_for_what_they_need() -> AbstractContextManager[Any]:
    """The job is made although what its pods mount is not there."""
    return mock.patch.object(dependencies, "_create", return_value=())


def places_are_not_written() -> AbstractContextManager[Any]:
    """Copies are made in the namespace that a worker says, and looked for in the manager's."""
    return mock.patch.object(planning, "with_places_written", lambda _seen, decided: decided)


def copies_are_made_under_the_managers_name() -> AbstractContextManager[Any]:
    """What a worker says of namespaces is not heard."""

    def namespace_for(snapshot: Snapshot, worker: Worker) -> str:
        del worker
        return snapshot.key.namespace

    return mock.patch.object(Snapshot, "namespace_for", namespace_for)


# Nothing runs while an earlier attempt may still run.
def earlier_attempts_are_forgotten() -> AbstractContextManager[Any]:
    """What ran before an eviction, on a worker out of sight since, is not waited for."""
    return mock.patch.object(earlier, "blocking", return_value=())


def hidden_workers_are_not_waited_for() -> AbstractContextManager[Any]:
    """A worker is recorded though an earlier attempt may run where nobody sees it."""
    original = earlier.blocking

    def blocking(situation: Situation, chosen: Worker) -> Iterator[Run]:
        yield from (run for run in original(situation, chosen) if run not in earlier.possible_runs(situation))

    unseen_ignored = _ignoring(lambda left: "cannot be seen" in left.why)
    return all_of(mock.patch.object(earlier, "blocking", blocking), unseen_ignored)


def seen_leftovers_are_not_waited_for() -> AbstractContextManager[Any]:
    """A Workload is offered, recorded and Ready though a job copy of an earlier attempt is seen."""
    return all_of(_never("earlier run"), mock.patch.object(leftovers, "earlier_runs", return_value=()))


def unproven_jobs_are_not_waited_for() -> AbstractContextManager[Any]:
    """A worker is recorded though another may run the job without our mark."""
    return _ignoring(lambda left: "not of our making" in left.why)


def _ignoring(passes: Callable[[Leftover], bool]) -> AbstractContextManager[Any]:
    """Some of what is seen on other workers keeps nobody from the job."""
    original = leftovers.in_the_way_of

    def in_the_way_of(situation: Situation, chosen: Worker) -> tuple[Leftover, ...]:
        return tuple(left for left in original(situation, chosen) if not passes(left))

    return mock.patch.object(leftovers, "in_the_way_of", in_the_way_of)


def evictions_do_not_wait_for_hidden_workers() -> AbstractContextManager[Any]:
    """An evicted job is shown to have stopped though it may run where nobody sees it."""

    def careless(decide: Callable[[Situation], Plan]) -> Callable[[Situation], Plan]:
        def decided(situation: Situation) -> Plan:
            with _unseen_runs(lambda _: ()):
                return decide(situation)

        return decided

    return _each_row(("gone", "no quota", "evicted"), lambda row: attrs.evolve(row, decide=careless(row.decide)))


def _unseen_runs(instead: Callable[[Situation], Any]) -> AbstractContextManager[Any]:
    """Where a job may run unseen is reckoned otherwise."""
    return _in((check_updates, earlier, evicting, planning, reasons), "possible_runs", instead)


def last_workers_are_not_noted() -> AbstractContextManager[Any]:
    """A restart forgets which worker out of sight may still have what was evicted."""
    return _in((check_updates, evicting, leftovers), "note_last_worker", lambda *_: ())


def _left(forget: Callable[[Worker], bool]) -> AbstractContextManager[Any]:
    """For some workers out of sight nothing is left to wait for."""
    original = earlier.assumed_for

    def left(situation: Situation, worker: Worker) -> timedelta:
        return timedelta(0) if forget(worker) else original(situation, worker)

    return _in((earlier, unrecorded), "assumed_for", left)


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


def doubts_end_at_once() -> AbstractContextManager[Any]:
    """A creation without an answer that does not show at once has not happened."""
    return _in((graces, reading), "LATE_CREATION", timedelta(0))


def stale_jobs_are_taken_over() -> AbstractContextManager[Any]:
    """An earlier attempt's job on the recorded worker is nobody's."""
    return mock.patch.object(Situation, "stale_jobs_on", return_value=[])


def an_earlier_copy_is_believed_while_pending() -> AbstractContextManager[Any]:
    """Before a worker is recorded, a copy made for an earlier attempt counts as this attempt's, and so it stays."""
    original = Situation.this_copy

    def current(self: Situation, worker: Worker) -> Json | None:
        return worker.copy if self.recorded_on is None else original(self, worker)

    return all_of(
        mock.patch.object(Situation, "this_copy", current),
        _rows("pending", also=lambda _: ()),
    )


def lost_workers_get_no_grace() -> AbstractContextManager[Any]:
    """What ran on a lost worker runs elsewhere at once."""
    return _with_grace(0.0)


def lost_workers_get_a_third_of_the_grace() -> AbstractContextManager[Any]:
    """What ran on a lost worker runs elsewhere after a third of `workerLostTimeout`."""
    return _with_grace(1 / 3)


def _with_grace(share: float) -> AbstractContextManager[Any]:
    original = earlier.assumed_for

    def left(situation: Situation, worker: Worker) -> Any:
        if not isinstance(worker.reach, Lost):
            return original(situation, worker)
        plan_settings = situation.settings
        settings = attrs.evolve(plan_settings, worker_lost_timeout=share * plan_settings.worker_lost_timeout)
        return original(attrs.evolve(situation, settings=settings), worker)

    return mock.patch.object(earlier, "assumed_for", left)


def an_attempt_is_evicted_once() -> AbstractContextManager[Any]:
    """A copy is not known whose attempt was evicted twice before anybody saw it."""
    return mock.patch.object(workloads, "MOST_EVICTIONS_AT_ONCE", 1)


def quota_is_freed_before_the_job_has_stopped() -> AbstractContextManager[Any]:
    """An evicted job is shown to have stopped while its copy still runs."""

    def stop(situation: Situation) -> Plan:
        plan = evicting.stop_evicted(situation)
        assert plan is not None, "it decides wherever it applies"
        jobs = situation.snapshot.jobs.values()
        released = [effect for job in jobs for effect in evicting.show_stopped(situation, job)]
        kept = [effect for effect in plan.effects if effect not in released]
        return attrs.evolve(plan, effects=(*kept, *released))

    return _rows("evicted", decide=stop)


# What is over is stopped, its end is shown, and its copies go, no sooner and no later.
def evicted_copies_are_not_stopped() -> AbstractContextManager[Any]:
    """Nobody tells the worker of an evicted job."""
    return mock.patch.object(evicting, "_stop_all", return_value=())


def deleted_workloads_leave_copies() -> AbstractContextManager[Any]:
    """Copies of what was deleted stay."""
    return _rows("gone", decide=lambda _: Plan())


def copies_without_quota_stay() -> AbstractContextManager[Any]:
    """Copies of what has no quota stay."""
    return _rows("no quota", decide=lambda _: Plan())


def finished_workloads_leave_copies() -> AbstractContextManager[Any]:
    """Copies of what has finished stay."""
    return _rows("finished", decide=lambda _: Plan())


def losers_out_of_the_config_are_kept() -> AbstractContextManager[Any]:
    """What lies on a worker that the config lists no more is not removed."""
    original = removal.remove

    def remove(situation: Situation, worker: Worker) -> Iterator[Effect]:
        return original(situation, worker) if worker.configured else iter(())

    return _in((removal, following), "remove", remove)


def losers_are_not_cleaned_once_assigned() -> AbstractContextManager[Any]:
    """Once a worker is recorded, nobody looks at the copies on the others any more."""
    return _rows("unregistered kind", "slice replacement", "recorded", also=lambda _: ())


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
    return mock.patch.object(ending, "_end_of_earlier_on", return_value=None)


def ends_without_a_workload_do_not_count() -> AbstractContextManager[Any]:
    """Where a Workload is gone nobody looks whether its job has ended: it is removed, and the next runs it again."""

    def decide(seen: Situation) -> Plan:
        refused = attrs.evolve(seen.snapshot, refused_for=graces.SYNC_GRACE)
        return evicting.clean_up_gone(attrs.evolve(seen, snapshot=refused))

    return _rows("gone", decide=decide)


def jobs_are_deleted_in_the_background() -> AbstractContextManager[Any]:
    """A job copy is gone at once, and its pods end unseen and unwaited for."""
    original = removal.delete_job

    def delete_job(*of: Any, **options: Any) -> Iterator[DeleteJob]:
        for effect in original(*of, **options):
            yield attrs.evolve(effect, propagation="Background")

    return all_of(mock.patch.object(removal, "delete_job", delete_job), pods_that_are_left_are_not_waited_for())


def copies_are_not_kept() -> AbstractContextManager[Any]:
    """What has finished goes at once, whatever retention says."""
    return mock.patch.object(ending, "retention_left", return_value=timedelta(0))


def only_a_finished_copy_is_kept() -> AbstractContextManager[Any]:
    """Where the manager's Workload is Finished first, its copies go at once."""
    original = ending.retention_left

    def left(situation: Situation, worker: Worker) -> timedelta:
        return original(situation, worker) if worker.facts.has_ended else timedelta(0)

    return mock.patch.object(ending, "retention_left", left)


def settled_ends_are_ignored() -> AbstractContextManager[Any]:
    """What somebody has settled on the manager does not stop the copy."""
    return _never("settled")


def quota_is_held_until_pods_have_ended() -> AbstractContextManager[Any]:
    """A dead node keeps those that wait for the quota waiting."""
    return mock.patch.object(evicting, "quota_kept_for", return_value=timedelta(days=1))


def stops_without_eviction_are_ignored() -> AbstractContextManager[Any]:
    """Only an eviction stops a copy: the manager's Kueue waits for a job that nobody stops."""
    return _never("stopped here")


def groups_let_nobody_go() -> AbstractContextManager[Any]:
    """A group's Workload copy goes without Kueue's finalizer: its pods keep theirs for ever."""
    original = Situation.copy_for

    def copy_for(self: Situation, worker: Worker) -> Json:
        made = original(self, worker)
        return {**made, "metadata": {name: value for name, value in made["metadata"].items() if name != "finalizers"}}

    return all_of(
        mock.patch.object(Situation, "copy_for", copy_for),
        mock.patch.object(removal, "_lacks_finalizer", return_value=False),
    )


# No promise: what a test needs to see quickly, or at all.
def decisions_raise(where: Callable[[Snapshot], bool]) -> AbstractContextManager[Any]:
    """Where a test says so, a decision raises what no caller expects, with a word that nobody may be told."""

    original = planning.plan

    def plan(snapshot: Snapshot, *rest: Any) -> Plan:
        if where(snapshot):
            raise ZeroDivisionError("secret of a tenant")
        return original(snapshot, *rest)

    return mock.patch.object(planning, "plan", plan)


# Of several names of a cluster the first gets what is new, and each copy belongs to the one that it was made for.
def second_names_get_offers() -> AbstractContextManager[Any]:
    """All names of a cluster are offered a job, and each makes a copy of it as soon as the other's is gone."""
    return mock.patch.object(Worker, "cordon", property(lambda worker: cordon_of(worker.annotations)))


def pods_that_are_left_are_not_waited_for() -> AbstractContextManager[Any]:
    """What somebody deletes on a worker in the background has ended as soon as it is gone."""
    return mock.patch.object(earlier, "_left_pods_end_in", return_value=timedelta(0))


def copies_of_other_names_are_stale() -> AbstractContextManager[Any]:
    """A copy that shows on a worker, and was made for another one, is taken for one of an earlier attempt."""
    return mock.patch.object(attribution, "with_own_copies", lambda _, worker: worker)


def few_failed_jobs_are_kept(most: int) -> AbstractContextManager[Any]:
    """So many copies of failed jobs a namespace keeps, in place of a hundred."""
    return mock.patch.object(ending, "MOST_FAILED", most)


def questions_about_unseen_runs(asked: list[object]) -> AbstractContextManager[Any]:
    """Note each time that a decision reckons where an earlier attempt may run unseen."""
    return _unseen_runs(asked.append)


DECISIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            earliest_admission_wins,
            stale_copies_are_believed,
            finished_jobs_are_made_again,
            every_admitted_worker_runs_it,
            jobs_are_created_before_the_record,
            workers_are_recorded_unasked,
            unmarked_copies_win,
            copies_are_planned,
            an_erased_worker_is_a_lost_job,
            kinds_taken_out_are_forgotten,
            pods_become_ready,
            placed_pods_are_not_told,
            all_gates_open_at_once,
            not_taken_keeps_its_quota,
            what_waits_goes_round_at_once,
            jobs_do_not_wait_for_what_they_need,
            places_are_not_written,
            copies_are_made_under_the_managers_name,
            earlier_attempts_are_forgotten,
            hidden_workers_are_not_waited_for,
            seen_leftovers_are_not_waited_for,
            unproven_jobs_are_not_waited_for,
            evictions_do_not_wait_for_hidden_workers,
            last_workers_are_not_noted,
            starts_wait_for_nobodys_first_answer,
            kinds_that_are_read_count_as_gone,
            unserved_kinds_are_lost_at_once,
            unreadable_workers_are_lost_at_once,
            old_losses_count,
            doubts_end_at_once,
            stale_jobs_are_taken_over,
            an_earlier_copy_is_believed_while_pending,
            lost_workers_get_no_grace,
            lost_workers_get_a_third_of_the_grace,
            an_attempt_is_evicted_once,
            quota_is_freed_before_the_job_has_stopped,
            evicted_copies_are_not_stopped,
            deleted_workloads_leave_copies,
            copies_without_quota_stay,
            finished_workloads_leave_copies,
            losers_out_of_the_config_are_kept,
            losers_are_not_cleaned_once_assigned,
            ends_are_not_shown,
            earlier_ends_do_not_count,
            ends_without_a_workload_do_not_count,
            jobs_are_deleted_in_the_background,
            pods_that_are_left_are_not_waited_for,
            copies_are_not_kept,
            only_a_finished_copy_is_kept,
            settled_ends_are_ignored,
            quota_is_held_until_pods_have_ended,
            stops_without_eviction_are_ignored,
            groups_let_nobody_go,
            second_names_get_offers,
            copies_of_other_names_are_stale,
        )
    }
)
"""Each promise of decisions that is broken somewhere, by its name."""
