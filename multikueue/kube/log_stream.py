"""Reads the log of a container line by line, with a bound on each line.

A container writes what it likes, so no line is kept that is longer than `MAX_LINE`: it is cut, and what follows of it
is dropped as it comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import aiohttp
import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.kube.error_mapping import ErrorMapping

MAX_LINE: Final = 64 << 10
"""Bytes of a line that are kept, its time included. Container runtimes split lines of more than 16 KiB themselves."""
IDLE: Final = 300.0
"""Seconds without a byte after which a log that is followed is asked for again: a connection may be dead."""
CUT: Final = " … (cut)"
"""What stands at the end of a line that is cut."""


@attrs.frozen
class LogLine:
    """One line of a log."""

    text: str
    """Without its time and its end."""
    time: str = ""
    """When the node got it, as the server writes it; empty: it did not say."""


@attrs.define
class LineCutter:
    """Cuts a stream of bytes into lines, and long lines short."""

    limit: int = MAX_LINE
    _kept: bytearray = attrs.field(factory=bytearray, init=False)
    _long: bool = attrs.field(default=False, init=False)

    def feed(self, piece: bytes) -> Iterator[LogLine]:
        """The lines that end in this piece."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._keep(end)
            yield self._take()
        self._keep(rest)

    def rest(self) -> Iterator[LogLine]:
        """What is left at the end of the stream: a line without an end."""
        if self._kept:
            yield self._take()

    def _keep(self, part: bytes) -> None:
        room = self.limit - len(self._kept)
        self._long = self._long or len(part) > room
        self._kept += part[:room]

    def _take(self) -> LogLine:
        text = self._kept.decode(errors="replace").rstrip("\r") + (CUT if self._long else "")
        self._kept.clear()
        self._long = False
        return split_time(text)


def split_time(text: str) -> LogLine:
    """Take the time off a line, if it begins with one."""
    time, space, told = text.partition(" ")
    if space and time[:4].isdecimal() and parse_timestamp(time) is not None:
        return LogLine(told, time)
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
        on_line: told of each line.
        pause: awaited before more is read: a slow reader of the lines slows the stream down.

    Raises:
        ApiError: the connection broke, or was silent for too long.
    """
    cutter, pieces = LineCutter(), response.content.iter_any()
    while True:
        with mapped:
            piece = await anext(pieces, None)
        if piece is None:
            break
        for line in cutter.feed(piece):
            on_line(line)
        await pause()
    for line in cutter.rest():
        on_line(line)
