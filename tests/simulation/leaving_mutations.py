"""Defects in how runs leave their workers: pods of two attempts meet, ends and copies are lost, quota is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

import attrs

from multikueue.adapters import job_status
from multikueue.adapters.kind import JobKind
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workload_facts import CopyFacts
from multikueue.core.workload import ending, evicting, removal
from multikueue.core.workload import plan as planning
from multikueue.core.workload.effects import DeleteJob
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import Worker
from multikueue.runtime import effect_executor as performing
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.target import Target
from tests.simulation.planted import all_of

Mutation = Callable[[], AbstractContextManager[Any]]


def jobs_are_deleted_in_the_background() -> AbstractContextManager[Any]:
    """A job copy is gone at once, and its pods end unseen."""
    original = removal.delete_job

    def delete_job(*of: Any, **options: Any) -> Iterator[DeleteJob]:
        for effect in original(*of, **options):
            yield attrs.evolve(effect, propagation="Background")

    return mock.patch.object(removal, "delete_job", delete_job)


def accepted_deletions_are_removals() -> AbstractContextManager[Any]:
    """What a worker has only begun to delete counts as gone, until its watch says otherwise."""

    async def delete(target: Target, resource: Resource, key: ObjectKey, uid: str, *rest: Any, **options: Any) -> None:
        await original(target, resource, key, uid, *rest, **options)
        if (cache := target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)) is not None:
            cache.removed(key, uid)

    original = performing._delete
    return mock.patch.object(performing, "_delete", delete)


def copies_are_not_kept() -> AbstractContextManager[Any]:
    """What has finished goes at once, whatever retention says."""
    return mock.patch.object(ending, "retention_left", return_value=0.0)


def only_a_finished_copy_is_kept() -> AbstractContextManager[Any]:
    """Where the manager's Workload is Finished first, its copies go at once."""
    original = ending.retention_left

    def left(situation: Situation, worker: Worker) -> float:
        return original(situation, worker) if worker.copy.has_ended else 0.0

    return mock.patch.object(ending, "retention_left", left)


def ends_lose_their_counts() -> AbstractContextManager[Any]:
    """A job's end is shown, and not what ended."""
    original = JobKind.status_patch

    def patch(self: JobKind, local: Json, remote: Json, now: datetime) -> Json | None:
        status = {name: value for name, value in (remote.get("status") or {}).items() if name != "succeeded"}
        return original(self, local, {**remote, "status": status}, now)

    return mock.patch.object(JobKind, "status_patch", patch)


def counters_go_back() -> AbstractContextManager[Any]:
    """A status has the counters of its copy, whatever the manager's job counts already: its API server refuses that."""
    original = job_status._status

    def status(local: Json, wanted: Json, now: datetime) -> Json:
        made = original(local, wanted, now)
        return {**made, **{counter: wanted.get(counter) for counter in ("succeeded", "failed") if counter in made}}

    return mock.patch.object(job_status, "_status", status)


def refusals_are_final() -> AbstractContextManager[Any]:
    """A status that the manager's API server has refused once is not written again while the job is as it was."""

    def refused(self: MutationCache, key: ObjectKey, patch: Json) -> None:
        self.patched(patch, {"metadata": {"namespace": key.namespace, "name": key.name, **patch["metadata"]}})

    return mock.patch.object(MutationCache, "refused", refused)


def settled_ends_are_ignored() -> AbstractContextManager[Any]:
    """What somebody has settled on the manager does not stop the copy."""
    return never("settled")


def holds_are_evictions() -> AbstractContextManager[Any]:
    """A copy that its Kueue holds counts as lost: its Workload is sent back."""
    goes_on = property(lambda facts: facts.is_admitted and not (facts.is_finished or facts.goes))
    return mock.patch.object(CopyFacts, "goes_on", goes_on)


def quota_is_held_until_pods_have_ended() -> AbstractContextManager[Any]:
    """A dead node keeps those that wait for the quota waiting."""
    return mock.patch.object(evicting, "hold_left", return_value=timedelta(days=1))


def stops_without_eviction_are_ignored() -> AbstractContextManager[Any]:
    """Only an eviction stops a copy: the manager's Kueue waits for a job that nobody stops."""
    return never("stopped here")


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


def never(name: str) -> AbstractContextManager[Any]:
    """One row of the table never applies."""
    rows = [attrs.evolve(row, applies=lambda _: False) if row.name == name else row for row in planning.TABLE]
    assert any(row.name == name for row in rows), f"there is no row {name}"
    return mock.patch.object(planning, "TABLE", tuple(rows))


LEAVING_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            jobs_are_deleted_in_the_background,
            accepted_deletions_are_removals,
            copies_are_not_kept,
            only_a_finished_copy_is_kept,
            ends_lose_their_counts,
            counters_go_back,
            refusals_are_final,
            settled_ends_are_ignored,
            holds_are_evictions,
            quota_is_held_until_pods_have_ended,
            stops_without_eviction_are_ignored,
        )
    }
)
