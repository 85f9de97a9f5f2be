"""Drive a watch: events as they come, bookmarks, the timeout, and the faults that concern watches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import anyio
import attrs

from multikueue.sandbox.apiserver.faults import (
    ConnectionLostError,
    CutWatch,
    ExpireWatch,
    Fault,
    Faults,
    SilenceWatch,
    WatchEffect,
)
from multikueue.sandbox.apiserver.status_errors import StatusError, expired
from multikueue.sandbox.apiserver.storage.watching import Emission, WatchCursor


class Sink(Protocol):
    """Where a watch's lines go: an HTTP response, or a callback."""

    async def events(self, emissions: Sequence[Emission]) -> None:
        """Send events."""

    async def bookmark(self, revision: int, *, initial_end: bool) -> None:
        """Send a bookmark; `initial_end` marks the end of the initial events."""

    async def failure(self, error: StatusError) -> None:
        """Send an ERROR event; it is the last."""


@attrs.define(eq=False)
class WatchStream:
    """One watch being served."""

    _cursor: WatchCursor
    _sink: Sink
    _faults: Faults
    _hit: Sequence[Fault]
    """What is to go wrong with it."""
    _timeout: float = attrs.field(kw_only=True)
    _bookmark_interval: float = attrs.field(kw_only=True)
    _sent: int = attrs.field(default=0, init=False)

    @property
    def _effects(self) -> list[WatchEffect]:
        return [fault.effect for fault in self._hit if isinstance(fault.effect, CutWatch | ExpireWatch | SilenceWatch)]

    async def run(self) -> None:
        """Serve until the timeout, or until the kind is gone.

        Raises:
            ConnectionLostError: a fault cut the stream.
        """
        started = anyio.current_time()
        end = started + self._timeout
        try:
            await self._send(self._cursor.start())
            await self._initial_end()
            await self._follow(started, end)
        except StatusError as error:
            await self._faults.reach()
            await self._sink.failure(error)

    async def _initial_end(self) -> None:
        options = self._cursor.options
        if options.initial_events and options.bookmarks:
            await self._faults.reach()
            await self._sink.bookmark(self._cursor.revision, initial_end=True)

    async def _follow(self, started: float, end: float) -> None:
        # The real server bookmarks about every minute, and about 2 s before the timeout.
        bookmark_at = min(started + self._bookmark_interval, max(started, end - 2))
        if not self._cursor.options.bookmarks:
            bookmark_at = math.inf
        while not self._cursor.finished:
            emissions = self._cursor.poll()
            await self._send(emissions)
            now = anyio.current_time()
            if now >= bookmark_at:
                await self._faults.reach()
                await self._sink.bookmark(self._cursor.revision, initial_end=False)
                bookmark_at = now + self._bookmark_interval
            if now >= end:
                return
            with anyio.move_on_after(min(end, bookmark_at) - now):
                await self._cursor.wait()

    async def _send(self, emissions: list[Emission]) -> None:
        allowed = emissions
        for effect in self._effects:
            allowed = allowed[: max(0, effect.after - self._sent)]
        if allowed:
            await self._faults.reach()
            await self._sink.events(allowed)
            self._sent += len(allowed)
        for effect in self._effects:
            if self._sent >= effect.after:
                await self._strike(effect)

    async def _strike(self, effect: WatchEffect) -> None:
        match effect:
            case CutWatch():
                raise ConnectionLostError("watch cut")
            case ExpireWatch():
                raise expired(self._cursor.revision, self._cursor.revision)
            case SilenceWatch():
                await anyio.sleep_forever()
