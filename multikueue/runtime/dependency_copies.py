"""Copies of what jobs need beside themselves: each is read on both sides, decided about, and written at most once."""

from __future__ import annotations

import contextlib
from typing import Final
from weakref import WeakValueDictionary

import anyio
import attrs
import orjson

from multikueue.core.model.dependencies import (
    MAX_COPIED,
    MAX_LOOKED_FOR,
    CopyStep,
    Dependency,
    Users,
    content_of,
    copy_for,
    decide,
    owning_patch,
    replacing_patch,
)
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import dig, reference_to, uid
from multikueue.core.model.workloads import is_finished
from multikueue.core.workload.effects import CheckDependencies, CreateDependencies, DependencyEffect, OwnDependencies
from multikueue.errors import Cause, Conflict, DependencyUnavailable, Forbidden, Invalid, NotFound
from multikueue.protocols import Reader, read
from multikueue.runtime.origin import coming_from
from multikueue.runtime.target import Target

MAX_CONTENT: Final = 1 << 20
"""Bytes of one copy, as JSON: what API servers take as a ConfigMap."""


@attrs.define(eq=False)
class DependencyCopies:
    """Does what effects ask for."""

    _locks: WeakValueDictionary[tuple[str, Resource, ObjectKey], anyio.Lock] = attrs.field(
        factory=WeakValueDictionary, init=False
    )
    """Jobs that share a copy take turns to own it: each patch replaces all owners."""

    async def supply(self, here: Reader, there: Target, effect: DependencyEffect, namespace: str, said: str) -> str:
        """Execute an effect.

        Args:
            here: the manager.
            there: the worker.
            effect: what to do.
            namespace: the job's on the manager.
            said: where copies come from; empty: they do not say it.

        Returns:
            The UID of the copy that owns what the job needs; empty if none has got to own it.

        Raises:
            DependencyUnavailable: the job cannot run there.
            ApiError: one of the two did not answer.
        """
        copied = [dependency for dependency in effect.dependencies if dependency.is_copied]
        if len(copied) > MAX_COPIED:
            why = f"it names more than {MAX_COPIED} objects that would have to be copied"
            raise DependencyUnavailable(why, Cause.NEED_TOO_MUCH)
        owner = None
        if isinstance(effect, OwnDependencies):
            owner = effect.owner
        elif isinstance(effect, CreateDependencies):
            owner = _reference(there, ObjectKey(effect.namespace, effect.workload))
        for dependency in (
            *copied,
            *[dependency for dependency in effect.dependencies if not dependency.is_copied][:MAX_LOOKED_FOR],
        ):
            key = ObjectKey(effect.namespace, dependency.name)
            lock = self._locks.setdefault((effect.cluster, dependency.resource, key), anyio.Lock())
            try:
                await _Case(here, there, effect, dependency, namespace, owner, said).settle(lock)
            except (Forbidden, Invalid, NotFound) as error:
                raise DependencyUnavailable(f"{dependency} cannot be had there: {error}", None) from error
        return "" if owner is None else str(owner["uid"])


