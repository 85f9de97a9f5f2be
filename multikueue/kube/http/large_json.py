"""Large JSON has turns: in one turn of the event loop one such is decoded and looked at, however many have come.

Tenants choose how large objects are, and of how many parts. One may take 60 ms of a turn, and a page of a list more.
A dozen that come at once, of the manager and of workers, were one turn; to renew the Lease takes several. And between
two of them others have the loop for as long as the first one took, if they have something to do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final

import anyio
import anyio.lowlevel
import attrs

from multikueue.kube.http.response_limits import LARGE

IDLE: Final = 0.0002
"""Seconds of a turn of the loop in which nobody has done anything: to ask the system whether something came."""
QUIET: Final = 3
"""After so many of these in a row nobody else waits for the loop."""
_SMALL: Final = nullcontext()


@attrs.define(eq=False)
class LargeJson:
    """The turns of all that share it: the clients of one event loop, as any of them holds up the others."""

    clock: Callable[[], float] = anyio.current_time
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)
    _took: float = attrs.field(default=0.0, init=False)
    _ended: float = attrs.field(default=0.0, init=False)
    """When the last one had ended, and how long it took."""

    def __repr__(self) -> str:
        return f"<LargeJson: {self._lock.statistics().tasks_waiting} wait>"

    def turn(self, size: int) -> AbstractAsyncContextManager[None]:
        """Within it JSON of so many bytes may be decoded and looked at. Nothing is awaited there.

        Large ones come one after the other, each in another turn of the loop.
        """
        return _SMALL if size <= LARGE else self._large()

    @asynccontextmanager
    async def _large(self) -> AsyncIterator[None]:
        async with self._lock:
            await self._let_others()
            began = self.clock()
            try:
                yield
            finally:
                self._ended = self.clock()
                self._took = self._ended - began

    async def _let_others(self) -> None:
        """Have others run for as long as the last one took, or until they do nothing any more."""
        quiet = 0
        while quiet < QUIET and (before := self.clock()) < self._ended + self._took:
            await anyio.lowlevel.checkpoint()
            quiet = quiet + 1 if self.clock() - before < IDLE else 0
