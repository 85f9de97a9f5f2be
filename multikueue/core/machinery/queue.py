"""A work queue of keys: it deduplicates and delays, and keeps each key with one holder.

The semantics are client-go's `workqueue`; the code is a plain data structure that is told the time.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)


@attrs.frozen
class QueueStatistics:
    """How busy a queue is."""

    ready_or_delayed: int
    """Keys that wait, due or not."""
    held: int
    """Keys handed out and not yet released."""


@attrs.define(eq=False)
class WorkQueue(Generic[K]):
    """Deduplicating, delaying queue of keys.

    * A key is handed out to at most one holder at a time.
    * A key added while held is handed out again after it is released.
    * Of two pending times for one key, the earlier wins.
    * Keys that are due come out in the order of their times, ties in the order they were added.
    """

    _due: dict[K, tuple[float, int]] = attrs.field(factory=dict, init=False)
    """When each waiting key is due, and its turn among equals: the truth. Heap entries that disagree are stale."""
    _heap: list[tuple[float, int, K]] = attrs.field(factory=list, init=False)
    _held: set[K] = attrs.field(factory=set, init=False)
    _readded: dict[K, float] = attrs.field(factory=dict, init=False)
    _order: int = attrs.field(default=0, init=False)

    def add(self, key: K, at: float) -> None:
        """Make `key` due at time `at`; if it already waits for an earlier time, keep that."""
        if key in self._held:
            self._readded[key] = min(at, self._readded.get(key, at))
        elif key not in self._due or at < self._due[key][0]:
            self._push(key, at)

    def take(self, now: float) -> K | None:
        """Hand out the key that has been due longest; None if none is due."""
        while self._heap:
            at, order, key = self._heap[0]
            stale = self._due.get(key) != (at, order)
            if not stale and at > now:
                return None
            heapq.heappop(self._heap)
            if stale:
                continue
            del self._due[key]
            self._held.add(key)
            return key
        return None

    def release(self, key: K) -> None:
        """Give a held key back; what was added for it meanwhile becomes pending now."""
        self._held.discard(key)
        at = self._readded.pop(key, None)
        if at is not None:
            self._push(key, at)

    def next_due(self) -> float | None:
        """The earliest time a waiting key is due; None if no key waits."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._due) + len(self._readded)

    @property
    def held(self) -> int:
        """How many keys are handed out."""
        return len(self._held)

    def statistics(self) -> QueueStatistics:
        """A snapshot for metrics."""
        return QueueStatistics(len(self), len(self._held))

    def _push(self, key: K, at: float) -> None:
        self._order += 1
        self._due[key] = (at, self._order)
        heapq.heappush(self._heap, (at, self._order, key))
