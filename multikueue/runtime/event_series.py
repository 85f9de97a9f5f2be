"""Which events only repeat what was said before: they go on with its series instead of making another Event.

Events are read in the order of their names, which is that in which they began: `kubectl describe` sorts by a time that
Events of today do not have. So a message that comes back after another one about the same object is a new Event: after
an eviction the newest line says "admitted" again. Two messages that take turns for long are folded as well.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from operator import itemgetter
from typing import Any, Final, TypeAlias

import attrs

from multikueue.core.machinery.shares import LatestOfEach
from multikueue.core.model.names import Json

SERIES_ENDS: Final = 300.0
"""Seconds after which a message that comes back is a new Event."""
INTERVAL: Final = 60.0
"""Seconds between two writes of a series. Its first repeat is written at once."""
REMEMBERED: Final = 8_000
"""Messages remembered, 2.5 kB each: 27 a second for as long as a series goes on. Beyond it the oldest of the namespace
that has most are forgotten: tenants choose how many jobs there are to be told of."""
ONE_TIME: Final = 0.5
"""Seconds within which things are said at one time: their order tells nothing."""
TURNS: Final = 20
"""Events with which messages about one object may take turns; then one more each `INTERVAL`."""

Message: TypeAlias = tuple[str, str, str, str, str]
"""Namespace and UID of the object, type, reason and note."""


def _latest() -> LatestOfEach[Any, Any]:
    return LatestOfEach(REMEMBERED, itemgetter(0))


@attrs.define(eq=False)
class Series:
    """One Event: what it says, and how often it was said."""

    message: Message
    event: Json
    """As it was first said."""
    said_at: float
    """On the loop's clock, the last time."""
    began_at: float = attrs.field(init=False)
    count: int = attrs.field(default=1, init=False)
    last: str = attrs.field(default="", init=False)
    """When it was said last, as the API writes it."""
    written: int = attrs.field(default=0, init=False)
    """The count that the API server knows; 0 before the Event is there."""
    patched_at: float | None = attrs.field(default=None, init=False)
    """When repeats were last written, or tried."""
    queued: bool = attrs.field(default=False, init=False)
    """Whether it waits to be sent, or is being sent."""

    def __attrs_post_init__(self) -> None:
        self.began_at = self.said_at

    def again(self, now: float, time: str) -> None:
        """It was said once more."""
        self.count, self.said_at, self.last = self.count + 1, now, time

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """What programs read of it: that of the last time counts."""
        if annotations:
            self.event["metadata"] = {**self.event["metadata"], "annotations": dict(annotations)}

    @property
    def whole(self) -> Json:
        """The Event, with its repeats so far."""
        return {**self.event, **self.patch, "metadata": self.event["metadata"]}

    @property
    def patch(self) -> Json:
        """What to write of the repeats; empty if there were none."""
        if self.count == 1:
            return {}
        annotations = self.event["metadata"].get("annotations")
        noted: Json = {"metadata": {"annotations": annotations}} if annotations else {}
        return {"series": {"count": self.count, "lastObservedTime": self.last}, **noted}

    def due(self, now: float, interval: float = INTERVAL) -> bool:
        """Whether repeats are to be written now."""
        if self.queued or not 1 <= self.written < self.count:
            return False
        return self.patched_at is None or self.patched_at + interval <= now


@attrs.define
class _About:
    """What was said about one object."""

    at: float
    """When something was said last."""
    latest: set[Message] = attrs.field(factory=set, init=False)
    """What was said last, at one time: a reconcile may say several things."""
    before: set[Message] = attrs.field(factory=set, init=False)
    """What was said at the time before that."""
    turns: float = attrs.field(default=TURNS, init=False)
    """How many more Events its messages may take turns with."""

    def comes_back(self, message: Message, now: float) -> bool:
        """Note that something is said; return whether other things were said since it was said last."""
        self.turns = min(TURNS, self.turns + (now - self.at) / INTERVAL)
        if now - self.at > ONE_TIME:
            self.before, self.latest = self.latest, set()
        again = message in self.before or message in self.latest
        self.latest.add(message)
        self.at = now
        return not again

    def take_turn(self) -> bool:
        """Whether a message that comes back may be a new Event."""
        self.turns -= 1 if (may := self.turns >= 1) else 0
        return may


@attrs.define(eq=False)
class SeriesMemory:
    """The series that go on."""

    _series: MutableMapping[Message, Series] = attrs.field(factory=_latest, init=False)
    """Those last said first come first."""
    _objects: MutableMapping[tuple[str, str], _About] = attrs.field(factory=_latest, init=False)
    """By namespace and UID, likewise."""

    def repeated(self, message: Message, now: float, time: str) -> Series | None:
        """The series that a message goes on with; None if it is to be a new Event: `begin` one then."""
        self._forget_old(now)
        object_ = message[:2]
        self._objects[object_] = about = self._objects.pop(object_, None) or _About(now)
        series = self._series.get(message)
        if about.comes_back(message, now) and series is not None and about.take_turn():
            return None
        if series is not None:
            series.again(now, time)
            self._series[message] = self._series.pop(message)
        return series

    def begin(self, series: Series) -> Series | None:
        """A message is said for the first time, or anew; return its earlier series."""
        earlier = self._series.pop(series.message, None)
        self._series[series.message] = series
        return earlier

    def forget(self, series: Series) -> None:
        """The next time it is a new Event."""
        if self._series.get(series.message) is series:
            del self._series[series.message]

    def due(self, now: float, interval: float = INTERVAL) -> list[Series]:
        """Those with repeats to be written."""
        return [series for series in self._series.values() if series.due(now, interval)]

    def _forget_old(self, now: float) -> None:
        ended = now - SERIES_ENDS
        while (message := next(iter(self._series), None)) and self._series[message].said_at <= ended:
            del self._series[message]
        while (object_ := next(iter(self._objects), None)) and self._objects[object_].at <= ended:
            del self._objects[object_]
