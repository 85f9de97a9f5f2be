"""Perform what was decided: one request to the API server, then the events (`events.k8s.io`).

A task of their own sends the events: nobody waits for them, and a lost one does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import anyio
import attrs

from multikueue.core.model.kinds import EVENT
from multikueue.core.model.labels import MAX_EVENT_NOTE
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import shortened, uid
from multikueue.errors import ApiError, NotFound
from multikueue.logs import get_logger
from multikueue.protocols import Writer
from multikueue.sandbox.kueue.effects import ApplyStatus, Create, Delete, Note, Replace, Request, Step

_BACKLOG = 1_000  # unsent events kept; more than that only piles up if the server is away
_REMEMBERED = 10_000  # objects whose last note is remembered


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


log = get_logger(__name__)


@attrs.define(eq=False)
class Recorder:
    """Takes notes and makes events of them. A note that repeats the last one of its object and reason is dropped."""

    client: Writer
    clock: Callable[[], datetime]
    enabled: bool = True
    _backlog: deque[Json] = attrs.field(factory=lambda: deque(maxlen=_BACKLOG), init=False)
    _said: dict[tuple[str, str], str] = attrs.field(factory=dict, init=False)
    _work: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def record(self, note: Note, *, once: bool = False) -> None:
        """Send it when there is time.

        Args:
            once: not again as long as its object's notes of this reason do not change.
        """
        said = (uid(note.regarding), note.reason)
        if not self.enabled or (once and self._said.get(said) == note.note):
            return
        self._said[said] = note.note
        while len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]
        self._backlog.append(event(note, self.clock()))
        self._work.set()

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            while self._backlog:
                await self._send(self._backlog.popleft())
            self._work = anyio.Event()
            await self._work.wait()

    async def _send(self, obj: Json) -> None:
        try:
            await self.client.create(EVENT, obj)
        except ApiError as error:
            log.debug("event lost", reason=obj["reason"], error=str(error))


def event(note: Note, now: datetime) -> Json:
    """The event object for a note."""
    metadata = note.regarding["metadata"]
    about = {"kind": note.regarding["kind"], "apiVersion": note.regarding["apiVersion"]}
    about.update(
        {field: metadata[field] for field in ("namespace", "name", "uid", "resourceVersion") if metadata.get(field)}
    )
    return {
        "apiVersion": EVENT.gvk.api_version,
        "kind": EVENT.gvk.kind,
        "metadata": {"generateName": f"{metadata['name']}-", "namespace": metadata.get("namespace") or "default"},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": note.controller,
        "reportingInstance": f"{note.controller}-sandbox",
        "action": note.reason,
        "reason": note.reason,
        "note": shortened(note.note, MAX_EVENT_NOTE),
        "regarding": about,
        "type": note.type,
    }
