"""Memory that is free goes back to the system."""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import ctypes
import ssl
from types import SimpleNamespace

import anyio
import pytest

from multikueued.run import memory
from multikueued.run.memory import EVERY, MORE, TLS_BUFFER, give_back, resident, small_buffers

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


async def buffer() -> int:
    """Bytes that a new connection with TLS reads at a time."""
    loop, tls = asyncio.get_running_loop(), ssl.create_default_context()
    protocol = asyncio.sslproto.SSLProtocol(loop, asyncio.Protocol(), tls, loop.create_future())
    size = len(protocol.get_buffer(-1))
    protocol.connection_lost(None)
    return size


async def test_a_connection_has_a_small_buffer_and_only_in_our_process() -> None:
    before = await buffer()
    with small_buffers():
        assert await buffer() == TLS_BUFFER < before
    assert await buffer() == before
