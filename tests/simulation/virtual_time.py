"""Running a coroutine on a clock that jumps to the next timer as soon as nothing else is to be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import anyio
import looptime

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
"""When every simulation begins."""


def run_on_virtual_time(main: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run `main` as `anyio.run` does, on a loop whose time starts at 0 and costs nothing."""
    options = {"loop_factory": lambda: looptime.new_event_loop(start=0)}
    return anyio.run(main, *args, backend="asyncio", backend_options=options)


def wall_clock(skew: float = 0.0) -> Callable[[], datetime]:
    """A wall clock that follows the loop's time, ahead by `skew` seconds."""

    def now() -> datetime:
        return START + timedelta(seconds=anyio.current_time() + skew)

    return now
