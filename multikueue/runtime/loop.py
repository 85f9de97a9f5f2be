"""The event loop: its clock, and tasks that outlive their callers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import anyio
import anyio.abc
import attrs

from multikueue.logs import get_logger

STEP: Final = timedelta(seconds=1)
"""A wall clock that goes by so much more, or less, than the loop's has been set."""

AGAIN: Final = 60.0
"""Seconds after which a task begins again that has ended with an unexpected exception."""

Task: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

log = get_logger(__name__)


def loop_time() -> float:
    """The loop's clock: `anyio.current_time` without detecting the async library, at a tenth of the cost.

    It is read some sixty times per Workload; with anyio's function that was 4 % of the CPU time of a burst.
    """
    return asyncio.get_running_loop().time()


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@attrs.define(eq=False)
class SteadyClock:
    """The wall clock without its steps: what passes between two of its times has passed on the loop's clock.

    A wall clock is set while processes run, by hand, by NTP, or when a virtual machine resumes. No time of waiting may
    end, or begin anew, because of that.
    """

    wall: Callable[[], datetime]
    _began: tuple[datetime, float] | None = attrs.field(default=None, init=False)
    """The wall clock's and the loop's time when this was asked first."""
    _step: timedelta = attrs.field(default=timedelta(0), init=False)

    def now(self) -> datetime:
        """The time by this clock."""
        return self.wall() - self.step()

    def step(self) -> timedelta:
        """By how much the wall clock has been set: add it to a time of this clock to show it, or to write it down."""
        wall, loop = self.wall(), loop_time()
        began, at = self._began = self._began or (wall, loop)
        ahead = wall - began - timedelta(seconds=loop - at)
        if abs(ahead - self._step) >= STEP:
            self._step = ahead
        return self._step


@attrs.define(eq=False)
class BackgroundTasks:
    """Runs tasks for callers that do not wait for them. A task that is started before `run` begins with it.

    A new task copies the context variables of the code that starts it, and with them structlog's log context. Here all
    tasks are started by `run`, so none logs with the context of the reconcile that asked for it.
    """

    _to_start: deque[Task] = attrs.field(factory=deque, init=False)
    _wakeup: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def start(self, task: Task) -> None:
        """Have a task started. An exception it raises ends `run`."""
        self._to_start.append(task)
        self._wakeup.set()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Start tasks until cancelled; then all of them are cancelled."""
        async with anyio.create_task_group() as tasks:
            task_status.started()
            while True:
                while self._to_start:
                    tasks.start_soon(self._to_start.popleft())
                self._wakeup = anyio.Event()
                await self._wakeup.wait()


class UnaskedCancellation(Exception):
    """A task has been told that it is cancelled, and nobody has cancelled it: something that it waited for was."""


@contextmanager
def own_cancellation() -> Iterator[None]:
    """Let through the cancellation of this task only: a task group takes any for an end in order, and says nothing.

    Raises:
        UnaskedCancellation: nobody has cancelled this task.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise UnaskedCancellation("something that it waited for was cancelled") from error


async def unending(name: str, task: Task) -> None:
    """Run a task until cancelled; again after `AGAIN` if it ends. What it raises unexpectedly is logged.

    Args:
        name: of the task, in the log.
        task: what is run.
    """
    while True:
        try:
            with own_cancellation():
                await task()
        except Exception as error:  # never CancelledError
            log.error("unexpected exception", task=name, exc_info=error)
        await anyio.sleep(AGAIN)
