"""Lines of a log, with a bound on each."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from anyio.lowlevel import checkpoint

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Invalid, Unreadable
from multikueue.kube.http import requests
from multikueue.kube.http.error_mapping import ErrorMapping
from multikueue.kube.log_stream import CUT, TURN, LineCutter, LogLine, at_once, read_log, split_time
from multikueue.testing import running
from tests.kube.scripted import talking
from tests.kube.test_response_limits import packed

MAPPED = ErrorMapping("worker1", requests.get(POD, ObjectKey("default", "a")))


class Response:
    """Gives a log in pieces, and notes how many were asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self.headers: dict[str, str] = {}
        self.pieces = list(pieces)
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        while self.pieces:
            yield self.pieces.pop(0)


async def test_nothing_more_is_shown_before_a_slow_reader_is_ready() -> None:
    """Not even what has arrived already: a piece may have a hundred thousand lines."""
    response: Any = Response(b"a\nb\n", b"c\n", b"d")
    lines_read: list[str] = []
    left: list[tuple[int, int]] = []

    async def pause() -> None:
        left.append((len(lines_read), len(response.pieces)))

    await read_log(response, MAPPED, lambda line: lines_read.append(line.text), pause)
    assert lines_read == ["a", "b", "c", "d"]
    assert left == [(1, 2), (2, 2), (3, 1), (4, 0)]


async def test_a_piece_of_many_lines_does_not_keep_others_waiting() -> None:
    response: Any = Response(b"\n" * 100 * TURN)
    shown, turns = 0, 0

    async def others() -> None:
        nonlocal turns
        while True:
            await checkpoint()
            turns += 1

    def show(_: LogLine) -> None:
        nonlocal shown
        shown += 1

    async with running(others):
        await read_log(response, MAPPED, show, at_once)
    assert shown == 100 * TURN
    assert turns >= 99


async def test_a_log_that_is_compressed_is_not_read() -> None:
    """Of a few bytes it could be thousands of lines."""
    shown: list[LogLine] = []

    async def log(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity"
        return await packed(gzip.compress(b"\n" * 1_000_000))(request)

    async with talking(log) as (_, client):
        with pytest.raises(Unreadable, match="w1: get pods: the log is compressed"):
            await client.pod_log(ObjectKey("n", "a"), requests.LogQuery(), shown.append, on_open=at_once)
    assert shown == []


async def test_a_pod_without_a_node_is_not_taken_for_a_server_that_does_not_answer() -> None:
    """Nor for a log that is empty: a real server answers 204, before a container could start."""

    async def log(_: web.Request) -> web.StreamResponse:
        return web.Response(status=204)

    async with talking(log) as (_, client):
        with pytest.raises(Invalid, match="the pod has no node yet"):
            await client.pod_log(ObjectKey("n", "a"), requests.LogQuery(), print, on_open=at_once)


def lines(*pieces: bytes, limit: int = 100) -> list[str]:
    cutter = LineCutter(limit)
    lines = [line.text for piece in pieces for line in cutter.feed(piece)]
    return [*lines, *(line.text for line in cutter.rest())]


def test_lines_do_not_depend_on_how_they_arrive() -> None:
    text = b"one\n\ntwo \xc3\xa9\r\nthree"
    whole = lines(text)
    assert whole == ["one", "", "two \xe9\r", "three"]
    assert lines(*(text[i : i + 1] for i in range(len(text)))) == whole


def test_no_byte_is_lost() -> None:
    """A program may write another encoding, and no newline at the end."""
    log, cutter = b"caf\xe9\r\n\x00\xff\nend", LineCutter()
    lines = [*cutter.feed(log), *cutter.rest()]
    again = "".join(line.text + "\n" * line.is_whole for line in lines)
    assert again.encode(errors="surrogateescape") == log


def test_a_long_line_is_cut_and_the_next_is_whole() -> None:
    assert lines(b"a" * 6, b"a" * 6 + b"\nb\n", limit=10) == ["a" * 10 + CUT, "b"]
    assert lines(b"a" * 10 + b"\n", limit=10) == ["a" * 10]


def test_nothing_is_kept_of_what_is_beyond_the_bound() -> None:
    cutter = LineCutter(10)
    for _ in range(1000):
        assert list(cutter.feed(b"a" * 1000)) == []
    assert [line.text for line in cutter.rest()] == ["a" * 10 + CUT]


def test_the_time_is_taken_off() -> None:
    assert split_time("2026-01-01T00:00:00.123456789Z hello  you") == LogLine(
        "hello  you", "2026-01-01T00:00:00.123456789Z"
    )
    assert split_time("hello you") == LogLine("hello you")
    assert split_time("2026 was") == LogLine("2026 was")
