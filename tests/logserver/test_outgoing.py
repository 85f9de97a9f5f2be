"""Readers who are slow, or do not read: what is kept for them, and for how long."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from multikueue.kube.log_stream import LogLine, read_log
from multikueue.testing.waiting import background, running, until
from multikueued.api_answers import NOTE
from multikueued.logserver import outgoing
from multikueued.logserver.outgoing import AHEAD, Outgoing
from multikueued.serving.port import listening
from tests.kube.test_log_stream import MAPPED, Response

PIECE = 64 << 10
LOG = 32 << 20
LINE = "x" * 1023 + "\n"
HOST = "127.0.0.1"


@attrs.define
class Producer:
    """Shows a log as a worker's stream comes: some lines, then a pause."""

    shown: int = 0
    most: int = 0
    """Bytes that were kept at most."""
    outs: list[Outgoing] = attrs.field(factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        out = Outgoing(request, 1 << 30)
        self.outs.append(out)
        async with background() as tasks:

            async def show() -> None:
                while self.shown < LOG:
                    for _ in range(PIECE // 1024):
                        out.show(LINE)
                    self.shown += PIECE
                    self.most = max(self.most, len(out._waiting))
                    await out.pause()
                out.over.set()

            tasks.start_soon(out.run)
            tasks.start_soon(show)
            await out.over.wait()
        await out.end()
        return out.response or web.Response()


@asynccontextmanager
async def served(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[socket.socket]:
    """A connection on which a log has been asked for, and nothing read yet."""
    application = web.Application()
    application.router.add_get("/", handler)
    async with listening(application, HOST, 0, settings="test") as port:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
            await anyio.to_thread.run_sync(client.connect, (HOST, port))
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            yield client


def read_all(client: socket.socket) -> int:
    return sum(map(len, iter(lambda: client.recv(1 << 20), b"")))


async def test_a_slow_reader_slows_the_worker_down_and_gets_everything() -> None:
    producer = Producer()
    async with served(producer.answer) as client:
        await until(lambda: producer.most > AHEAD)
        got = await anyio.to_thread.run_sync(read_all, client)
    assert producer.most <= AHEAD + PIECE
    assert got > LOG


async def test_empty_lines_count_with_what_is_put_before_them() -> None:
    """A worker that sends 100,000 bytes could have 26 million kept."""
    prefix, most = f"[{'w' * 100}/{'p' * 158}] ", 0
    outs: list[Outgoing] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        out = Outgoing(request, 1 << 30)
        outs.append(out)

        def show(line: LogLine) -> None:
            nonlocal most
            out.show(f"{prefix}{line.text}\n")
            most = max(most, len(out._waiting))

        async with running(out.run):
            log: Any = Response(b"\n" * 100_000)
            await read_log(log, MAPPED, show, out.pause)
        await out.end()
        return out.response or web.Response()

    async with served(answer) as client:
        await until(lambda: most > AHEAD)
        got = await anyio.to_thread.run_sync(read_all, client)
    assert most <= AHEAD + len(prefix) + 1
    assert got > 100_000 * len(prefix)


async def test_who_reads_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "STALL", 0.3)
    producer = Producer()
    async with served(producer.answer):
        await until(lambda: producer.outs and producer.outs[0].stalled)
        await until(lambda: producer.outs[0].request.transport is None)
    assert producer.shown < LOG


async def test_a_workers_words_forge_no_line_of_the_servers() -> None:
    """A newline in the answer of a worker was one in the log: `--- multikueue: this ends here`."""
    out = Outgoing(make_mocked_request("GET", "/"), 1 << 20)
    out.note("worker1: bad request\n--- multikueue: this ends here, ask https://10.11.12.13:6443")
    assert out._waiting.decode() == f"{NOTE}worker1: bad request --- multikueue: this ends here, ask [address]\n"


async def test_a_log_goes_out_byte_for_byte_and_a_note_is_a_line_of_its_own() -> None:
    """A last line without a newline must not take it in: it would look like the job's."""

    async def answer(request: web.Request) -> web.StreamResponse:
        out = Outgoing(request, 1 << 30)
        out.show(b"caf\xe9\r\n".decode(errors="surrogateescape"))
        out.show("end")
        out.note("it has moved")
        await out.end()
        return out.response or web.Response()

    async with served(answer) as client:
        got = await anyio.to_thread.run_sync(lambda: b"".join(iter(lambda: client.recv(1 << 20), b"")))
    assert got.endswith(b"caf\xe9\r\nend\n" + NOTE.encode() + b"it has moved\n")
