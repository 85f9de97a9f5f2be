"""Whose call is sent next, where more wait than there are connections: namespaces take turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs

from multikueue.core.machinery.fair_keys import FairKeys


@attrs.define(eq=False)
class Turns:
    """So many at a time. A hundred calls for one namespace delay one for another by one turn, not by all of them."""

    places: int
    _taken: int = attrs.field(default=0, init=False)
    _waiting: FairKeys[anyio.Event] = attrs.field(factory=FairKeys, init=False)

    def __repr__(self) -> str:
        return f"<Turns: {self._taken} of {self.places} taken, {len(self._waiting)} wait>"

    @asynccontextmanager
    async def of(self, namespace: str) -> AsyncIterator[None]:
        """Have a place meanwhile, once it is the turn of this namespace."""
        if self._taken < self.places:  # then nobody waits
            self._taken += 1
        else:
            await self._wait(namespace)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, namespace: str) -> None:
        turn = anyio.Event()
        self._waiting.add(turn, namespace)
        try:
            await turn.wait()
        except BaseException:
            self._waiting.discard(turn)
            if turn.is_set():  # it was given a place, and leaves without using it
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        following = self._waiting.take()
        if following is None:
            self._taken -= 1
        else:
            following.set()
