"""As much of SPDY/3.1 as kubectl speaks: a command that gives its input back in capitals, one that is run, a port."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Final

import anyio
import attrs

SPDY: Final = "SPDY/3.1"
_SYN_STREAM, _SYN_REPLY, _PING = 1, 2, 6
_FIN: Final = 1
_DICTIONARY: Final = Path(__file__).with_name("spdy_dictionary.bin").read_bytes()
"""With which SPDY compresses its headers; from its specification."""


@attrs.define(eq=False)
class Spdy:
    """The server's side of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    streams: dict[str, int] = attrs.field(factory=dict)
    """By their header `streamtype`."""
    _inflate: zlib._Decompress = attrs.field(factory=lambda: zlib.decompressobj(zdict=_DICTIONARY))
    _deflate: zlib._Compress = attrs.field(factory=lambda: zlib.compressobj(zdict=_DICTIONARY))

    async def frame(self) -> tuple[str, bytes, bool]:
        """The next one: the stream, its data, and whether that was all. Of a new stream there is no data yet."""
        while True:
            first, size = struct.unpack(">II", await self.reader.readexactly(8))
            flags, body = size >> 24, await self.reader.readexactly(size & 0xFFFFFF)
            if not first >> 31:
                return self._name(first), body, bool(flags & _FIN)
            if first & 0xFFFF == _SYN_STREAM:
                number = struct.unpack(">I", body[:4])[0]
                self.streams[self._headers(body[10:])["streamtype"]] = number
                headers = self._deflate.compress(b"\0\0\0\0") + self._deflate.flush(zlib.Z_SYNC_FLUSH)
                self._control(_SYN_REPLY, struct.pack(">I", number) + headers)
                return self._name(number), b"", bool(flags & _FIN)
            if first & 0xFFFF == _PING:
                self._control(_PING, body)

    def send(self, stream: str, data: bytes, *, end: bool = False) -> None:
        """Send data on a stream."""
        self.writer.write(struct.pack(">II", self.streams[stream], (_FIN if end else 0) << 24 | len(data)) + data)

    def _control(self, kind: int, body: bytes) -> None:
        self.writer.write(struct.pack(">HHI", 0x8003, kind, len(body)) + body)

    def _name(self, number: int) -> str:
        return next(name for name, known in self.streams.items() if known == number)

    def _headers(self, packed: bytes) -> dict[str, str]:
        raw, headers = self._inflate.decompress(packed), {}
        count, at = struct.unpack(">I", raw[:4])[0], 4
        for _ in range(count):
            words = []
            for _ in range(2):
                size = struct.unpack(">I", raw[at : at + 4])[0]
                words.append(raw[at + 4 : at + 4 + size].decode())
                at += 4 + size
            headers[words[0]] = words[1]
        return headers


async def capitals(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, streams: Set[str], code: int = 0
) -> None:
    """Run the command: it says `ready`, gives its input back, and ends with an exit code.

    Args:
        reader: what comes.
        writer: what goes.
        streams: those that it has, of stdin, stdout and stderr.
        code: the exit code.
    """
    spdy, stdin = Spdy(reader, writer), "stdin" in streams
    while not {"error", *streams} <= spdy.streams.keys():
        await spdy.frame()
    spdy.send("stdout", b"ready\n")
    while stdin:
        name, data, ended = await spdy.frame()
        if name == "stdin":
            spdy.send("stdout", data.upper())
            stdin = not ended
    await _end(spdy, streams, code)


async def run(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, streams: Set[str], command: Sequence[str], folder: Path
) -> None:
    """Run a command of this machine in a folder, as `kubectl cp` runs tar."""
    spdy, given, stdin = Spdy(reader, writer), b"", "stdin" in streams
    while not {"error", *streams} <= spdy.streams.keys():
        await spdy.frame()
    while stdin:
        name, data, ended = await spdy.frame()
        given, stdin = given + data, not (name == "stdin" and ended)
    with anyio.fail_after(20):
        done = await anyio.run_process(command, input=given, cwd=folder, check=False)
    for name, said in (("stdout", done.stdout), ("stderr", done.stderr)):
        if name in streams:
            spdy.send(name, said)
    await _end(spdy, streams, done.returncode)


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A port that gives back in capitals what comes, until it has come to its end."""
    spdy, ended = Spdy(reader, writer), False
    while not ended:
        name, data, ended = await spdy.frame()
        if name == "data":
            spdy.send("data", data.upper(), end=ended)
        else:
            ended = False
    await writer.drain()
    await reader.read()


async def _end(spdy: Spdy, streams: Set[str], code: int) -> None:
    cause = {"reason": "ExitCode", "message": str(code)}
    failure = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}
    said = {**failure, "message": f"exit code {code}"} if code else {"status": "Success"}
    spdy.send("error", json.dumps({"metadata": {}, **said}).encode(), end=True)
    for name in streams - {"stdin"}:
        spdy.send(name, b"", end=True)
    await spdy.writer.drain()
    await spdy.reader.read()  # until the other side has gone
