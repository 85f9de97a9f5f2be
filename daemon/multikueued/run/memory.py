"""Gives memory back that large objects took: the C library keeps what is free between what is not.

Tenants choose how large objects are. Without this a process stayed as large as it had been while one tenant's jobs were
copied, and grew with each burst: parsed JSON leaves holes of all sizes.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

import anyio

EVERY: Final = 1.0
"""Seconds between two looks at how large the process is: a line of text from the kernel."""
MORE: Final = 4 << 20
"""Bytes by which it has grown since the last time."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = Path("/proc/self/statm")


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
