"""What an API server says of users, kept for a while: asked a few at a time, and bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import anyio
import attrs

ALLOWED_FOR: Final = 60.0
"""Seconds for which who may is not asked about again: how late it is noticed that they may not any more."""
REFUSED_FOR: Final = 10.0
"""The same for who may not."""
TIMEOUT: Final = 10.0
"""Seconds that the manager's API server may take to say."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@attrs.define(eq=False)
class KeptAnswers(Generic[K, V]):
    """Answers by what was asked. What nobody has said is not kept."""

    good_for: float
    """Seconds for which a good answer is given again: how late it is noticed that somebody may not any more. 0: it is
    not kept."""
    bad_for: float
    """The same for any other."""
    most: int
    """How many are kept. Bad ones are forgotten first: whoever invents tokens pushes out only such ones."""
    turns: anyio.CapacityLimiter
    """For asking: a stranger must not keep the manager's API server busy."""
    is_good: Callable[[V], bool] = bool
    timeout: float = TIMEOUT
    """Seconds that an answer may take, with its turn."""
    _known: dict[K, tuple[V, bool, float]] = attrs.field(factory=dict, init=False, repr=False)
    """The answer, whether it is good, and until when it holds."""

    def __len__(self) -> int:
        return len(self._known)

    async def of(self, asked: K, ask: Callable[[], Awaitable[V]]) -> V:
        """The answer to what is asked.

        Raises:
            ApiError: nobody says.
            TimeoutError: nobody has said in time.
        """
        if (known := self._kept(asked)) is not None:
            return known[0]
        with anyio.fail_after(self.timeout):
            async with self.turns:
                known = self._kept(asked)
                return known[0] if known is not None else self._keep(asked, await ask())

    def _kept(self, asked: K) -> tuple[V] | None:
        known = self._known.get(asked)
        return (known[0],) if known is not None and anyio.current_time() < known[2] else None

    def _keep(self, asked: K, answer: V) -> V:
        self._known.pop(asked, None)
        good = self.is_good(answer)
        if not (lasts := self.good_for if good else self.bad_for):
            return answer
        self._known[asked] = answer, good, anyio.current_time() + lasts
        while len(self._known) > self.most:
            bad = (question for question, (_, is_good, _) in self._known.items() if not is_good)
            del self._known[next(bad, next(iter(self._known)))]
        return answer
