"""Known defects of Kueue's built-in controller, put back into ours: each must be caught, or the net has a hole.

The numbers are those of the list of weaknesses (`spec/core.md` §12). A mutation swaps one row of the plan's table or
one function, for as long as its context lasts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import attrs

from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.marks import Proof
from multikueue.core.model.names import ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.worker_names import WorkerNames
from multikueue.core.model.workloads import cluster_name, is_admitted, is_evicted, is_finished
from multikueue.core.workload import evicting
from multikueue.core.workload import plan as planning
from multikueue.core.workload.check_updates import send_back_evicted
from multikueue.core.workload.effects import ApplyStatus, CreateJob, Effect, Plan
from multikueue.core.workload.ending import sync_end
from multikueue.core.workload.facts import possible_runs as earlier
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.pending import winner
from multikueue.core.workload.removal import remove_all
from multikueue.errors import KubeconfigError
from multikueue.kube import parse_worker_kubeconfig
from multikueue.kube.informers.informer import Informer
from multikueue.runtime import effect_executor as performing
from multikueue.runtime.caches.workload_memory import WorkloadMemory
from multikueue.runtime.event_handlers import WorkerHandlers
from multikueue.runtime.reconcilers import configuration
from multikueue.runtime.reconcilers.workload import SnapshotReader
from multikueue.runtime.target import Target
from multikueue.runtime.workers import informers as worker_informers
from multikueue.runtime.workers.pool import WorkerCluster
from tests.simulation.choosing_mutations import RULES
from tests.simulation.guard_mutations import GUARDS
from tests.simulation.kind_mutations import KIND_MUTATIONS
from tests.simulation.leaving_mutations import LEAVING_MUTATIONS
from tests.simulation.mapping_mutations import MAPPING_MUTATIONS
from tests.simulation.need_mutations import NEED_MUTATIONS
from tests.simulation.nominating import OneByOne
from tests.simulation.placement_mutations import PLACEMENT_MUTATIONS
from tests.simulation.planted import PLANTED
from tests.simulation.simulating import Run, simulate
from tests.simulation.watch_mutations import WATCH_MUTATIONS

Decide = Callable[[Situation], Plan]
Mutation = Callable[[], AbstractContextManager[Any]]


@contextmanager
def _row(name: str, change: Callable[[Decide], Decide]) -> Iterator[None]:
    """Decide one row of the table otherwise."""
    rows = [attrs.evolve(row, decide=change(_sure(row))) if row.name == name else row for row in planning.TABLE]
    assert tuple(rows) != planning.TABLE, f"there is no row {name}"
    with mock.patch.object(planning, "TABLE", tuple(rows)):
        yield


def _sure(row: planning.Row) -> Decide:
    """The decision of a row that always decides."""

    def decide(seen: Situation) -> Plan:
        plan = row.decide(seen)
        assert plan is not None, f"{row.name} decides wherever it applies"
        return plan

    return decide


def _create_job(seen: Situation, worker: Worker) -> Effect:
    assert seen.job is not None, "the row before waits for it"
    return CreateJob(worker.name, seen.adapter.resource, seen.adapter.copy(seen.job, seen.stamp_on(worker)))


def earliest_admission_wins() -> AbstractContextManager[None]:
    """16: `clusterName` is not sticky; of all Admitted copies the one with the earliest time by its clock wins."""

    def change(decide: Decide) -> Decide:
        def decided(seen: Situation) -> Plan:
            admitted = [
                (str((condition(worker.workload, "Admitted") or {}).get("lastTransitionTime")), worker.name, worker)
                for worker in seen.workers
                if worker.reachable and worker.workload is not None and is_admitted(worker.workload)
            ]
            winner = min(admitted)[-1] if admitted else None
            if winner is None or winner.name == seen.assigned_to:
                return decide(seen)
            created = (_create_job(seen, winner),) if seen.job_on(winner) is None else ()
            return Plan((*created, *remove_all(seen, winner.name)))

        return decided

    return _row("assigned", change)


def stale_copies_are_believed() -> AbstractContextManager[None]:
    """17, 18: a copy elsewhere that says Finished or Evicted finishes or evicts a healthy Workload."""

    def change(decide: Decide) -> Decide:
        def decided(seen: Situation) -> Plan:
            for worker in seen.workers:
                copy = worker.workload
                if worker.reachable and copy is not None and is_finished(copy):
                    return sync_end(seen, copy, seen.jobs_on(worker))
                if worker.reachable and copy is not None and is_evicted(copy):
                    return Plan(tuple(send_back_evicted(seen, str(seen.assigned_to), copy)))
            return decide(seen)

        return decided

    return _row("assigned", change)


def removed_clusters_are_forgotten() -> AbstractContextManager[Any]:
    """28: what lies on a cluster that the config lists no more is not looked at: it counts as gone."""
    original = SnapshotReader._workers

    def workers(
        self: SnapshotReader, key: ObjectKey, workload: Json | None, config: Json | None, *rest: Any
    ) -> Iterator[Worker]:
        found = original(self, key, workload, config, *rest)
        for worker in found:
            yield worker if worker.configured or config is None else attrs.evolve(worker, workload=None, jobs=())

    return mock.patch.object(SnapshotReader, "_workers", workers)


def finished_jobs_are_made_again() -> AbstractContextManager[None]:
    """14: where the Workload copy is Finished and its job is gone, synchronising makes the job again."""

    def change(decide: Decide) -> Decide:
        def decided(seen: Situation) -> Plan:
            worker = seen.snapshot.worker(seen.assigned_to) if seen.assigned_to else None
            plan = decide(seen)
            if worker is None or not worker.reachable or worker.workload is None or not is_finished(worker.workload):
                return plan
            again = () if seen.job_on(worker) is not None else (_create_job(seen, worker),)
            return attrs.evolve(plan, effects=(*again, *plan.effects))

        return decided

    return _row("assigned", change)


@contextmanager
def origins_are_not_checked() -> Iterator[None]:
    """26: whatever has the right name or says that it belongs to a Workload is taken for a copy of ours."""

    def unselected(*args: Any, **options: Any) -> Informer:
        return Informer(*args, **{**options, "label_selector": "", "belongs": lambda _: True})

    with mock.patch.object(worker_informers, "Informer", unselected):
        yield


def connecting_wakes_nobody() -> AbstractContextManager[Any]:
    """38: what waits for a worker is not looked at when one comes back."""

    def changed(self: WorkerHandlers, worker: WorkerCluster, known: bool) -> None:
        del known
        self._note_connection(worker)
        self.status_changed(worker)

    return mock.patch.object(WorkerHandlers, "cluster_changed", changed)


def every_admitted_worker_runs_it() -> AbstractContextManager[None]:
    """The job is made on each worker that has admitted its Workload, not on one."""

    def change(decide: Decide) -> Decide:
        def decided(seen: Situation) -> Plan:
            plan = decide(seen)
            ready = [
                worker
                for worker in seen.workers
                if worker.can_run and seen.job_on(worker) is None and is_admitted(seen.current(worker) or {})
            ]
            asked = {effect.cluster for effect in plan.effects if isinstance(effect, CreateJob)}
            more = [_create_job(seen, worker) for worker in ready if worker.name not in asked and not worker.jobs]
            return attrs.evolve(plan, effects=(*more, *plan.effects))

        return decided

    return _row("pending", change)


def failed_deletions_are_forgotten() -> AbstractContextManager[Any]:
    """Cleanup that a worker did not answer is not tried again."""

    async def delete(
        target: Target, resource: Resource, key: ObjectKey, uid: str, propagation: Any = "Background", **_: Any
    ) -> None:
        if (cache := target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)) is not None:
            cache.removed(key, uid)
            cache._deleted[key] = attrs.evolve(cache._deleted[key], until=float("inf"))
        with contextlib.suppress(Exception):
            await target.client.delete(resource, key, uid=uid, propagation=propagation)

    return mock.patch.object(performing, "_delete", delete)


def errors_quote_kubeconfigs() -> AbstractContextManager[Any]:
    """What is wrong with a kubeconfig is told by showing it: in a status that every user can read."""
    original = parse_worker_kubeconfig

    def parse(raw: bytes) -> Any:
        try:
            return original(raw)
        except KubeconfigError as error:
            raise KubeconfigError(error.reason, f"{error}: {raw.decode()}") from error

    return mock.patch.object(configuration, "parse_worker_kubeconfig", parse)


def jobs_are_created_before_the_record() -> AbstractContextManager[None]:
    """The order of Kueue's controller: the job is made on the worker that has admitted it, and then recorded."""

    def change(decide: Decide) -> Decide:
        def decided(seen: Situation) -> Plan:
            plan, chosen = decide(seen), winner(seen)
            recorded = (effect for effect in plan.effects if isinstance(effect, ApplyStatus))
            if chosen is None or not any(cluster_name(effect.object) == chosen.name for effect in recorded):
                return plan
            if seen.job_on(chosen) is not None:
                return plan
            others = (effect for effect in plan.effects if not isinstance(effect, ApplyStatus))
            return attrs.evolve(plan, effects=(_create_job(seen, chosen), *others))

        return decided

    return _row("pending", change)


