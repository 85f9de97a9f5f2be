"""A work queue of keys with the semantics of client-go's `workqueue`. The caller passes the time.

`take` is client-go's `Get`, `release` its `Done`; `add` is both `Add` and `AddAfter`. One thing differs: a key has one
due time. In client-go a key that was added with a delay and again without one is processed twice, now and after the
delay. Here the later time is forgotten, so a reconciler says after each reconcile when it wants to look again.

And it is fair: keys belong to flows, which take turns once they are due. A key that is added again while it waits for
its turn goes to the flow that it belongs to by then, and keeps its time. A key that is added again and again, however
often that is, is due some times a second.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import attrs

from multikueue.core.machinery.fair_keys import FairKeys
from multikueue.core.machinery.message_rate import Budget
from multikueue.core.machinery.shares import Shares

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
    """A deduplicating, delaying, fair queue of keys.

    * At most one holder has a key at a time.
    * A key that is added while it is held becomes pending again when it is released.
    * Of two times for one pending key, the earlier wins.
    * `take` returns due keys of all flows in turn; those of one flow in the order of their times, and of equal times in
      the order they were added, or released if they were added while they were held. A time before the last `take`
      counts as the time of that: nobody jumps the queue. With n flows, a flow's first key is returned within n takes.
    """

    flow_of: Callable[[K], Hashable] = attrs.field(default=lambda _: None, kw_only=True)
    """By default there is one flow."""
    places: int = attrs.field(default=sys.maxsize, kw_only=True)
    """How many keys are held at a time at most: of these each flow has a share, as in `Shares`. Whoever holds keys for
    long, as its requests are large or its server slow, leaves room for the others, and has most of it where there are
    none. A flow that holds none may hold one."""
    pace: Budget[K] | None = attrs.field(default=None, kw_only=True)
    """How often one key is due; None: as often as it is added."""
    _delayed: dict[K, tuple[float, int]] = attrs.field(factory=dict, init=False)
    """The waiting keys that were not due at the last `take`: each one's time, and its number among equal times."""
    _heap: list[tuple[float, int, K]] = attrs.field(factory=list, init=False)
    """Every entry of `_delayed` in the order of times, and stale ones, which disagree with it: no more than live ones
    and `SPARE`."""
    _ready: FairKeys[K] = attrs.field(factory=FairKeys, init=False)
    """The waiting keys that are due."""
    _ready_at: float = attrs.field(default=-math.inf, init=False)
    """The time of the last `take`."""
    _held: Shares[K] = attrs.field(default=attrs.Factory(lambda self: Shares(self.places), takes_self=True), init=False)
    """client-go's `processing` set, one of each key."""
    _readded: dict[K, float] = attrs.field(factory=dict, init=False)
    """The held keys that were added meanwhile, with the earliest time asked for. In client-go: both sets have them."""
    _order: int = attrs.field(default=0, init=False)

    def __repr__(self) -> str:
        return f"<WorkQueue: {len(self)} waiting, {self.held} held>"

    def add(self, key: K, at: float) -> None:
        """Make `key` due at time `at`, or at the earlier time it already waits for."""
        at = max(at, self._ready_at)
        if key in self._held:
            self._readded[key] = min(at, self._readded.get(key, at))
        elif key in self._ready:
            self._ready.add(key, self._flow(key))  # which one it is in may have changed
        elif key not in self._delayed or self._paced(key, at) < self._delayed[key][0]:
            self._push(key, at)

    def take(self, now: float) -> K | None:
        """Return the key whose turn it is, and hold it; None if no key is due, but of flows that have their share."""
        self._ready_at = now
        while (due := self._next_delayed()) is not None and due <= now:
            at, _, key = heapq.heappop(self._heap)
            del self._delayed[key]
            self._ready.add(key, self._flow(key), at)
        taken = self._ready.take(self._may_have_more)
        if taken is not None:
            self._held.keep(taken, self._flow(taken), 1)
            if self.pace is not None:
                self.pace.spent(taken, now)
        return taken

    def release(self, key: K) -> None:
        """Release a held key. If it was added meanwhile, it becomes pending."""
        if key not in self._held:
            return
        self._held.drop(key)
        at = self._readded.pop(key, None)
        if at is not None:
            self._push(key, at)

    def next_due(self) -> float | None:
        """The earliest time a waiting key is due, or some time since that; None if none waits but for its share."""
        return self._ready_at if self._ready.has(self._may_have_more) else self._next_delayed()

    def __len__(self) -> int:
        return len(self._delayed) + len(self._ready) + len(self._readded)

    def __contains__(self, key: K) -> bool:
        """Whether it waits or is held."""
        return key in self._held or key in self._delayed or key in self._ready

    @property
    def held(self) -> int:
        """How many keys are held."""
        return self._held.total

    @property
    def entries(self) -> int:
        """How many entries are in memory, stale ones included."""
        return len(self._heap) + len(self._ready) + len(self._readded)

    def statistics(self) -> QueueStatistics:
        """A snapshot for metrics."""
        return QueueStatistics(len(self), self.held)

    def _flow(self, key: K) -> Hashable:
        return self.flow_of(key)

    def _may_have_more(self, flow: Hashable) -> bool:
        return not self._held.of(flow) or self._held.has_room(flow, 1)

    def _next_delayed(self) -> float | None:
        while self._heap and self._delayed.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _paced(self, key: K, at: float) -> float:
        return at if self.pace is None else max(at, self.pace.due(key))

    def _push(self, key: K, at: float) -> None:
        at = self._paced(key, at)
        self._order += 1
        self._delayed[key] = (at, self._order)
        heapq.heappush(self._heap, (at, self._order, key))
        if len(self._heap) > SPARE + 2 * len(self._delayed):
            self._heap = [(at, order, key) for key, (at, order) in self._delayed.items()]
            heapq.heapify(self._heap)


