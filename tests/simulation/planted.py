"""Thirteen bugs that a review planted, which nothing caught, and what came later: each must be seen by a unit test.

`test_planted_bugs` runs the unit test of each with the bug in place, and looks at the seed that catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import anyio
import attrs

from multikueue.core.machinery.lease import LeaseAction, LeaseCandidate
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating
from multikueue.core.workload import assigned, evicting, leftovers, pending, removal
from multikueue.core.workload import plan as planning
from multikueue.core.workload.effects import Effect, Plan
from multikueue.core.workload.facts import possible_runs as earlier
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.core.workload.facts.worker_states import Lost
from multikueue.errors import DeadlineExceeded, NotFound, NotSent
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.reflector import Reflector
from multikueue.protocols import ObjectList, WatchEvent
from multikueue.runtime import effect_executor as performing
from multikueue.runtime.election import Elector
from multikueue.runtime.target import Target

Mutation = Callable[[], AbstractContextManager[Any]]


def nothing_goes_in(*names: str) -> AbstractContextManager[Any]:
    """Some rows of the table remove nothing."""
    rows = [attrs.evolve(row, goes=lambda _: ()) if row.name in names else row for row in planning.TABLE]
    return mock.patch.object(planning, "TABLE", tuple(rows))


@contextmanager
def all_of(*patches: AbstractContextManager[Any]) -> Iterator[None]:
    """Several patches as one."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def an_earlier_copy_is_believed_while_pending() -> AbstractContextManager[Any]:
    """Before a worker is recorded, a copy made for an earlier attempt counts as this attempt's, and so it stays."""
    original = Situation.current

    def current(self: Situation, worker: Worker) -> Json | None:
        return worker.workload if self.assigned_to is None else original(self, worker)

    return all_of(
        mock.patch.object(Situation, "current", current),
        nothing_goes_in("pending"),
    )


def losers_out_of_the_config_are_kept() -> AbstractContextManager[Any]:
    """What lies on a worker that the config lists no more is not removed."""
    original = removal.remove

    def remove(situation: Situation, worker: Worker) -> Iterator[Effect]:
        return original(situation, worker) if worker.configured else iter(())

    return all_of(*(mock.patch.object(module, "remove", remove) for module in (removal, leftovers, pending, assigned)))


def a_lease_counts_from_the_answer() -> AbstractContextManager[Any]:
    """A leader counts its Lease from when the write was answered, not from when it began."""
    original = Elector._write

    async def write(self: Elector) -> None:
        await original(self)
        self._candidate._written_at = anyio.current_time()

    return mock.patch.object(Elector, "_write", write)


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


def deletes_have_no_uid() -> AbstractContextManager[Any]:
    """Whatever has the name by now is deleted, be it somebody else's."""

    async def delete(
        target: Target, resource: Resource, key: ObjectKey, uid: str, propagation: Any = "Background", **_: Any
    ) -> None:
        left = None
        with suppress(NotFound):
            left = await target.client.delete(resource, key, propagation=propagation)
        if (cache := target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)) is not None:
            cache.removed(key, uid) if left is None else cache.wrote(left)

    return mock.patch.object(performing, "_delete", delete)


def the_first_event_after_a_resume_is_dropped() -> AbstractContextManager[Any]:
    """A watch that was resumed loses its first event."""
    watch, receive = Reflector._watch, Reflector._receive
    resumed: dict[int, bool] = {}
    listed: dict[int, bool] = {}

    async def watched(self: Reflector, since: str) -> Any:
        resumed[id(self)] = not listed.pop(id(self), False)
        return await watch(self, since)

    async def list_(self: Reflector, known: str) -> Any:
        listed[id(self)] = True
        return await original_list(self, known)

    def received(self: Reflector, event: WatchEvent) -> None:
        if event.type != "BOOKMARK" and resumed.pop(id(self), False):
            event = attrs.evolve(event, type="BOOKMARK")
        receive(self, event)

    original_list = Reflector._list
    return all_of(
        mock.patch.object(Reflector, "_watch", watched),
        mock.patch.object(Reflector, "_list", list_),
        mock.patch.object(Reflector, "_receive", received),
    )


