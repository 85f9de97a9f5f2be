"""Doing what was decided: one request to the API server, then the events."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs

from multikueue.core.model.names import Json, Resource
from multikueue.errors import NotFound
from multikueue.protocols import Writer
from multikueue.sandbox.kueue.effects import ApplyStatus, Create, Delete, Replace, Request, Step
from multikueue.sandbox.kueue.recording import Recorder


@attrs.define(eq=False)
class Performer:
    """Writes to one API server and tells what came back."""

    client: Writer
    recorder: Recorder
    observe: Callable[[Resource, Json], Any]
    """Called with the answer to each write, so that nobody decides from what was before it."""

    async def perform(self, step: Step) -> None:
        """Write, observe the answer, record the events; before that, do the same for the step that goes first.

        Raises:
            ApiError: the write failed; nothing was recorded of it.
        """
        if step.first is not None:
            await self.perform(step.first)
        answer = await self._send(step.request)
        if answer is not None:
            self.observe(step.request.resource, answer)
        for note in step.notes:
            self.recorder.record(note)

    async def _send(self, request: Request) -> Json | None:
        match request:
            case Create(resource, obj):
                return await self.client.create(resource, typed(resource, obj))
            case Replace(resource, obj, subresource):
                return await self.client.replace(resource, typed(resource, obj), subresource=subresource)
            case ApplyStatus(resource, obj, manager):
                return await self.client.apply(resource, obj, field_manager=manager, subresource="status")
            case Delete(resource, key, uid):
                with suppress(NotFound):  # that is what was wanted
                    await self.client.delete(resource, key, uid=uid)
                return None


def typed(resource: Resource, obj: Json) -> Json:
    """The object with `apiVersion` and `kind`, which items of lists of builtin kinds lack."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind, **obj}