@attrs.frozen
class _Of:
    """The flow of keys that somebody caused."""

    cause: Hashable


@attrs.define(eq=False)
class ChargedQueue(WorkQueue[K]):
    """A work queue with a limit of keys for each who causes some: another's doing alone brought these here.

    Such a key waits in a flow of its cause instead of its own. It is at the expense of the first who caused it, until
    it is released for good or is added without a cause.
    """

    limit: int = attrs.field(default=sys.maxsize, kw_only=True)
    """How many keys may be here at the expense of one who caused them. Beyond it they are not added."""
    _causes: dict[K, Hashable] = attrs.field(factory=dict, init=False)
    """Who caused the keys, waiting or held, that are at somebody's expense."""
    _charged: Counter[Hashable] = attrs.field(factory=Counter, init=False)
    """How many these are."""

    def add(self, key: K, at: float) -> None:
        """As `WorkQueue.add`, at nobody's expense."""
        if key in self._causes:
            self._discharge(key)
        self.again(key, at)

    def again(self, key: K, at: float) -> None:
        """As `add`, by the holder of the key: whoever has caused it still has."""
        super().add(key, at)

    def charge(self, key: K, at: float, cause: Hashable) -> bool:
        """As `add`, at the expense of a cause if the key is not here yet.

        Returns:
            Whether it is here now; False beyond the limit of the cause.
        """
        if key not in self:
            if self._charged[cause] >= self.limit:
                return False
            self._causes[key] = cause
            self._charged[cause] += 1
        self.again(key, at)
        return True

    def release(self, key: K) -> None:
        """See `WorkQueue.release`."""
        super().release(key)
        if key not in self:
            self._discharge(key)

    def _flow(self, key: K) -> Hashable:
        return _Of(self._causes[key]) if key in self._causes else super()._flow(key)

    def _discharge(self, key: K) -> None:
        if key in self._causes:
            cause = self._causes.pop(key)
            self._charged[cause] -= 1
            if not self._charged[cause]:
                del self._charged[cause]
