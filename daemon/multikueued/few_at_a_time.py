"""Does the same with many things, a few of them at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def few_at_a_time(most: int, do: Callable[[T], Awaitable[object]], things: Iterable[T]) -> None:
    """Do something with each of these, with so many of them at the same time; an exception of one ends the others."""
    limiter = anyio.CapacityLimiter(most)

    async def in_turn(thing: T) -> None:
        async with limiter:
            await do(thing)

    async with anyio.create_task_group() as tasks:
        for thing in things:
            tasks.start_soon(in_turn, thing)
