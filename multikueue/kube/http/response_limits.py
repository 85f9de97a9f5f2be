"""How much is read of an API server's answers: of one answer, of an event of a watch, and of all pages of a list.

Whoever may create objects on a worker decides how large they are and how many. A worker itself may send anything:
compressed zeros, or pages without an end. All of it would end in the memory of the one process that serves all workers.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

import aiohttp
import anyio
import anyio.lowlevel
import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.errors import Unreadable

MAX_OBJECT: Final = 6 * (3 << 19)
"""The longest JSON of an object in bytes. etcd refuses requests over 1.5 MiB; in JSON as API servers write it a
character such as `<` takes six bytes."""
MAX_LINE: Final = MAX_OBJECT + (64 << 10)
"""The longest event of a watch in bytes: an object, the names of fields, which etcd does not store for all kinds, and
what is around it."""
MAX_SCHEMAS: Final = 8 << 20
"""The longest OpenAPI document of one version of a group in bytes. Kueue's has two million."""

LARGE: Final = 64 << 10
"""Bytes of an answer beyond which the rest of it has its turn: as many are in memory for each of those that wait, and
twice as many in the stream's buffer. A server has up to 32 connections."""
LARGE_AT_ONCE: Final = 1
"""Answers of one server of which more than that is in memory: tenants choose how large objects are, and each connection
may have an answer. The others stay in the network meanwhile."""

PAGE_BYTES: Final = 8 << 20
"""Bytes of a page of several objects: 500 of 16 KiB. An answer may be larger, as it has to have room for the largest
object."""

BREATH: Final = 10
"""After so many lines of a watch that have come together others may run: handlers of one take 0.1 to 0.3 ms."""

_ADVICE: Final = "remove what is too much there, or raise the limit"


@attrs.frozen
class AnswerLimits:
    """How much is read of what one server answers. Beyond it the request fails with `Unreadable`.

    Parsed JSON takes about four times its bytes, and at worst twenty times.
    """

    answer_bytes: int = 16 << 20
    """Bytes of one answer, decompressed; room for the largest object. A page of a list that is larger is asked for
    again with fewer objects."""
    list_bytes: int = 128 << 20
    """Bytes of all pages of a list: 25,000 Jobs of 5 KiB."""
    list_pages: int = 1_000
    """Pages of a list. One has up to 500 objects. A request that looks for an object that cannot be decoded counts as a
    twentieth of one."""
    list_objects: int = 50_000
    """Objects of a list. It is also how many of one kind are kept of a worker."""


LISTS_UNLIMITED: Final = AnswerLimits(list_bytes=sys.maxsize, list_pages=sys.maxsize, list_objects=sys.maxsize)
"""For the manager's own API server, which is trusted: only pages are kept small, as tenants choose their objects."""


@attrs.define
class ListTally:
    """What has been read of one list so far."""

    limits: AnswerLimits
    where: str
    """The beginning of error messages: cluster, verb and resource."""
    pages: float = attrs.field(default=0.0, init=False)
    objects: int = attrs.field(default=0, init=False)
    bytes: int = attrs.field(default=0, init=False)

    @property
    def room(self) -> int:
        """How many bytes the next page may have.

        Raises:
            Unreadable: there may be no further page.
        """
        if self.pages >= self.limits.list_pages:
            raise too_much(self.where, f"the list has more than {self.limits.list_pages} pages")
        return min(self.limits.answer_bytes, self.limits.list_bytes - self.bytes)

    def check_bytes(self) -> None:
        """A page was too large. Smaller ones do not help if it is the whole list that is.

        Raises:
            Unreadable: the list has too many bytes.
        """
        if self.limits.list_bytes - self.bytes < self.limits.answer_bytes:
            raise too_much(self.where, f"the list has more than {self.limits.list_bytes} bytes")

    def add(self, size: int, objects: int, part: float = 1.0) -> None:
        """Count a page.

        Args:
            size: its bytes.
            objects: how many are in it.
            part: as how much of a page it counts.

        Raises:
            Unreadable: the list has too many objects.
        """
        self.pages += part
        self.bytes += size
        self.objects += objects
        if self.objects > self.limits.list_objects:
            raise too_much(self.where, f"the list has more than {self.limits.list_objects} objects")