def lost_answers_count_as_not_sent() -> AbstractContextManager[Any]:
    """A creation without an answer is taken for one that has not left: nobody waits for the worker."""

    def unanswered(memory: WorkloadMemory, cluster: ClusterName, key: ObjectKey, job: str) -> None:
        memory.not_created(cluster, key, job, doubted=False)

    return mock.patch.object(WorkloadMemory, "unanswered", unanswered)


def earlier_attempts_are_forgotten() -> AbstractContextManager[Any]:
    """What ran before an eviction, on a worker out of sight since, is not waited for."""
    return mock.patch.object(earlier, "blocking", return_value=())


def unmarked_copies_win() -> AbstractContextManager[Any]:
    """What says nothing of its maker is believed wherever it is, as Kueue's own controller believes it."""
    original = Situation.proof

    def proof(self: Situation, worker: Worker, copy: Json) -> Proof:
        found = original(self, worker, copy)
        return Proof.EXACT if found is Proof.NONE else found

    return mock.patch.object(Situation, "proof", proof)


def copies_are_planned() -> AbstractContextManager[Any]:
    """Where the manager is a worker, too, its copies there are dispatched once more."""
    return mock.patch.object(planning, "is_own_copy", return_value=False)


@contextmanager
def messages_of_nobody_are_written() -> Iterator[None]:
    """A dispatcher that does not know its own message again writes it with each look, for ever."""
    with (
        mock.patch.object(Guarded, "_lasting", lambda guarded, answer, said: answer),
        mock.patch.object(OneByOne, "remembers", return_value=False),
    ):
        yield


