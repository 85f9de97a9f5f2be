"""One answer as it goes out: bounded in bytes and time, as quick as its reader, and never all in memory."""

from __future__ import annotations

import contextlib
from typing import Final

import anyio
import attrs
from aiohttp import web

from multikueue.core.model.outside_text import one_line, without_addresses
from multikueued.api_answers import NOTE

AHEAD: Final = 256 << 10
"""Bytes that are kept for a reader who is slow, before no more is read from the worker."""
STALL: Final = 60.0
"""Seconds that a reader may take nothing; then the answer ends."""
ENDING: Final = 10.0
"""Seconds in which an answer that is complete, or has reached a bound, is taken."""
GONE: Final = 1.0
"""Seconds between two looks whether there still is a reader."""


@attrs.define(eq=False)
class Outgoing:
    """A plain text that begins with its first line: until then an error can be answered."""

    request: web.Request
    most: int
    """Bytes of log lines; the server's own come on top."""
    sent: int = attrs.field(default=0, init=False)
    """Bytes that were written."""
    full: bool = attrs.field(default=False, init=False)
    """Whether it was cut off at `most`."""
    revoked: bool = attrs.field(default=False, init=False)
    """Whether the reader may not read it any more."""
    stalled: bool = attrs.field(default=False, init=False)
    response: web.StreamResponse | None = attrs.field(default=None, init=False)
    """None: nothing has been written yet."""
    over: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    """Set when no more can be written: it is full, or there is no reader."""
    _is_open: bool = attrs.field(default=False, init=False)
    """Whether what was written last is a line without a newline."""
    _told: int = attrs.field(default=0, init=False)
    _waiting: bytearray = attrs.field(factory=bytearray, init=False)
    _more: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _less: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    @property
    def begun(self) -> bool:
        """Whether there is something to read, so that no error can be answered any more."""
        return self.response is not None or bool(self._waiting)

    def show(self, text: str) -> None:
        """Write a line of a log, with its newline; the last one may have none."""
        line = text.encode(errors="surrogateescape")
        room = self.most - self._told
        if self.full:
            return
        self._told += len(line)
        self._append(line if len(line) <= room else line[:room] + b"\n")
        if len(line) > room:
            self.full = True
            self.over.set()

    def begin(self) -> None:
        """Begin the answer, though there may be nothing to read yet."""
        self._more.set()

    def note(self, text: str) -> None:
        """Write a line of the server's own: one, whatever words of a worker are in it, and without its address."""
        begin = "\n" if self._is_open else ""
        self._append(f"{begin}{NOTE}{without_addresses(one_line(text))}\n".encode(errors="replace"))

    async def pause(self) -> None:
        """Wait until the reader has caught up."""
        while len(self._waiting) > AHEAD:
            await self._less.wait()

    async def run(self) -> None:
        """Write what comes until cancelled, or until there is no reader."""
        while True:
            await self._more.wait()
            if not await self._write():
                self.stalled = True
                self.over.set()
                return

    async def watch_reader(self) -> None:
        """Notice a reader that is gone while there is nothing to write."""
        while True:
            transport = self.request.transport
            if transport is None or transport.is_closing():
                self.over.set()
                return
            await anyio.sleep(GONE)

    async def end(self) -> None:
        """Write what is left, and the end. A reader who does not take it in time is cut off."""
        with anyio.move_on_after(ENDING):
            if not self.stalled and await self._write():
                with contextlib.suppress(ConnectionError):
                    await (self.response or await self._begin()).write_eof()
                return
        if self.request.transport is not None:
            self.request.transport.abort()

    async def _write(self) -> bool:
        """Write what waits; returns whether the reader took it in time."""
        try:
            with anyio.fail_after(STALL):
                response = self.response or await self._begin()
                while self._waiting:
                    piece = bytes(self._waiting[:AHEAD])
                    del self._waiting[: len(piece)]
                    self.sent += len(piece)
                    await response.write(piece)
        except (TimeoutError, ConnectionError):
            return False
        finally:
            self._more = anyio.Event()
            self._less.set()
            self._less = anyio.Event()
        return True

    async def _begin(self) -> web.StreamResponse:
        headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
        self.response = response = web.StreamResponse(headers=headers)
        await response.prepare(self.request)
        return response

    def _append(self, line: bytes) -> None:
        self._waiting += line
        self._is_open = not line.endswith(b"\n")
        self._more.set()
