"""Events (`events.k8s.io`), sent by a task of their own: nobody waits for them, and a lost one does no harm."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

import anyio
import attrs

from multikueue.core.model.kinds import EVENT
from multikueue.core.model.labels import MAX_EVENT_NOTE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import shortened, uid
from multikueue.errors import ApiError
from multikueue.logs import get_logger
from multikueue.protocols import Writer
from multikueue.sandbox.kueue.effects import Note

log = get_logger(__name__)

_BACKLOG = 1_000  # unsent events kept; more than that only piles up if the server is away
_REMEMBERED = 10_000  # objects whose last note is remembered


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
