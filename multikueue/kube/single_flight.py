"""What a client does for all who use it, and goes on with when whoever asked has given up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import anyio
import anyio.abc
import attrs

from multikueue.errors import NotSent

T = TypeVar("T")


@attrs.define(eq=False)
class Flight(Generic[T]):
    """Something that is done once, whoever waits for it, for however long."""

    work: Callable[[], Awaitable[T]]
    scope: anyio.CancelScope = attrs.field(factory=lambda: anyio.CancelScope(shield=True), init=False)
    ended_at: float = attrs.field(default=float("inf"), init=False)
    _ended: anyio.Event = attrs.field(factory=anyio.Event, init=False)
    _error: Exception | None = attrs.field(factory=lambda: NotSent("the client is closed"), init=False)
    """What is wrong with the result: at first, that there is none and may never be."""
    _result: T = attrs.field(init=False, repr=False)

    @property
    def ended(self) -> bool:
        """Whether nothing has to be waited for any more."""
        return self._ended.is_set()

    async def result(self) -> T:
        """Wait for the end. Whoever gives up waiting ends nothing.

        Raises:
            Exception: what the work raised.
            NotSent: the client has been closed.
        """
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._result

    async def run(self) -> None:
        """Do it."""
        try:
            with self.scope:
                self._result = await self.work()
                self._error = None
        except Exception as error:  # it is for those who wait, and must not end the client
            self._error = error
        finally:
            self.ended_at = anyio.current_time()
            self._ended.set()


@attrs.define(eq=False)
class SingleFlight:
    """The flights of one client; an async context manager.

    * They go on while whoever has the client open is being cancelled: what is still sent then may need them.
    * They end with it.
    """

    _tasks: anyio.abc.TaskGroup = attrs.field(factory=anyio.create_task_group, init=False)
    _under_way: set[Flight[Any]] = attrs.field(factory=set, init=False)
    _open: bool = attrs.field(default=False, init=False)

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what is under way, and wait until it has ended."""
        self._open = False
        for flight in self._under_way:
            flight.scope.cancel()
        await self._tasks.__aexit__(None, None, None)  # told of an error, it would make a group of it

    @property
    def under_way(self) -> int:
        """How many have not ended."""
        return len(self._under_way)

    def begin(self, work: Callable[[], Awaitable[T]]) -> Flight[T]:
        """Begin something.

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
        try:
            await flight.run()
        finally:
            self._under_way.discard(flight)
