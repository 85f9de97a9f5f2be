"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import anyio
import pytest

from multikueued.run import memory
from multikueued.run.memory import EVERY, MORE, give_back, resident

pytestmark = pytest.mark.looptime


async def run(monkeypatch: pytest.MonkeyPatch, library: SimpleNamespace, looks: int) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    with anyio.move_on_after((looks + 0.5) * EVERY):
        await give_back()


async def test_it_is_given_back_each_time_that_the_process_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    size, trimmed = 100 * MORE, list[int]()

    def trim(_: int) -> None:
        nonlocal size
        trimmed.append(size)
        size -= MORE

    def grown() -> int:
        nonlocal size
        size += MORE // 2
        return size

    monkeypatch.setattr(memory, "resident", grown)
    await run(monkeypatch, SimpleNamespace(malloc_trim=trim), 12)
    assert 2 <= len(trimmed) <= 4
    assert trimmed == sorted(trimmed)


async def test_where_the_library_cannot_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident", lambda: 1 << 40)
    await run(monkeypatch, SimpleNamespace(), 3)


def test_the_size_of_this_process_is_known() -> None:
    assert resident() > 1 << 20
