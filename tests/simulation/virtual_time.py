"""Running a coroutine on a clock that jumps to the next timer as soon as nothing else is to be done.

The loop talks to nobody outside, so nothing in a run depends on the machine: tasks and cancel scopes are hashed by
their number, and anyio's sets of them have the same order in every process.
"""

from __future__ import annotations

import asyncio
import itertools
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from unittest import mock

import anyio

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
"""When every simulation begins."""


class _Silent(selectors.SelectSelector):
    """A selector that waits by moving the clock: nobody outside can wake this loop."""

    now: float = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits for something that will never happen")
        self.now += max(timeout, 0.0)
        return []


class _NumberedTask(asyncio.Task[T]):
    """A task that is hashed by its number in the loop instead of by its address."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], *, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(coroutine, loop=loop)

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and costs nothing."""

    def __init__(self) -> None:
        self._silent = _Silent()
        self._numbers = itertools.count()
        super().__init__(self._silent)
        self.set_task_factory(self._number)

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._silent.now

    def _number(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Generator[Any, None, T] | Coroutine[Any, Any, T],
        **options: Any,
    ) -> asyncio.Task[T]:
        del options
        assert isinstance(coroutine, Coroutine), "anyio starts coroutines only"
        return _NumberedTask(coroutine, number=next(self._numbers), loop=loop)


def run_on_virtual_time(main: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run `main` as `anyio.run` does, on a loop of its own virtual time."""

    async def run() -> T:
        with _numbered_scopes():
            return await main(*args)

    return anyio.run(run, backend="asyncio", backend_options={"loop_factory": VirtualLoop})


def _numbered_scopes() -> AbstractContextManager[Any]:
    """Cancel scopes are hashed by their number instead of by their address: that is the order in which a scope cancels
    those within it."""
    scope_class, numbers, count = type(anyio.CancelScope()), dict[int, int](), itertools.count()
    begin = scope_class.__init__

    def number(scope: anyio.CancelScope, *args: Any, **options: Any) -> None:
        numbers[id(scope)] = next(count)  # of the one that is there now: addresses are used again
        begin(scope, *args, **options)

    def hashed(scope: anyio.CancelScope) -> int:
        return numbers.get(id(scope), id(scope))  # one from before this run is in none of its sets

    return mock.patch.multiple(scope_class, __init__=number, __hash__=hashed)


def wall_clock(skew: float = 0.0, step: Callable[[], float] = lambda: 0.0) -> Callable[[], datetime]:
    """A wall clock that follows the loop's time, ahead by `skew` seconds, and by what somebody has set it off now."""

    def now() -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time() + skew + step())

    return now
