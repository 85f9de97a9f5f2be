"""Executing what decisions ask for: one request each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import anyio
import attrs

from multikueue.core.effects import Announce, Apply, Create, Delete, Effect, Patch, Write
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version, uid
from multikueue.errors import ApiError, NotFound
from multikueue.protocols import Subresource, Writer
from multikueue.runtime.events import EventRecorder

APPLIES: Final = 8
"""Objects that are applied at a time."""

Failed: TypeAlias = tuple[Write, ApiError]
"""The effect that failed, and why."""
OnWritten: TypeAlias = Callable[[Write, Json], None]


@attrs.frozen
class Executor:
    """Executes effects one after the other; what is applied, which is independent, at the same time."""

    client: Writer
    events: EventRecorder
    writers: Mapping[Resource, Writer] = attrs.field(factory=dict)
    """Who writes a kind in place of `client`."""

    async def execute(self, effects: Iterable[Effect], on_written: OnWritten = lambda _, __: None) -> Failed | None:
        """Execute effects up to the first that fails; that one is returned.

        Args:
            effects: in their order.
            on_written: called after each write with the object as the server has it now, or had it before.
        """
        applied = list[Apply]()
        for effect in effects:
            if isinstance(effect, Apply):
                applied.append(effect)
                continue
            if isinstance(effect, Announce):
                self.events.emit(effect.regarding, effect.type, effect.reason, "Placement", effect.note)
                continue
            try:
                await self._execute(effect, on_written)
            except ApiError as error:
                # What is gone already has an event, which leads to the next decision.
                return None if isinstance(error, NotFound) and isinstance(effect, Patch) else (effect, error)
        return await self._apply(applied, on_written)

    async def _execute(self, effect: Create | Patch | Delete, on_written: OnWritten) -> None:
        client, resource, obj = self.writers.get(effect.resource, self.client), effect.resource, effect.object
        match effect:
            case Create():
                obj = await client.create(resource, obj)
            case Patch():
                part: Subresource = "status" if effect.status else ""
                obj = await client.merge_patch(resource, ObjectKey.of(obj), effect.request, subresource=part)
            case Delete():
                key, version = ObjectKey.of(obj), resource_version(obj)
                try:
                    await client.delete(resource, key, uid=uid(obj), resource_version=version)
                except NotFound:
                    return
        on_written(effect, obj)

    async def _apply(self, effects: Iterable[Apply], on_written: OnWritten) -> Failed | None:
        room, failures = anyio.CapacityLimiter(APPLIES), list[Failed]()

        async def apply(effect: Apply) -> None:
            client, manager = self.writers.get(effect.resource, self.client), effect.field_manager
            try:
                async with room:
                    written = await client.apply(
                        effect.resource, effect.object, field_manager=manager, force=True, subresource="status"
                    )
                on_written(effect, written)
            except NotFound:
                return  # it is gone
            except ApiError as error:  # also a conflict: what has changed may be nothing that handlers listen to
                failures.append((effect, error))

        async with anyio.create_task_group() as tasks:
            for effect in effects:
                tasks.start_soon(apply, effect)
        return next(iter(failures), None)
