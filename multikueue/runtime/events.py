"""Kubernetes Events: short messages about an object. Reconciles never wait for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Final

import anyio
import attrs

from multikueue.core.machinery.fair_keys import FairKeys
from multikueue.core.machinery.lease import micro_time
from multikueue.core.model.kinds import EVENT
from multikueue.core.model.labels import FINDING_LABEL, MAX_EVENT_NOTE, ToldFinding
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, namespace_of, shortened, uid
from multikueue.errors import AlreadyExists, ApiError, NotFound
from multikueue.logs import get_logger
from multikueue.protocols import Writer
from multikueue.runtime.event_series import INTERVAL, SERIES_ENDS, Series, SeriesMemory
from multikueue.runtime.loop import loop_time

CAPACITY: Final = 1_000
"""Events that may wait, 1-2 MB: the bursts of a few seconds. Beyond it the oldest of the namespace that has most are
dropped."""
SENDERS: Final = 4
"""Requests in flight: enough for some hundred events a second, little beside the work itself."""
ATTEMPTS: Final = 3
"""Tries per event. An API server that fails must not get more load from events."""
REQUEST_TIMEOUT: Final = 10.0
FLUSH_TIMEOUT: Final = 2.0
"""Seconds a shutdown waits for events that are not sent yet."""

_MAX_WORD: Final = 128
"""What the API allows for reason, action and reportingInstance."""
_MAX_NAME: Final = 253

log = get_logger(__name__)


@attrs.frozen
class EventStatistics:
    """What became of the events."""

    waiting: int
    sent: int
    dropped: int
    """Never sent: too many waited, or the server would not have them."""
    repeated: int
    """Said before, and counted on the Event that says so."""


@attrs.define(eq=False, repr=False)
class EventRecorder:
    """Sends events (`events.k8s.io/v1`) in the background.

    `emit` never waits and never fails. What cannot be sent is dropped and counted. What only repeats the latest message
    about an object is counted on that Event, as a series. `run` sends; what is emitted before
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
    _waiting: FairKeys[Series] = attrs.field(factory=FairKeys, init=False)
    """By namespace, which take turns: who has many to wait delays, and crowds out, its own."""
    _said: SeriesMemory = attrs.field(factory=SeriesMemory, init=False)
    _wakeup: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _count: int = attrs.field(default=0, init=False)
    _sent: int = attrs.field(default=0, init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _repeated: int = attrs.field(default=0, init=False)

    def __repr__(self) -> str:
        counts = f"{len(self._waiting)} waiting, {self._sent} sent, {self._dropped} dropped"
        return f"<EventRecorder {self.reporting_controller}: {counts}>"

    def emit(
        self,
        regarding: Json,
        type: str,
        reason: str,
        action: str,
        note: str,
        related: Json | None = None,
        annotations: Mapping[str, str] = MappingProxyType({}),
        finding: ToldFinding | None = None,
    ) -> None:
        """Have an event sent.

        Args:
            regarding: the object it is about, as it came from the wire.
            type: `Normal` or `Warning`.
            reason: one word for machines, in CamelCase.
            action: what was done, in CamelCase.
            note: a sentence for people; cut to 1,024 bytes.
            related: a reference to another object that it is about.
            annotations: what programs read of it. Of a series, that of the last time.
            finding: by which programs find such events; None: it is for people only.
        """
        message, now = (namespace_of(regarding), uid(regarding), type, reason, note), loop_time()
        series = self._said.repeated(message, now, micro_time(self.clock()))
        if series is not None:
            self._repeated += 1
            series.annotate(annotations)
            if series.due(now):
                self._enqueue(series)
            return
        event = self._event(regarding, note=shortened(note, MAX_EVENT_NOTE))
        event |= {"type": type, "reason": reason[:_MAX_WORD], "action": action[:_MAX_WORD]}
        if related is not None:
            event["related"] = related
        if finding is not None:
            event["metadata"]["labels"] = {FINDING_LABEL: str(finding)}
        series = Series(message, event, now)
        series.annotate(annotations)
        earlier = self._said.begin(series)
        if earlier is not None and earlier.due(now, interval=0.0):
            self._enqueue(earlier)  # nobody else writes its last count
        self._enqueue(series)

    async def run(self) -> None:
        """Send until cancelled; then send what waits, for at most `FLUSH_TIMEOUT` seconds."""
        try:
            async with anyio.create_task_group() as senders:
                senders.start_soon(self._keep_counting)
                for _ in range(SENDERS):
                    senders.start_soon(self._keep_sending)
        finally:
            self._enqueue_due(interval=0.0)
            with anyio.move_on_after(FLUSH_TIMEOUT, shield=True):
                async with anyio.create_task_group() as senders:
                    for _ in range(SENDERS):
                        senders.start_soon(self._send_waiting)

    def statistics(self) -> EventStatistics:
        """A snapshot for metrics and tests."""
        return EventStatistics(len(self._waiting), self._sent, self._dropped, self._repeated)

    def _enqueue(self, series: Series) -> None:
        self._wait(series)
        if len(self._waiting) > self.capacity:
            self._drop(self._waiting.crowd_out(), "too many events wait")
        self._wakeup.set()

    def _wait(self, series: Series, at: float = 0.0) -> None:
        series.queued = True
        self._waiting.add(series, namespace_of(series.event), at)

    def _enqueue_due(self, interval: float = INTERVAL) -> None:
        for series in self._said.due(loop_time(), interval):
            self._enqueue(series)

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

    async def _keep_counting(self) -> None:
        while True:
            await anyio.sleep(INTERVAL)
            self._enqueue_due()

    async def _keep_sending(self) -> None:
        while True:
            await self._send_waiting()
            # NO await between seeing nothing to send and waiting: an emit in between would be missed.
            if self._wakeup.is_set():
                self._wakeup = anyio.Event()
            await self._wakeup.wait()

    async def _send_waiting(self) -> None:
        while (series := self._waiting.take()) is not None:
            try:
                await self._settle(series)
            except anyio.get_cancelled_exc_class():
                self._wait(series, at=-1.0)  # before all others: its last chance is the flush
                raise
            if series.due(loop_time()):
                self._enqueue(series)  # it was repeated meanwhile

    async def _settle(self, series: Series) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            count = series.count
            try:
                with anyio.fail_after(REQUEST_TIMEOUT):
                    await self._write(series)
            except (ApiError, TimeoutError) as error:
                if attempt == ATTEMPTS or (isinstance(error, ApiError) and not error.retryable):
                    self._drop(series, str(error) or "no answer in time")
                    return
                await anyio.sleep(max(2.0**attempt, getattr(error, "retry_after", None) or 0.0))
                continue
            series.written, series.queued = count, False
            self._sent += 1
            return

    async def _write(self, series: Series) -> None:
        if series.written:
            series.patched_at = loop_time()
            try:
                await self.client.merge_patch(EVENT, ObjectKey.of(series.event), series.patch)
                return
            except NotFound:
                series.written = 0  # API servers keep Events for an hour
        with suppress(AlreadyExists):  # an earlier try succeeded, and its answer was lost
            await self.client.create(EVENT, series.whole)

    def _drop(self, series: Series, why: str) -> None:
        self._dropped += 1
        series.queued = False
        # Without the permission to patch, a series is a new Event now and then.
        if not series.written or series.began_at <= loop_time() - SERIES_ENDS:
            self._said.forget(series)
        log.info("event dropped", error=why, note=series.event["note"], dropped=self._dropped)
