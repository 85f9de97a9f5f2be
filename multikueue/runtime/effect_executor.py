"""Carrying out effects: which request each of them is, and what is remembered of the answer."""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, ClusterName, Json, ObjectKey, Resource
from multikueue.core.model.workloads import cluster_queue
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
from multikueue.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, NotSent
from multikueue.protocols import ApiClient, Subresource
from multikueue.runtime.create_conflicts import CreateConflicts
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.hooks import ManagerHook
from multikueue.runtime.mutation_cache import MutationCache

REFUSALS: Final = (Forbidden, Invalid, NotFound)
"""A worker's answers that stay as they are until somebody changes something there: a permission, a webhook, a quota, a
namespace. The user is told, and other workers are offered the job."""

TELL_AFTER: Final = 1.0
"""Seconds for which a name has been taken by an object we do not see, until the user is told."""


class Target(Protocol):
    """A cluster effects can be carried out on."""

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
        """Names that are taken there."""
        ...

    def cache_of(self, gvk: GVK) -> MutationCache | None:
        """Its jobs of one kind."""
        ...


class Targets(Protocol):
    """Finds the clusters."""

    def place(self, cluster: ClusterName) -> Target | None:
        """The cluster of that name; None if it is not connected any more."""
        ...


@attrs.define(eq=False)
class EffectExecutor:
    """Carries out effects."""

    places: Targets
    events: EventRecorder
    hook: ManagerHook | None = None

    async def perform(self, workload: Json | None, effects: tuple[Effect, ...]) -> None:
        """Carry out effects one after the other, up to the first that fails.

        Args:
            workload: the manager's Workload they are for; None if it is gone.
            effects: of one cluster.

        Raises:
            ApiError: an effect failed; those after it were not tried.
        """
        for effect in effects:
            await self._perform(workload, effect)

    async def _perform(self, workload: Json | None, effect: Effect) -> None:
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
                place = self.places.place(effect.cluster)
                if place is None:
                    raise NotSent(f'cluster "{effect.cluster}" is not connected')
                await self._write(place, effect, workload)

    async def _write(self, place: Target, effect: Effect, workload: Json | None) -> None:
        match effect:
            case ApplyStatus(object=body, field_manager=manager):
                written = await place.client.apply(WORKLOAD, body, field_manager=manager, subresource="status")
                place.workloads.wrote(written)
            case PatchJobStatus() | PatchJob():
                await self._patch_job(place, effect, workload)
            case CreateWorkload():
                await self._create_workload(place, effect, workload)
            case CreateJob(resource=resource):
                _note(place, resource, await self._create(place, effect, resource, workload))
            case PatchWorkload(key=key, patch=patch):
                place.workloads.wrote(await place.client.merge_patch(WORKLOAD, key, patch))
            case DeleteJob(resource=resource, key=key, uid=uid):
                await _delete(place, place.cache_of(resource.gvk), resource, key, uid)
            case DeleteWorkload():
                await _delete_workload(place, effect)

    async def _patch_job(self, place: Target, effect: PatchJobStatus | PatchJob, workload: Json | None) -> None:
        behind_status = isinstance(effect, PatchJobStatus) and effect.subresource
        part: Subresource = "status" if behind_status else ""
        resource, key = effect.resource, effect.key
        try:
            written = await place.client.merge_patch(resource, key, effect.patch, subresource=part)
            if (cache := place.cache_of(resource.gvk)) is not None:
                cache.patched(effect.patch, written)
        except (Forbidden, Invalid, NotFound) as error:
            # That the job is gone is no news. That its kind has no such part is: its CRD came after we asked for it.
            if workload is not None and not (isinstance(error, NotFound) and f'"{key.name}"' in str(error)):
                where = f'worker cluster "{effect.cluster}"' if effect.cluster else "the manager cluster"
                what = "the status of " if isinstance(effect, PatchJobStatus) else "a change of "
                self._warn(workload, f'{where} refuses {what}{resource} "{key}": {error}')
            raise

    async def _create_workload(self, place: Target, effect: CreateWorkload, workload: Json | None) -> None:
        place.workloads.wrote(await self._create(place, effect, WORKLOAD, workload))
        if self.hook is not None and workload is not None:
            self.hook.dispatched(cluster_queue(workload), effect.cluster)

    async def _create(
        self, place: Target, effect: CreateWorkload | CreateJob, resource: Resource, workload: Json | None
    ) -> Json:
        key = ObjectKey.of(effect.object)
        try:
            return await place.client.create(resource, effect.object)
        except AlreadyExists as error:
            note = (
                f'{resource} "{key}" exists on worker cluster "{effect.cluster}" and is not known as a copy of ours: '
                "if it is somebody else's, rename or delete one of the two"
            )
            # Right after a lost reply it is our own, and the watch is about to show it: that is no news.
            if workload is not None and place.create_conflicts.met(resource, ObjectKey.of(workload), key) >= TELL_AFTER:
                self._warn(workload, note)
            raise AlreadyExists(note, status=error.status, reason=error.reason) from error
        except REFUSALS as error:
            if workload is not None:
                place.create_conflicts.met(resource, ObjectKey.of(workload), key)
                self._warn(workload, f'worker cluster "{effect.cluster}" refuses {resource} "{key}": {error}')
            raise

    def _warn(self, workload: Json, note: str) -> None:
        self.events.emit(workload, type="Warning", reason="MultiKueue", action="MultiKueue", note=note)


def _note(place: Target, resource: Resource, written: Json) -> None:
    cache = place.cache_of(resource.gvk)
    if cache is not None:
        cache.wrote(written)


async def _delete(place: Target, cache: MutationCache | None, resource: Resource, key: ObjectKey, uid: str) -> None:
    try:
        await place.client.delete(resource, key, uid=uid, propagation="Background")
    except NotFound:
        pass
    except Conflict:
        return  # another object has taken the name: it is not the one we saw
    if cache is not None:
        cache.removed(key, uid)


async def _delete_workload(place: Target, effect: DeleteWorkload) -> None:
    if effect.held:
        patch: Json = {"metadata": {"uid": effect.uid, "finalizers": list(effect.finalizers) or None}}
        try:
            await place.client.merge_patch(WORKLOAD, effect.key, patch)
        except (NotFound, Conflict):
            return
    await _delete(place, place.workloads, WORKLOAD, effect.key, effect.uid)
