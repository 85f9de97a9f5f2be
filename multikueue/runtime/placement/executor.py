"""Executing what a decision about a config asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import anyio
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json
from multikueue.core.placement.effects import Announce, ApplyEntry, Create, Delete, Effect, Patch
from multikueue.core.placement.settings import PLACEMENT_CONTROLLER
from multikueue.errors import ApiError, NotFound
from multikueue.protocols import Writer
from multikueue.runtime.events import EventRecorder

ENTRIES: Final = 8
"""Entries of Workloads that are written at a time."""

Failed: TypeAlias = tuple[Effect, ApiError]
"""The effect that failed, and why."""


@attrs.frozen
class PlacementExecutor:
    """Executes effects one after the other; the entries of Workloads, which are independent, at the same time."""

    client: Writer
    events: EventRecorder
    on_applied: Callable[[Json], None] = lambda _: None
    """Called with each Workload as the server has it after a write of its entry."""

    async def execute(self, effects: Iterable[Effect]) -> Failed | None:
        """Execute effects up to the first that fails; that one is returned."""
        entries = list[ApplyEntry]()
        for effect in effects:
            if isinstance(effect, ApplyEntry):
                entries.append(effect)
                continue
            try:
                await self._write(effect)
            except ApiError as error:
                return effect, error
        return await self._apply(entries)

    async def _write(self, effect: Effect) -> None:
        match effect:
            case Announce(regarding, kind, reason, note):
                self.events.emit(regarding, kind, reason, "Placement", note)
            case Create(resource, body):
                await self.client.create(resource, body)
            case Patch(resource, key, patch, status):
                await self.client.merge_patch(resource, key, patch, subresource="status" if status else "")
            case Delete(resource, key, uid, version):
                try:
                    await self.client.delete(resource, key, uid=uid, resource_version=version)
                except NotFound:
                    return

    async def _apply(self, entries: Iterable[ApplyEntry]) -> Failed | None:
        room, failures = anyio.CapacityLimiter(ENTRIES), list[Failed]()

        async def apply(effect: ApplyEntry) -> None:
            try:
                async with room:
                    applied = await self.client.apply(
                        WORKLOAD, effect.object, field_manager=PLACEMENT_CONTROLLER, force=True, subresource="status"
                    )
                self.on_applied(applied)
            except NotFound:
                return  # it is gone
            except ApiError as error:  # also a conflict: what has changed may be nothing that handlers listen to
                failures.append((effect, error))

        async with anyio.create_task_group() as tasks:
            for effect in entries:
                tasks.start_soon(apply, effect)
        return next(iter(failures), None)
