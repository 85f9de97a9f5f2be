"""Defects in how runs leave their workers: pods of two attempts meet, ends and copies are lost, quota is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from unittest import mock

from multikueue.adapters import job_status
from multikueue.adapters.kind import JobKind
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.workload_facts import CopyFacts
from multikueue.runtime import effect_executor as performing
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.runtime.target import Target

Mutation = Callable[[], AbstractContextManager[Any]]


def accepted_deletions_are_removals() -> AbstractContextManager[Any]:
    """What a worker has only begun to delete counts as gone, until its watch says otherwise."""

    async def delete(target: Target, resource: Resource, key: ObjectKey, uid: str, *rest: Any, **options: Any) -> None:
        await original(target, resource, key, uid, *rest, **options)
        if (cache := target.workloads if resource == WORKLOAD else target.cache_of(resource.gvk)) is not None:
            cache.removed(key, uid)

    original = performing._delete
    return mock.patch.object(performing, "_delete", delete)


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


def holds_are_evictions() -> AbstractContextManager[Any]:
    """A copy that its Kueue holds counts as lost: its Workload is sent back."""
    goes_on = property(lambda facts: facts.is_admitted and not (facts.is_finished or facts.is_leaving))
    return mock.patch.object(CopyFacts, "goes_on", goes_on)


LEAVING_MUTATIONS: Final[Mapping[str, Mutation]] = MappingProxyType(
    {
        mutation.__name__: mutation
        for mutation in (
            accepted_deletions_are_removals,
            ends_lose_their_counts,
            counters_go_back,
            refusals_are_final,
            holds_are_evictions,
        )
    }
)
