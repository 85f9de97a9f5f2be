"""Thirteen bugs that a review planted, which nothing caught, and what came later: each must be seen by a unit test.

`test_planted_bugs` runs the unit test of each with the bug in place, and looks at the seed that catches it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import anyio
import attrs

from multikueue.core.machinery.lease import LeaseAction, LeaseCandidate
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import is_terminating
from multikueue.errors import DeadlineExceeded, NotFound, NotSent
from multikueue.kube.informers.informer import Informer
from multikueue.kube.informers.reflector import Reflector
from multikueue.protocols import ObjectList, WatchEvent
from multikueue.runtime import effect_executor as performing
from multikueue.runtime.election import Elector
from multikueue.runtime.target import Target
from tests.simulation import decision_mutations as decisions
from tests.simulation.decision_mutations import all_of

Mutation = Callable[[], AbstractContextManager[Any]]


def a_lease_counts_from_the_answer() -> AbstractContextManager[Any]:
    """A leader counts its Lease from when the write was answered, not from when it began."""
    original = Elector._write

    async def write(self: Elector) -> None:
        await original(self)
        self._candidate._written_at = anyio.current_time()

    return mock.patch.object(Elector, "_write", write)


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


def a_timeout_counts_as_not_sent() -> AbstractContextManager[Any]:
    """A creation that was not answered in time is taken for one that has not left."""
    create = performing.EffectExecutor._create

    async def created(self: performing.EffectExecutor, *args: Any) -> Json:
        try:
            return await create(self, *args)
        except DeadlineExceeded as error:
            raise NotSent(str(error)) from error

    return mock.patch.object(performing.EffectExecutor, "_create", created)


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
            decisions.an_earlier_copy_is_believed_while_pending,
            decisions.losers_out_of_the_config_are_kept,
            a_lease_counts_from_the_answer,
            decisions.lost_workers_get_no_grace,
            deletes_have_no_uid,
            the_first_event_after_a_resume_is_dropped,
            decisions.workers_are_recorded_unasked,
            decisions.lost_workers_get_a_third_of_the_grace,
            a_timeout_counts_as_not_sent,
            decisions.quota_is_freed_before_the_job_has_stopped,
            a_relist_forgets_one_deletion,
            a_lease_is_taken_a_period_early,
            decisions.losers_are_not_cleaned_once_assigned,
            an_accepted_deletion_is_a_removal,
        )
    }
)
"""In the order of the review's list; what came later is last."""
