"""Who holds how many places of a port: whoever takes them without end would leave others none."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import attrs


@attrs.define(eq=False)
class Holders:
    """Counts places by whose they are: a user's, a namespace's. Who has them taken knows the bounds."""

    _held: dict[str, Counter[str]] = attrs.field(factory=lambda: defaultdict(Counter), init=False, repr=False)
    _none_held: anyio.Event = attrs.field(factory=anyio.Event, init=False, repr=False)

    def held(self, by: str, name: str | None = None) -> int:
        """How many one of a sort holds, as `user`; without a name, all of that sort."""
        return self._held[by].total() if name is None else self._held[by][name]

    @contextmanager
    def holding(self, **whose: str) -> Iterator[None]:
        """Hold a place while the context lasts; `whose` it is, by sort."""
        for by, name in whose.items():
            self._held[by][name] += 1
        try:
            yield
        finally:
            for by, name in whose.items():
                self._held[by][name] -= 1
                if not self._held[by][name]:
                    del self._held[by][name]
            if not any(self._held.values()):
                self._none_held.set()

    async def none_held(self) -> None:
        """Wait until nobody holds one."""
        while any(self._held.values()):
            self._none_held = anyio.Event()
            await self._none_held.wait()