@attrs.frozen
class _Case:
    """One dependency of one job."""

    here: Reader
    there: Target
    effect: DependencyEffect
    dependency: Dependency
    namespace: str
    owner: Json | None
    said: str

    @property
    def _about(self) -> dict[str, str]:
        return {"kind": self.dependency.kind, "name": self.dependency.name}

    @property
    def resource(self) -> Resource:
        return self.dependency.resource

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.effect.namespace, self.dependency.name)

    async def settle(self, lock: anyio.Lock) -> None:
        """Do what is to be done about it."""
        if not self.dependency.is_copied:
            await self._look()
        elif isinstance(self.effect, OwnDependencies):
            async with lock:
                copy = await read(self.there.client, self.resource, self.key)
                if copy is not None and self.effect.mark.made_of(self.dependency, copy):
                    await self._patch(owning_patch(copy, self.effect.owner))
        else:
            wanted = await self._wanted()
            async with lock:
                await self._bring(self.effect, wanted, await read(self.there.client, self.resource, self.key))

    async def _bring(self, effect: DependencyEffect, wanted: Json | None, copy: Json | None) -> None:
        """Make it or share it, or say why that cannot be."""
        users = self._users(copy)
        decision = decide(self.dependency, wanted, copy, effect.mark, users)
        if decision.step in (CopyStep.REFUSE, CopyStep.WAIT):
            about = {**self._about, "user": users.running}
            passing = decision.step is CopyStep.WAIT
            cause = Cause.NEED_GOING if passing else decision.cause
            raise DependencyUnavailable(decision.why, cause, about, passing=passing)
        if not isinstance(effect, CreateDependencies) or decision.step is CopyStep.LEAVE or self.owner is None:
            return
        assert wanted is not None, "what the manager does not have is left or refused"
        if decision.step is CopyStep.CREATE:
            made = copy_for(self.dependency, wanted, self.key, effect.mark, effect.origin, [self.owner])
            await self.there.client.create(self.resource, coming_from(made, self.said) if self.said else made)
        elif copy is not None:
            await self._patch(
                owning_patch(copy, self.owner)
                if decision.step is CopyStep.SHARE
                else replacing_patch(self.dependency, wanted, copy, effect.mark, self.owner)
            )

    async def _look(self) -> None:
        """Whether it is there, as far as that may be read: of a Secret no more than its metadata is asked for."""
        if not isinstance(self.effect, CheckDependencies) or not self.dependency.required:
            return
        with contextlib.suppress(Forbidden):
            if not await self.there.client.exists(self.resource, self.key):
                why = f"{self.dependency} is not there, and is never copied"
                raise DependencyUnavailable(why, Cause.NEED_NOT_COPIED, self._about)

    async def _wanted(self) -> Json | None:
        try:
            wanted = await read(self.here, self.resource, ObjectKey(self.namespace, self.dependency.name))
        except Forbidden as error:
            why = f"{self.dependency} cannot be read on the manager cluster: {error}"
            raise DependencyUnavailable(why, Cause.NEED_UNREAD, self._about) from error
        if wanted is not None and len(orjson.dumps(content_of(self.dependency.kind, wanted))) > MAX_CONTENT:
            why = f"{self.dependency} is larger than {MAX_CONTENT >> 20} MiB and is not copied"
            raise DependencyUnavailable(why, Cause.NEED_TOO_MUCH, self._about)
        return wanted

    async def _patch(self, patch: Json | None) -> None:
        if patch is None:
            return
        try:
            await self.there.client.merge_patch(self.resource, self.key, patch)
        except NotFound as error:  # its last owner went a moment ago: it is made anew
            raise Conflict(str(error)) from error

    def _users(self, copy: Json | None) -> Users:
        """Who uses a copy, by the caches."""
        present, running, own = False, "", self.owner["uid"] if self.owner is not None else ""
        for owner in dig(copy, "metadata", "ownerReferences") or ():
            gvk = GVK.of(owner.get("apiVersion") or "", owner.get("kind") or "")
            is_workload = (gvk.group, gvk.kind) == (WORKLOAD.gvk.group, WORKLOAD.gvk.kind)
            cache = self.there.workloads if is_workload else self.there.jobs.get(gvk)
            seen = cache.get(ObjectKey(self.effect.namespace, owner.get("name") or "")) if cache is not None else None
            if seen is not None and uid(seen) == owner.get("uid"):
                present = True
                if is_workload and not is_finished(seen) and uid(seen) != own:
                    running = running or str(owner["name"])
        return Users(present, running)


def _reference(there: Target, workload: ObjectKey) -> Json:
    """The reference to the Workload copy, which has just been made, or is seen."""
    copy = there.workloads.get(workload)
    if copy is None:
        raise Conflict(f"Workload {workload} is not there any more")
    return reference_to(copy, WORKLOAD.gvk)
