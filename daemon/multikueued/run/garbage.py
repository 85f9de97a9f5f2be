"""The collection of garbage in a process whose caches are large."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LONG: Final = 60.0
"""Seconds for which it can wait: requests that fail leave garbage."""


@contextmanager
def postponed() -> Iterator[None]:
    """Collect nothing until `freeze`, or the block ends, but for `LONG` seconds at most.

    What is made while caches are filled lasts: to look at it took a tenth of a start over many Workloads.
    """
    gc.disable()
    due = asyncio.get_running_loop().call_later(LONG, gc.enable)
    try:
        yield
    finally:
        due.cancel()
        gc.enable()


def freeze() -> None:
    """Exempt the objects in the caches from garbage collection: a full one stops the loop for a second.

    What was exempt before is looked at first: the caches of an earlier term are garbage.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    gc.enable()
