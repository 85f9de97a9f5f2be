"""Run services during a test, and wait for what they do, without sleeping by hand."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio
import anyio.abc
import attrs

PATIENCE: Final = 60.0
"""Seconds of the loop's clock after which something that was waited for counts as failed."""
_PERIOD: Final = 0.05
_PART: Final = 1_000
"""What takes long on a virtual clock is looked at more rarely, each time after such a part of what it has taken."""


@attrs.frozen
class LoopClock:
    """A wall clock that goes with the loop's: on virtual time, timestamps move as the test's time does. Where no loop
    runs, as in a fixture, it has not begun to move."""

    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """The time now."""
        try:
            return self.start + timedelta(seconds=anyio.current_time())
        except anyio.NoEventLoopError:
            return self.start


async def until(holds: Callable[[], Any], within: float = PATIENCE) -> float:
    """Wait until something holds.

    Args:
        holds: asked again and again; may be a coroutine function.
        within: seconds of the loop's clock it may take.

    Returns:
        How many seconds it took, to a thousandth.

    Raises:
        AssertionError: it still does not hold.
    """
    begin = anyio.current_time()
    while True:
        held = holds()
        if await held if inspect.isawaitable(held) else held:
            return anyio.current_time() - begin
        taken = anyio.current_time() - begin
        if taken >= within:
            raise AssertionError(f"still not so after {within} s")
        await anyio.sleep(min(max(_PERIOD, taken / _PART), within - taken))


@asynccontextmanager
async def background() -> AsyncIterator[anyio.abc.TaskGroup]:
    """A task group that is cancelled when the block ends. What fails in the block itself is raised as it is."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def running(*services: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run services, such as `controller.run`, until the block ends; an error of one of them ends the block.

    Raises:
        ExceptionGroup: a service failed.
    """
    async with background() as tasks:
        for service in services:
            tasks.start_soon(service)
        yield
