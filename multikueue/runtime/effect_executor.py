"""Executing effects: the request for each of them, and what is remembered of its answer."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.workloads import attempt_of_copy, cluster_queue
from multikueue.core.workload.effects import (
    Announce,
    ApplyStatus,
    CountAdmitted,
    CreateJob,
    CreateWorkload,
    DeleteJob,
    DeleteWorkload,
    Effect,
    PatchJob,
    PatchJobStatus,
    PatchWorkload,
)
from multikueue.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound, NotSent
from multikueue.protocols import ApiClient, ManagerHook, Subresource
from multikueue.runtime.create_conflicts import CreateConflicts
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.mutation_cache import MutationCache
from multikueue.runtime.workload_memory import WorkloadMemory

TELL_AFTER: Final = 1.0
"""Seconds for which a name must be taken by an object that informers do not show, until there is an event."""


class Target(Protocol):
    """A cluster on which effects can be executed."""

    @property
    def client(self) -> ApiClient:
        """Where to send writes."""
        ...

    @property
    def workloads(self) -> MutationCache:
        """Its Workloads."""
        ...

    @property
    def create_conflicts(self) -> CreateConflicts:
        """The creations it refuses."""
        ...

    def cache_of(self, gvk: GVK) -> MutationCache | None:
        """Its jobs of one kind."""
        ...


@attrs.define(eq=False)
class EffectExecutor:
    """Executes effects."""

    target: Callable[[ClusterName], Target | None]
    """Finds the cluster of a name, `MANAGER` included; None if it is not connected."""
    events: EventRecorder
    memory: WorkloadMemory
    hook: ManagerHook | None = None

    async def execute(self, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        """Execute effects one after the other, up to the first that fails.

        Args:
            workload: the manager's Workload they are for; None if it is gone.
            effects: of one cluster.

        Raises:
            ApiError: an effect failed; those after it were not tried.
        """
        for effect in effects:
            await self._execute(workload, effect)

    async def _execute(self, workload: Json | None, effect: Effect) -> None:
        match effect:
            case Announce():
                if workload is not None:
                    self.events.emit(
                        workload, type=effect.type, reason="MultiKueue", action="MultiKueue", note=effect.note
                    )
            case CountAdmitted():
                if self.hook is not None:
                    self.hook.admitted(effect.cluster_queue, effect.worker)
            case _:
                target = self.target(effect.cluster)
                if target is None:
                    raise NotSent(f'cluster "{effect.cluster}" is not connected')
                await self._write(target, effect, workload)

    async def _write(self, target: Target, effect: Effect, workload: Json | None) -> None:
        match effect:
            case ApplyStatus(object=body, field_manager=manager):
                written = await target.client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
                target.workloads.wrote(written)
            case PatchJobStatus() | PatchJob():
                await self._patch_job(target, effect, workload)
            case CreateWorkload():
                await self._create_workload(target, effect, workload)
            case CreateJob():
                await self._create_job(target, effect, workload)
            case PatchWorkload(key=key, patch=patch):
                target.workloads.wrote(await target.client.merge_patch(WORKLOAD, key, patch))
            case DeleteJob(resource=resource, key=key, uid=uid):
                await _delete(target, target.cache_of(resource.gvk), resource, key, uid)
            case DeleteWorkload():
                await _delete_workload(target, effect)

    async def _patch_job(self, target: Target, effect: PatchJobStatus | PatchJob, workload: Json | None) -> None:
        behind_status = isinstance(effect, PatchJobStatus) and effect.subresource
        part: Subresource = "status" if behind_status else ""
        resource, key = effect.resource, effect.key
        try:
            written = await target.client.merge_patch(resource, key, effect.patch, subresource=part)
            if (cache := target.cache_of(resource.gvk)) is not None:
                cache.patched(effect.patch, written)
        except (Forbidden, Invalid, NotFound) as error:
            # No event for a job that is gone, but for a kind without that subresource: its CRD came after discovery.
            if workload is not None and not (isinstance(error, NotFound) and f'"{key.name}"' in str(error)):
                where = f'worker cluster "{effect.cluster}"' if effect.cluster else "the manager cluster"
                what = "the status of " if isinstance(effect, PatchJobStatus) else "a change of "
                self._warn(workload, f'{where} refuses {what}{resource} "{key}": {error}')
            raise

    async def _create_workload(self, target: Target, effect: CreateWorkload, workload: Json | None) -> None:
        target.workloads.wrote(await self._create(target, effect, WORKLOAD, workload))
        if self.hook is not None and workload is not None:
            self.hook.dispatched(cluster_queue(workload), effect.cluster)

    async def _create_job(self, target: Target, effect: CreateJob, workload: Json | None) -> None:
        """Create the job, and remember whether it may exist."""
        if workload is None:
            return  # jobs are created for Workloads only
        where = effect.cluster, ObjectKey.of(workload), ObjectKey.of(effect.object).name
        doubted = self.memory.sending(*where)
        try:
            created = await self._create(target, effect, effect.resource, workload)
        except ApiError as error:
            if isinstance(error, NotSent) or 0 < error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                self.memory.not_created(*where, doubted=doubted)
            else:
                self.memory.unanswered(*where)
            raise
        self.memory.created(*where, attempt_of_copy(effect.object))
        cache = target.cache_of(effect.resource.gvk)
        if cache is not None:
            cache.wrote(created)

    async def _create(
        self, target: Target, effect: CreateWorkload | CreateJob, resource: Resource, workload: Json | None
    ) -> Json:
        key = ObjectKey.of(effect.object)
        try:
            created = await target.client.create(resource, effect.object)
        except ApiError as error:
            if not error.status or workload is None:  # no answer is no refusal
                raise
            raise self._refused(target, effect.cluster, resource, key, workload, error) from error
        if workload is not None:
            target.create_conflicts.created(resource, ObjectKey.of(workload))
        return created

    def _refused(
        self, target: Target, cluster: str, resource: Resource, key: ObjectKey, workload: Json, error: ApiError
    ) -> ApiError:
        """Note that a worker refuses an object, and emit an event."""
        taken = isinstance(error, AlreadyExists)
        why = str(error).removeprefix(f"{cluster}: create {resource}: ")
        note = f'worker cluster "{cluster}" refuses {resource} "{key}": {error}'
        if taken:
            why = "its name is taken by an object that is not known as a copy of ours"
            note = (
                f'{resource} "{key}" exists on worker cluster "{cluster}" and is not known as a copy of ours: '
                "if it is somebody else's, rename or delete one of the two"
            )
        lasted = target.create_conflicts.met(resource, ObjectKey.of(workload), key, error, why)
        # Right after a lost reply the taken name is that of our own object, which the watch is about to show.
        if not error.retryable and (lasted >= TELL_AFTER or not taken):
            self._warn(workload, note)
        return AlreadyExists(note, status=error.status, reason=error.reason) if taken else error

    def _warn(self, workload: Json, note: str) -> None:
        self.events.emit(workload, type="Warning", reason="MultiKueue", action="MultiKueue", note=note)


async def _delete(target: Target, cache: MutationCache | None, resource: Resource, key: ObjectKey, uid: str) -> None:
    try:
        await target.client.delete(resource, key, uid=uid, propagation="Background")
    except NotFound:
        pass
    except Conflict:
        return  # another object has the name by now
    if cache is not None:
        cache.removed(key, uid)


async def _delete_workload(target: Target, effect: DeleteWorkload) -> None:
    if effect.held:
        patch: Json = {"metadata": {"uid": effect.uid, "finalizers": list(effect.finalizers) or None}}
        try:
            await target.client.merge_patch(WORKLOAD, effect.key, patch)
        except (NotFound, Conflict):
            return
    await _delete(target, target.workloads, WORKLOAD, effect.key, effect.uid)
