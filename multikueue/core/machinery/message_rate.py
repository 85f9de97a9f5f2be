"""Writes that may wait, of one object, and of all objects together.

Those that only change words for people are some seconds apart. One that must wait gets a turn, so that of many that
wait each comes once; whoever asks again before its turn gets the same one. Those that answer what others change come at
once at first, then one a second: whoever may change a copy on a worker decides how often it changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)

BETWEEN: Final = 10.0
"""Seconds between two writes of one object."""
A_SECOND: Final = 5.0
"""Writes a second of all objects together."""
_NEVER: Final = float("-inf")


@attrs.define(eq=False)
class MessageRate(Generic[K]):
    """When which object may be written. It knows no clock: `now` is in seconds, and never less than before."""

    between: float = BETWEEN
    spacing: float = 1 / A_SECOND
    _written: dict[K, float] = attrs.field(factory=dict, init=False)
    """When each object was written last, in that order; without those for which that does not matter any more."""
    _turns: dict[K, float] = attrs.field(factory=dict, init=False)
    _last_turns: dict[bool, float] = attrs.field(factory=lambda: dict.fromkeys((False, True), _NEVER), init=False)
    """The last turn that was given to what is urgent, and to what is not."""
    _last_write: float = attrs.field(default=_NEVER, init=False)

    def __len__(self) -> int:
        return len(self._written.keys() | self._turns.keys())

    def wait(self, key: K, now: float, *, urgent: bool = False) -> float:
        """Seconds until the object may be written; 0: now, and then `wrote` must be called.

        What is urgent waits for nothing but what is urgent, too; what meets it loses its turn, and gets another one.
        """
        if (left := self._written.get(key, _NEVER) + self.between - now) > 0:
            self._turns.pop(key, None)
            return left
        turn = self._turns.get(key)
        if turn is None or (turn <= now < self._last_write + self.spacing):
            turn = max(now, self._last_turns[urgent] + self.spacing, self._last_write + self.spacing)
            self._turns[key] = self._last_turns[urgent] = turn
        return max(0.0, turn - now)

    def wrote(self, key: K, now: float) -> None:
        """The object is being written because of its turn."""
        self._last_write = now
        self.touched(key, now)

    def touched(self, key: K, now: float) -> None:
        """The object is being written for another reason: its words are in that write."""
        self.forget(key)
        self._written[key] = now
        settled = itertools.takewhile(lambda old: self._written[old] + self.between <= now, self._written)
        for old in [*settled]:
            del self._written[old]

    def forget(self, key: K) -> None:
        """The object is gone, or has nothing to wait for any more."""
        self._written.pop(key, None)
        self._turns.pop(key, None)


AT_ONCE: Final = 30.0
"""Writes for one object that may follow each other at once."""


@attrs.define(eq=False)
class WriteBudget(Generic[K]):
    """When which object may be written. It knows no clock: `now` is in seconds, and never less than before."""

    _lasts: dict[K, float] = attrs.field(factory=dict, init=False)
    """Until when the writes of an object so far would last, at one a second."""

    def __len__(self) -> int:
        return len(self._lasts)

    def wait(self, key: K, now: float) -> float:
        """Seconds until the object may be written; 0: now, and then `wrote` must be called."""
        return max(0.0, self._lasts.get(key, now) - now - AT_ONCE)

    def wrote(self, key: K, now: float) -> None:
        """The object is being written, also if that could not wait."""
        self._lasts[key] = min(max(self._lasts.get(key, now), now), now + AT_ONCE) + 1.0

    def forget(self, key: K) -> None:
        """The object is gone."""
        self._lasts.pop(key, None)
