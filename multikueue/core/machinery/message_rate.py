"""Writes that may wait, of one object, and of all objects together.

Those that only change words for people are some seconds apart. One that must wait gets a turn, so that of many that
wait each comes once; whoever asks again before its turn gets the same one. Flows take turns: thousands that wait delay
those of their own. Those that answer what others change come at once at first, then one a second: whoever may change a
copy on a worker decides how often it changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)

BETWEEN: Final = 10.0
"""Seconds between two writes of one object."""
A_SECOND: Final = 5.0
"""Writes a second of all objects together."""
_NEVER: Final = float("-inf")
LAPSES: Final = 1.0
"""Seconds for which other flows leave a write to the one that has the next turn."""
_FIRST: Final = object()
"""Stands for the first ones of all flows."""


@attrs.define(eq=False)
class MessageRate(Generic[K]):
    """When which object may be written. It knows no clock: `now` is in seconds, and never less than before."""

    between: float = BETWEEN
    spacing: float = 1 / A_SECOND
    flow_of: Callable[[K], Hashable] = attrs.field(default=lambda _: None, kw_only=True)
    """By default there is one flow."""
    _written: dict[K, float] = attrs.field(factory=dict, init=False)
    """When each object was written last, in that order; without those for which that does not matter any more."""
    _turns: dict[K, float] = attrs.field(factory=dict, init=False)
    _last_turns: dict[tuple[bool, Hashable], float] = attrs.field(factory=dict, init=False)
    """The last turn that was given to what is urgent, and to what is not, of each flow."""
    _owed: dict[Hashable, K] = attrs.field(factory=dict, init=False)
    """By flow, what has met another's write, and has the next turn: other flows leave it to that."""
    _last_write: float = attrs.field(default=_NEVER, init=False)

    def __len__(self) -> int:
        return len(self._written.keys() | self._turns.keys())

    def wait(self, key: K, now: float, *, urgent: bool = False) -> float:
        """Seconds until the object may be written; 0: now, and then `wrote` must be called.

        What is urgent waits for nothing but what is urgent, too; what meets a write loses its turn, and gets the next
        one of its flow.
        """
        if (left := self._written.get(key, _NEVER) + self.between - now) > 0:
            self._lose_turn(key)
            return left
        turn, flow, free_at = self._turns.get(key), self.flow_of(key), self._last_write + self.spacing
        if turn is None:
            turn = self._next_turn(flow, now, urgent)
        elif turn <= now < free_at:
            is_next = self._owed.setdefault(flow, key) == key
            turn = free_at if is_next else self._next_turn(flow, now, urgent)
        elif turn <= now and not urgent and self._is_owed_to_others(flow, now):
            turn = self._next_turn(flow, now + self.spacing, urgent)
        self._turns[key] = turn
        return max(0.0, turn - now)

    def _next_turn(self, flow: Hashable, at: float, urgent: bool) -> float:
        """The first that is left of a flow. Flows without any before it share theirs."""
        last, first = (self._last_turns.get((urgent, of), _NEVER) for of in (flow, _FIRST))
        turn = max(at, last + self.spacing, self._last_write + self.spacing)
        if last < at:
            self._last_turns[urgent, _FIRST] = turn = max(turn, first + self.spacing)
        self._last_turns[urgent, flow] = turn
        return turn

    def _is_owed_to_others(self, flow: Hashable, now: float) -> bool:
        """Whether the next write is one of another flow, which has met one of this flow or of a third."""
        turns = (self._turns.get(key, _NEVER) for key in self._owed.values())
        return flow not in self._owed and any(turn <= now < turn + LAPSES for turn in turns)

    def _lose_turn(self, key: K) -> None:
        self._turns.pop(key, None)
        if self._owed.get(flow := self.flow_of(key)) == key:
            del self._owed[flow]

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
        self._lose_turn(key)


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
