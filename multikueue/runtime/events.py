"""Kubernetes Events: short messages about an object. Reconciles never wait for them."""

from __future__ import annotations

import collections
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeAlias

import anyio
import attrs

from multikueue.core.machinery.lease import micro_time
from multikueue.core.model.kinds import EVENT
from multikueue.core.model.labels import MAX_EVENT_NOTE
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, shortened, uid
from multikueue.errors import AlreadyExists, ApiError
from multikueue.logs import get_logger
from multikueue.protocols import Writer
from multikueue.runtime.loop import loop_time

CAPACITY: Final = 1_000
"""Events that may wait, 1-2 MB: the bursts of a few seconds. Beyond it the oldest are dropped."""
SENDERS: Final = 4
"""Requests in flight: enough for some hundred events a second, little beside the work itself."""
ATTEMPTS: Final = 3
"""Tries per event. An API server that fails must not get more load from events."""
REQUEST_TIMEOUT: Final = 10.0
FLUSH_TIMEOUT: Final = 2.0
"""Seconds a shutdown waits for events that are not sent yet."""
REPEAT_AFTER: Final = 300.0
"""Seconds after which the same message about the same object is sent again."""
REMEMBERED: Final = 20_000
"""Messages remembered in order not to repeat them, 0.4 kB each. If a fleet has reason for more, each is forgotten
before it comes again."""

_MAX_WORD: Final = 128
"""What the API allows for reason, action and reportingInstance."""
_MAX_NAME: Final = 253

_Message: TypeAlias = tuple[str, str, str]

log = get_logger(__name__)


@attrs.frozen
class EventStatistics:
    """What became of the events."""

    waiting: int
    sent: int
    dropped: int
    """Never sent: too many waited, or the server would not have them."""
    repeated: int
    """Not sent because the same was said within `REPEAT_AFTER` seconds."""


@attrs.define(eq=False, repr=False)
class EventRecorder:
    """Sends events (`events.k8s.io/v1`) in the background.

    `emit` never waits and never fails. What cannot be sent is dropped and counted. `run` sends; what is emitted before
    it runs waits for it.
    """

    client: Writer
    reporting_controller: str
    """Who does the work, as Kubernetes wants it named: `kueue-workload-controller`."""
    instance: str
    """Which process: the pod's name."""
    clock: Callable[[], datetime]
    """The wall clock, for `eventTime`."""
    capacity: int = attrs.field(default=CAPACITY, kw_only=True)
    _waiting: collections.deque[tuple[Json, _Message]] = attrs.field(factory=collections.deque, init=False)
    _said: collections.OrderedDict[_Message, float] = attrs.field(factory=collections.OrderedDict, init=False)
    """When each message was last said, the oldest first."""
    _wakeup: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _count: int = attrs.field(default=0, init=False)
    _sent: int = attrs.field(default=0, init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _repeated: int = attrs.field(default=0, init=False)

    def __repr__(self) -> str:
        counts = f"{len(self._waiting)} waiting, {self._sent} sent, {self._dropped} dropped"
        return f"<EventRecorder {self.reporting_controller}: {counts}>"

    def emit(self, regarding: Json, type: str, reason: str, action: str, note: str) -> None:
        """Have an event sent.

        Args:
            regarding: the object it is about, as it came from the wire.
            type: `Normal` or `Warning`.
            reason: one word for machines, in CamelCase.
            action: what was done, in CamelCase.
            note: a sentence for people; cut to 1,024 bytes.
        """
        message = (uid(regarding), reason, note)
        if self._is_repeated(message):
            self._repeated += 1
            return
        event = self._event(regarding, note=shortened(note, MAX_EVENT_NOTE))
        event |= {"type": type, "reason": reason[:_MAX_WORD], "action": action[:_MAX_WORD]}
        self._waiting.append((event, message))
        if len(self._waiting) > self.capacity:
            self._drop(*self._waiting.popleft(), "too many events wait")
        self._wakeup.set()

    async def run(self) -> None:
        """Send until cancelled; then send what waits, for at most `FLUSH_TIMEOUT` seconds."""
        try:
            async with anyio.create_task_group() as senders:
                for _ in range(SENDERS):
                    senders.start_soon(self._keep_sending)
        finally:
            with anyio.move_on_after(FLUSH_TIMEOUT, shield=True):
                async with anyio.create_task_group() as senders:
                    for _ in range(SENDERS):
                        senders.start_soon(self._send_waiting)

    def statistics(self) -> EventStatistics:
        """A snapshot for metrics and tests."""
        return EventStatistics(len(self._waiting), self._sent, self._dropped, self._repeated)

    def _is_repeated(self, message: _Message) -> bool:
        now = loop_time()
        while self._said and (len(self._said) >= REMEMBERED or next(iter(self._said.values())) <= now - REPEAT_AFTER):
            self._said.popitem(last=False)
        if message in self._said:
            return True
        self._said[message] = now
        return False

    def _event(self, regarding: Json, *, note: str) -> Json:
        now = self.clock()
        self._count += 1
        metadata = regarding.get("metadata") or {}
        suffix = f".{int(now.timestamp() * 1e6):x}{self._count & 0xFFFF:04x}"
        name = (metadata.get("name") or "")[: _MAX_NAME - len(suffix)].rstrip("-.")
        reference = {
            "apiVersion": regarding.get("apiVersion"),
            "kind": regarding.get("kind"),
            **{field: metadata.get(field) for field in ("namespace", "name", "uid", "resourceVersion")},
        }
        return {
            "apiVersion": EVENT.gvk.api_version,
            "kind": EVENT.gvk.kind,
            # The API wants events about objects without a namespace to be in this one.
            "metadata": {"namespace": dig(metadata, "namespace") or "default", "name": name + suffix},
            "eventTime": micro_time(now),
            "reportingController": self.reporting_controller,
            "reportingInstance": self.instance[:_MAX_WORD],
            "regarding": {field: value for field, value in reference.items() if value},
            "note": note,
        }

    async def _keep_sending(self) -> None:
        while True:
            await self._send_waiting()
            # NO await between seeing nothing to send and waiting: an emit in between would be missed.
            if self._wakeup.is_set():
                self._wakeup = anyio.Event()
            await self._wakeup.wait()

    async def _send_waiting(self) -> None:
        while self._waiting:
            entry = self._waiting.popleft()
            try:
                await self._settle(*entry)
            except anyio.get_cancelled_exc_class():
                self._waiting.appendleft(entry)  # its last chance is the flush
                raise

    async def _settle(self, event: Json, message: _Message) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with anyio.fail_after(REQUEST_TIMEOUT):
                    await self.client.create(EVENT, event)
            except AlreadyExists:
                pass  # an earlier try succeeded, and its answer was lost
            except (ApiError, TimeoutError) as error:
                if attempt == ATTEMPTS or (isinstance(error, ApiError) and not error.retryable):
                    self._drop(event, message, str(error) or "no answer in time")
                    return
                await anyio.sleep(max(2.0**attempt, getattr(error, "retry_after", None) or 0.0))
                continue
            self._sent += 1
            return

    def _drop(self, event: Json, message: _Message, why: str) -> None:
        self._dropped += 1
        self._said.pop(message, None)
        log.info("event dropped", error=why, note=event["note"], dropped=self._dropped)
