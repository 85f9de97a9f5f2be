"""What memory the process takes beside its objects, and gives back: the C library keeps what is free among the rest.

Tenants choose how large objects are. Without this a process stayed as large as it had been while one tenant's jobs were
copied, and grew with each burst: parsed JSON leaves holes of all sizes.
"""

from __future__ import annotations

import asyncio.sslproto
import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio

EVERY: Final = 1.0
"""Seconds between two looks at how large the process is: a line of text from the kernel."""
MORE: Final = 4 << 20
"""Bytes by which it has grown since the last time."""
TLS_BUFFER: Final = 64 << 10
"""Bytes that are read at a time of a connection with TLS, and kept for it as long as it is open: four of its records.
asyncio has four times as many. A server has up to 32 connections, and each watch has one."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = Path("/proc/self/statm")


@contextmanager
def small_buffers() -> Iterator[None]:
    """With `TLS_BUFFER` for each connection that is opened. Whoever runs a daemon in a process of their own gets
    asyncio's back."""
    protocol = asyncio.sslproto.SSLProtocol
    size = protocol.max_size
    protocol.max_size = TLS_BUFFER
    try:
        yield
    finally:
        protocol.max_size = size


async def give_back() -> None:
    """Have the C library return what is free, each time that the process has grown, until cancelled.

    Where it cannot (musl, other systems than Linux) this does nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    kept = resident()
    while True:
        await anyio.sleep(EVERY)
        if trim is not None and resident() > kept + MORE:
            trim(0)
            kept = resident()


def resident() -> int:
    """Bytes that this process has in memory; 0: that is not known."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except OSError:
        return 0
