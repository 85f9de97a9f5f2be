"""Lines of a log, with a bound on each."""

from __future__ import annotations

from multikueue.kube.log_stream import CUT, LineCutter, LogLine, split_time


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
