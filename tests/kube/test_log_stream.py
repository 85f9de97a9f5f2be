"""Lines of a log, with a bound on each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from multikueue.core.model.kinds import POD
from multikueue.core.model.names import ObjectKey
from multikueue.kube import requests
from multikueue.kube.error_mapping import ErrorMapping
from multikueue.kube.log_stream import CUT, LineCutter, LogLine, read_log, split_time


class Response:
    """Gives a log in pieces, and notes how many were asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        while self.pieces:
            yield self.pieces.pop(0)


async def test_nothing_more_is_read_before_a_slow_reader_is_ready() -> None:
    response: Any = Response(b"a\nb\n", b"c\n", b"d")
    told: list[str] = []
    left: list[int] = []

    async def pause() -> None:
        left.append(len(response.pieces))

    mapped = ErrorMapping("worker1", requests.get(POD, ObjectKey("default", "a")))
    await read_log(response, mapped, lambda line: told.append(line.text), pause)
    assert told == ["a", "b", "c", "d"]
    assert left == [2, 1, 0]


def lines(*pieces: bytes, limit: int = 100) -> list[str]:
    cutter = LineCutter(limit)
    found = [line.text for piece in pieces for line in cutter.feed(piece)]
    return [*found, *(line.text for line in cutter.rest())]


def test_lines_do_not_depend_on_how_they_arrive() -> None:
    text = b"one\n\ntwo \xc3\xa9\r\nthree"
    whole = lines(text)
    assert whole == ["one", "", "two \xe9", "three"]
    assert lines(*(text[i : i + 1] for i in range(len(text)))) == whole


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
