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
class Budget(Generic[K]):
    """When something may be done for which key again: at once at first, and some times a second in the end.

    It knows no clock: times are in seconds, and never less than before.
    """

    at_once: float = AT_ONCE
    """How often it may be done at once."""
    a_second: float = 1.0
    _lasts: dict[K, float] = attrs.field(factory=dict, init=False)
    """Until when what was done for a key would last at that rate, in the order in which it was done last; without those
    for which that does not matter any more."""

    def __len__(self) -> int:
        return len(self._lasts)

    def due(self, key: K) -> float:
        """From when on it may be done again, and then `spent` must be called."""
        return self._lasts.get(key, _NEVER) - self.at_once / self.a_second

    def wait(self, key: K, now: float) -> float:
        """Seconds until it may be done; 0: now."""
        return max(0.0, self.due(key) - now)

    def spent(self, key: K, now: float) -> None:
        """It is being done, also if that could not wait."""
        lasts = min(max(self._lasts.pop(key, now), now), now + self.at_once / self.a_second) + 1 / self.a_second
        for old in [*itertools.takewhile(lambda old: self._lasts[old] <= now, self._lasts)]:
            del self._lasts[old]
        self._lasts[key] = lasts

    def forget(self, key: K) -> None:
        """The object is gone."""
        self._lasts.pop(key, None)
