"""Reads the log of a container line by line, with a bound on each line.

A container writes what it likes, so no line is kept that is longer than `MAX_LINE`: it is cut, and what follows of it
is dropped as it comes. Nothing is read ahead of who is shown the lines, and what is compressed is not read at all: a
worker could make any number of lines of a few bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import aiohttp
import attrs
from anyio.lowlevel import checkpoint

from multikueue.core.model.conditions import parse_timestamp
from multikueue.errors import Unreadable
from multikueue.kube.http.error_mapping import ErrorMapping, where

MAX_LINE: Final = 64 << 10
"""Bytes of a line that are kept, its time included. Container runtimes split lines of more than 16 KiB themselves."""
IDLE: Final = 300.0
"""Seconds without a byte after which a log that is followed is asked for again: a connection may be dead."""
TURN: Final = 64
"""Lines that are shown before other tasks have a turn."""
CUT: Final = " … (cut)"
"""What stands at the end of a line that is cut."""


@attrs.frozen
class LogLine:
    """One line of a log."""

    text: str
    """Without its time and its newline. Bytes that are no UTF-8 are in it as Python's `surrogateescape` has them."""
    time: str = ""
    """When the node got it, as the server writes it; empty: it did not say."""
    is_whole: bool = True
    """Whether a newline has ended it; the last one of a log may have none."""


@attrs.define
class LineCutter:
    """Cuts a stream of bytes into lines, and long lines short."""

    limit: int = MAX_LINE
    _kept: bytearray = attrs.field(factory=bytearray, init=False)
    _long: bool = attrs.field(default=False, init=False)

    def feed(self, piece: bytes) -> Iterator[LogLine]:
        """The lines that end in this piece."""
        begin = 0
        while (end := piece.find(b"\n", begin)) >= 0:
            self._keep(piece[begin:end])
            yield split_time(self._take())
            begin = end + 1
        self._keep(piece[begin:])

    def rest(self) -> Iterator[LogLine]:
        """What is left at the end of the stream: a line without an end."""
        if self._kept:
            yield attrs.evolve(split_time(self._take()), is_whole=False)

    def _keep(self, part: bytes) -> None:
        room = self.limit - len(self._kept)
        self._long = self._long or len(part) > room
        self._kept += part[:room]

    def _take(self) -> str:
        text = self._kept.decode(errors="surrogateescape") + (CUT if self._long else "")
        self._kept.clear()
        self._long = False
        return text


def split_time(text: str) -> LogLine:
    """Take the time off a line, if it begins with one."""
    time, space, line = text.partition(" ")
    if space and time[:4].isdecimal() and parse_timestamp(time) is not None:
        return LogLine(line, time)
    return LogLine(text)


async def at_once() -> None:
    """What waits for nobody; see `read_log`."""


async def read_log(
    response: aiohttp.ClientResponse,
    mapped: ErrorMapping,
    on_line: Callable[[LogLine], None],
    pause: Callable[[], Awaitable[None]] = at_once,
) -> None:
    """Read a log to its end.

    Args:
        response: the stream.
        mapped: turns what fails into our errors.
        on_line: called with each line.
        pause: awaited after each line: a slow reader of the lines slows the stream down.

    Raises:
        Unreadable: it is compressed.
        ApiError: the connection broke, or was silent for too long.
    """
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise Unreadable(f"{where(mapped.cluster, mapped.request)}: the log is compressed, which was not asked for")
    cutter, pieces, shown = LineCutter(), response.content.iter_any(), 0
    piece: bytes | None = b""
    while piece is not None:
        with mapped:
            piece = await anext(pieces, None)
        for line in cutter.rest() if piece is None else cutter.feed(piece):
            on_line(line)
            await pause()
            shown += 1
            if shown % TURN == 0:
                await checkpoint()