@attrs.define
class StoreTally:
    """What of a kind an informer has read and is still there, object by object."""

    limits: AnswerLimits
    where: str
    """The beginning of error messages."""
    _sizes: dict[ObjectKey, int] = attrs.field(factory=dict, init=False)
    """By object, the bytes in which it was sent last; `_bytes` is the sum of these."""
    _bytes: int = attrs.field(default=0, init=False)

    def listed(self, sizes: dict[ObjectKey, int]) -> None:
        """All has been listed anew, with so many bytes each."""
        self._sizes, self._bytes = sizes, sum(sizes.values())

    def size_of(self, key: ObjectKey) -> int:
        """In how many bytes an object was sent last; 0: that is not known."""
        return self._sizes.get(key, 0)

    def check(self, objects: int, size: int = 0) -> None:
        """Raise `Unreadable` if there are more objects, or more bytes of them, than may be kept."""
        if objects > self.limits.list_objects:
            raise too_much(self.where, f"there are more than {self.limits.list_objects} objects")
        if size > self.limits.list_bytes:
            raise too_much(self.where, f"there are more than {self.limits.list_bytes} bytes of objects")

    def count(self, key: ObjectKey, size: int) -> None:
        """Raise `Unreadable` if there is more now than a list may have: a list shows whether it still is."""
        self._bytes += size - self._sizes.pop(key, 0)
        if size:
            self._sizes[key] = size
        self.check(0, self._bytes)


@attrs.frozen
class Answer:
    """An answer that was read completely."""

    status: int
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


def too_much(where: str, why: str) -> Unreadable:
    """The error for an answer beyond the limits."""
    return Unreadable(f"{where}: {why}: {_ADVICE}")


async def read_body(content: aiohttp.StreamReader, limit: int, where: str, turns: anyio.Semaphore) -> bytes:
    """Read an answer piece by piece. aiohttp decompresses at most 256 KiB ahead of us.

    Args:
        content: of the answer, whose headers have been read.
        limit: of its bytes, decompressed.
        where: the beginning of error messages.
        turns: the server's large answers have them.

    Raises:
        Unreadable: it has more bytes.
    """
    body = bytearray()
    with ExitStack() as turn:
        while piece := await content.readany():
            if len(body) <= LARGE < len(body) + len(piece):
                await turns.acquire()
                turn.callback(turns.release)
            body += piece
            if len(body) > limit:
                raise too_much(where, f"the answer has more than {limit} bytes")
        return bytes(body)


@attrs.define
class Lines:
    """Reads a watch line by line."""

    content: aiohttp.StreamReader
    where: str
    """The beginning of error messages."""
    _whole: deque[bytes] = attrs.field(factory=deque, init=False)
    _begun: bytearray = attrs.field(factory=bytearray, init=False)
    _given: int = attrs.field(default=0, init=False)
    """Lines since others could run."""

    async def next(self) -> bytes:
        """The next line with its end; what the server sent of a line before it ended the stream; empty: nothing.

        Raises:
            Unreadable: the line is too long.
        """
        self._given += 1
        if self._whole and self._given % BREATH == 0:
            await anyio.lowlevel.checkpoint()
        while not self._whole:
            piece = await self.content.readany()
            if not piece:
                self._whole.append(bytes(self._begun))
                self._begun.clear()
                continue
            *ends, begun = piece.split(b"\n")
            for end in ends:
                self._begun += end + b"\n"
                self._whole.append(bytes(self._begun))
                self._begun.clear()
            self._begun += begun
            if len(self._begun) > MAX_LINE or any(len(line) > MAX_LINE for line in self._whole):
                raise too_much(self.where, f"an event of the watch has more than {MAX_LINE} bytes")
        return self._whole.popleft()