def workers_are_recorded_unasked() -> AbstractContextManager[Any]:
    """`clusterName` is written before the nomination that Kueue's webhook asks for."""

    def nominated(situation: Situation, names: tuple[str, ...]) -> AbstractContextManager[Any]:
        return mock.patch.object(Situation, "facts", attrs.evolve(situation.facts, nominated=names))

    def won(situation: Situation) -> Worker | None:
        with nominated(situation, tuple(one.name for one in situation.workers)):
            return winner(situation)

    def recorded(situation: Situation, chosen: Worker) -> Iterator[Effect]:
        with nominated(situation, (chosen.name,)):
            return iter(list(record(situation, chosen)))

    winner, record = pending.winner, pending._record
    return mock.patch.multiple(pending, winner=won, _record=recorded)


def a_timeout_counts_as_not_sent() -> AbstractContextManager[Any]:
    """A creation that was not answered in time is taken for one that has not left."""
    create = performing.EffectExecutor._create

    async def created(self: performing.EffectExecutor, *args: Any) -> Json:
        try:
            return await create(self, *args)
        except DeadlineExceeded as error:
            raise NotSent(str(error)) from error

    return mock.patch.object(performing.EffectExecutor, "_create", created)


def quota_is_freed_before_the_job_has_stopped() -> AbstractContextManager[Any]:
    """An evicted job is shown to have stopped while its copy still runs."""

    def stop(situation: Situation) -> Plan:
        plan = evicting.stop_evicted(situation)
        released = [effect for job in situation.snapshot.jobs.values() for effect in evicting.release(situation, job)]
        kept = [effect for effect in plan.effects if effect not in released]
        return attrs.evolve(plan, effects=(*kept, *released))

    rows = tuple(attrs.evolve(one, decide=stop) if one.name == "evicted" else one for one in planning.TABLE)
    assert rows != planning.TABLE, "there is no such row"
    return mock.patch.object(planning, "TABLE", rows)


def a_relist_forgets_one_deletion() -> AbstractContextManager[Any]:
    """Of what a list does not show any more, the first stays known."""
    original = Informer._replace

    async def replaced(self: Informer, listed: ObjectList, backwards: bool) -> None:
        there = {ObjectKey.of(obj) for obj in filter(self.belongs, listed.items)}
        gone = sorted(set(self.keys()) - there)
        kept = [self.get(key) for key in gone[:1]]
        await original(self, attrs.evolve(listed, items=[*listed.items, *(obj for obj in kept if obj)]), backwards)

    return mock.patch.object(Informer, "_replace", replaced)


def a_lease_is_taken_a_period_early() -> AbstractContextManager[Any]:
    """A candidate takes the Lease of another one renewal before that may have run out."""
    original = LeaseCandidate.decide

    def decide(self: LeaseCandidate, now: float) -> LeaseAction:
        return original(self, now + self.settings.retry_period)

    return mock.patch.object(LeaseCandidate, "decide", decide)


def losers_are_not_cleaned_once_assigned() -> AbstractContextManager[Any]:
    """Once a worker is recorded, nobody looks at the copies on the others any more."""
    return nothing_goes_in("unregistered kind", "slice replacement", "assigned")


def an_accepted_deletion_is_a_removal() -> AbstractContextManager[Any]:
    """What a worker has accepted to delete counts as gone, though it has still to end."""
    original = performing._delete

    async def delete(target: Target, resource: Resource, key: ObjectKey, uid: str, *options: Any, **named: Any) -> None:
        await original(target, resource, key, uid, *options, **named)
        cache = target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)
        if cache is not None and (left := cache.get(key)) is not None and is_terminating(left):
            cache.removed(key, uid)

    return mock.patch.object(performing, "_delete", delete)


PLANTED: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            an_earlier_copy_is_believed_while_pending,
            losers_out_of_the_config_are_kept,
            a_lease_counts_from_the_answer,
            lost_workers_get_no_grace,
            deletes_have_no_uid,
            the_first_event_after_a_resume_is_dropped,
            workers_are_recorded_unasked,
            lost_workers_get_a_third_of_the_grace,
            a_timeout_counts_as_not_sent,
            quota_is_freed_before_the_job_has_stopped,
            a_relist_forgets_one_deletion,
            a_lease_is_taken_a_period_early,
            losers_are_not_cleaned_once_assigned,
            an_accepted_deletion_is_a_removal,
        )
    }
)
"""In the order of the review's list; what came later is last."""
