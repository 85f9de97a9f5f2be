"""Single flight: work that many callers wait for runs once, and goes on when a caller stops waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Self, TypeVar

import anyio
import anyio.abc
import attrs

from multikueue.errors import NotSent

T = TypeVar("T")


@attrs.define(eq=False)
class Flight(Generic[T]):
    """One run of some work, and its result for all callers that wait for it."""

    work: Callable[[], Awaitable[T]]
    scope: anyio.CancelScope = attrs.field(factory=lambda: anyio.CancelScope(shield=True), init=False)
    ended_at: float = attrs.field(default=float("inf"), init=False)
    """On the loop's clock; infinity until it has ended."""
    _ended: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _error: Exception | None = attrs.field(factory=lambda: NotSent("the client is closed"), init=False)
    """Why there is no result; None once there is one."""
    _result: T = attrs.field(init=False)

    def __repr__(self) -> str:
        return f"<Flight: {'ended' if self.ended else 'under way'}>"

    @property
    def ended(self) -> bool:
        """Whether `result` returns at once."""
        return self._ended.is_set()

    async def result(self) -> T:
        """Wait for the result. Cancelling a wait does not cancel the work.

        Raises:
            Exception: what the work raised.
            NotSent: the client has been closed.
        """
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    async def run(self) -> None:
        """Run the work."""
        try:
            with self.scope:
                self._result = await self.work()
                self._error = None
        except Exception as error:  # for those who wait; it must not end the client's task group
            self._error = error
        finally:
            self.ended_at = anyio.current_time()
            self._ended.set()


@attrs.define(eq=False)
class SingleFlight:
    """Runs the flights of one client; an async context manager.

    * Flights go on while the task that opened the client is being cancelled: a shielded request may still need them.
    * Closing the client cancels them.
    """

    _tasks: anyio.abc.TaskGroup = attrs.field(factory=anyio.create_task_group, init=False)
    _under_way: set[Flight[Any]] = attrs.field(factory=set, init=False)
    _open: bool = attrs.field(default=False, init=False)

    def __repr__(self) -> str:
        return f"<SingleFlight: {'open' if self._open else 'closed'}, {self.under_way} under way>"

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel the flights, and wait until they have ended."""
        self._open = False
        for flight in self._under_way:
            flight.scope.cancel()
        await self._tasks.__aexit__(None, None, None)  # with an error, it would raise an exception group

    @property
    def under_way(self) -> int:
        """How many flights have not ended."""
        return len(self._under_way)

    def begin(self, work: Callable[[], Awaitable[T]]) -> Flight[T]:
        """Start some work.

        Raises:
            NotSent: the client has been closed.
        """
        if not self._open:
            raise NotSent("the client is closed")
        flight = Flight(work)
        self._under_way.add(flight)
        self._tasks.start_soon(self._run, flight)
        return flight

    async def _run(self, flight: Flight[Any]) -> None:
        await flight.run()
        self._under_way.discard(flight)