def names_are_not_kept_apart() -> AbstractContextManager[Any]:
    """The manager as a worker is taken like any other, though copies have the names of what they are made of."""
    original = WorkerNames.of

    def of(annotations: Mapping[str, str], *, of_manager: bool = False) -> WorkerNames:
        del of_manager
        return original(annotations)

    return mock.patch.object(WorkerNames, "of", of)


def an_attempt_is_evicted_once() -> AbstractContextManager[Any]:
    """A copy is not known whose attempt was evicted twice before anybody saw it."""
    return mock.patch.object(evicting, "MOST_AT_ONCE", 1)


MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        **KIND_MUTATIONS,
        **NEED_MUTATIONS,
        **WATCH_MUTATIONS,
        **PLACEMENT_MUTATIONS,
        **PLANTED,
        **GUARDS,
        **RULES,
        **MAPPING_MUTATIONS,
        **LEAVING_MUTATIONS,
        **{
            mutation.__name__: mutation
            for mutation in (
                earliest_admission_wins,
                stale_copies_are_believed,
                removed_clusters_are_forgotten,
                finished_jobs_are_made_again,
                origins_are_not_checked,
                connecting_wakes_nobody,
                every_admitted_worker_runs_it,
                failed_deletions_are_forgotten,
                errors_quote_kubeconfigs,
                jobs_are_created_before_the_record,
                lost_answers_count_as_not_sent,
                earlier_attempts_are_forgotten,
                unmarked_copies_win,
                copies_are_planned,
                names_are_not_kept_apart,
                messages_of_nobody_are_written,
                an_attempt_is_evicted_once,
            )
        },
    }
)


def simulate_mutated(name: str, seed: int, extra: tuple[str, ...] = ()) -> Run:
    """Run one seed with a defect put back."""
    with MUTATIONS[name]():
        return simulate(seed, extra=extra)


def runner(name: str | None, extra: tuple[str, ...] = ()) -> Callable[[int], Run]:
    """What runs a seed: with a defect, or as it is; and with rows of `adversity.ROWS`."""
    return partial(simulate, extra=extra) if name is None else partial(simulate_mutated, name, extra=extra)
