"""A work queue of keys with the semantics of client-go's `workqueue`. The caller passes the time.

`take` is client-go's `Get`, `release` its `Done`; `add` is both `Add` and `AddAfter`. One thing differs: a key has one
due time. In client-go a key that was added with a delay and again without one is processed twice, now and after the
delay. Here the later time is forgotten, so a reconciler says after each reconcile when it wants to look again.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)

SPARE: Final = 64
"""Entries of the heap that may be stale beyond as many as are not. So it is built anew seldom, and never for a few."""


@attrs.frozen
class QueueStatistics:
    """A snapshot of a queue's length."""

    ready_or_delayed: int
    """Keys that wait, whether due or not."""
    held: int
    """Keys that `take` returned and nobody has released."""


@attrs.define(eq=False)
class WorkQueue(Generic[K]):
    """A deduplicating, delaying queue of keys.

    * At most one holder has a key at a time.
    * A key that is added while it is held becomes pending again when it is released.
    * Of two times for one pending key, the earlier wins.
    * `take` returns due keys in the order of their times, and of equal times in the order they were added.
    """

    _due: dict[K, tuple[float, int]] = attrs.field(factory=dict, init=False)
    """The waiting keys, none of them held: each one's time, and its number among equal times."""
    _heap: list[tuple[float, int, K]] = attrs.field(factory=list, init=False)
    """Every entry of `_due` in the order of times, and stale ones, which disagree with `_due`: no more than live ones
    and `SPARE`."""
    _held: set[K] = attrs.field(factory=set, init=False)
    """client-go's `processing` set."""
    _readded: dict[K, float] = attrs.field(factory=dict, init=False)
    """The held keys that were added meanwhile, with the earliest time asked for. In client-go: both sets have them."""
    _order: int = attrs.field(default=0, init=False)

    def __repr__(self) -> str:
        return f"<WorkQueue: {len(self)} waiting, {self.held} held>"

    def add(self, key: K, at: float) -> None:
        """Make `key` due at time `at`, or at the earlier time it already waits for."""
        if key in self._held:
            self._readded[key] = min(at, self._readded.get(key, at))
        elif key not in self._due or at < self._due[key][0]:
            self._push(key, at)

    def take(self, now: float) -> K | None:
        """Return the key that has been due longest, and hold it; None if no key is due."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        self._held.add(key)
        return key

    def release(self, key: K) -> None:
        """Release a held key. If it was added meanwhile, it becomes pending."""
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
        """How many keys are held."""
        return len(self._held)

    @property
    def entries(self) -> int:
        """How many entries are in memory, stale ones included."""
        return len(self._heap) + len(self._readded)

    def statistics(self) -> QueueStatistics:
        """A snapshot for metrics."""
        return QueueStatistics(len(self), len(self._held))

    def _push(self, key: K, at: float) -> None:
        self._order += 1
        self._due[key] = (at, self._order)
        heapq.heappush(self._heap, (at, self._order, key))
        if len(self._heap) > SPARE + 2 * len(self._due):
            self._heap = [(at, order, key) for key, (at, order) in self._due.items()]
            heapq.heapify(self._heap)
