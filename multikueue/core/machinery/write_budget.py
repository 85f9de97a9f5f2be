"""How often an object may be written because others change something: at once at first, then one write a second.

Whoever may change a copy on a worker decides how often it changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)

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
