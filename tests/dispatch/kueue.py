"""A cluster's Kueue: BestEffortFIFO by priority and age, cohorts, and preemption by priority."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any, Final, Protocol

import attrs

from tests.dispatch.clock import Clock
from tests.dispatch.load import Request
from tests.dispatch.quota import QuotaNode

Shape = tuple[Request, tuple[int, ...], int]
"""What decides whether a copy fits: request, flavors, priority."""


class State(Enum):
    """Of a copy."""

    PENDING = auto()
    RESERVED = auto()
    REFUSED = auto()
    """No flavor could ever hold it."""
    GONE = auto()


@attrs.define(eq=False)
class Copy:
    """A Workload in this Kueue."""

    owner: Any
    """Whose it is: nothing that Kueue looks at."""
    request: Request
    flavors: tuple[int, ...]
    priority: int
    created: float
    gated: bool = False
    """Whether it must not preempt before its gate is opened."""
    state: State = State.PENDING
    flavor: int = -1
    """The one it got."""
    reserved_at: float = 0.0
    delay: float = 0.0
    """Seconds that each request of it takes beside its way: one after the other, so that they stay in their order."""
    blocked: bool = False
    """Whether only its gate keeps it from preempting."""
    made: float = 0.0
    """When its pods were made."""
    job: Any = None
    """What its pods run."""


class Listener(Protocol):
    """Who is told."""

    def admitted(self, copy: Copy) -> None:
        """It has got quota."""

    def preempted(self, copy: Copy) -> None:
        """It has lost its quota to another copy."""

    def answered(self, copy: Copy) -> None:
        """It is refused, or kept by its preemption gate."""

    def changed(self) -> None:
        """Usage, or the number of those that wait, is another."""


class ClusterQueue:
    """One queue, its quota and what waits for it."""

    def __init__(self, node: QuotaNode, *, within: bool = True, reclaim: bool = False) -> None:
        """`within`: preempts lower priorities in itself; `reclaim`: also those in its cohort who borrow."""
        self.node = node
        self.within = within
        self.reclaim = reclaim
        self.shapes: dict[Shape, list[tuple[float, int, Copy]]] = {}
        self.pending = 0
        self.running: dict[Copy, None] = {}
        self.priorities: dict[int, int] = {}

    def head(self, shape: Shape) -> Copy | None:
        """The oldest that waits with this shape."""
        waiting = self.shapes.get(shape)
        while waiting:
            copy = waiting[0][2]
            if copy.state is State.PENDING:
                return copy
            heapq.heappop(waiting)
        self.shapes.pop(shape, None)
        return None

    def has_lower(self, priority: int) -> bool:
        """Whether one runs that has a lower priority."""
        return any(lower < priority for lower in self.priorities)


def shape_of(copy: Copy) -> Shape:
    """See `Shape`."""
    return copy.request, copy.flavors, copy.priority


_MOST_VICTIMS: Final = 64


class Kueue:
    """Admits what fits at once: what waits never fits, until something is given back."""

    def __init__(self, clock: Clock, queues: tuple[ClusterQueue, ...], listener: Listener) -> None:
        self.queues = queues
        self._clock = clock
        self._listener = listener
        self._number = itertools.count()

    def submit(self, copy: Copy, queue: ClusterQueue) -> None:
        """It arrives."""
        if not any(queue.node.holds(flavor, copy.request) for flavor in copy.flavors):
            copy.state = State.REFUSED
            queue.pending += 1
            self._listener.answered(copy)
        elif not self._admit(copy, queue):
            heapq.heappush(queue.shapes.setdefault(shape_of(copy), []), (copy.created, next(self._number), copy))
            queue.pending += 1
        self._listener.changed()

    def remove(self, copy: Copy, queue: ClusterQueue) -> None:
        """It is deleted, or has ended."""
        before = copy.state
        copy.state = State.GONE
        if before is State.RESERVED:
            self._release(copy, queue)
            self._schedule()
        elif before is not State.GONE:
            queue.pending -= 1
        self._listener.changed()

    def open_gate(self, copy: Copy, queue: ClusterQueue) -> None:
        """It may preempt."""
        copy.gated = False
        if copy.state is State.PENDING and self._admit(copy, queue):
            queue.pending -= 1
            self._listener.changed()

    def _schedule(self) -> None:
        """Room was made: the best of each shape is tried, and the next of it if that fits."""
        heads = [
            (-copy.priority, copy.created, next(self._number), copy, queue, shape)
            for queue in self.queues
            for shape in tuple(queue.shapes)
            if (copy := queue.head(shape))
        ]
        heapq.heapify(heads)
        while heads:
            _, _, _, copy, queue, shape = heapq.heappop(heads)
            if not self._admit(copy, queue):
                continue
            queue.pending -= 1
            if following := queue.head(shape):
                heapq.heappush(
                    heads, (-following.priority, following.created, next(self._number), following, queue, shape)
                )

    def _admit(self, copy: Copy, queue: ClusterQueue) -> bool:
        node = queue.node
        for flavor in copy.flavors:
            if node.fits(flavor, copy.request):
                self._reserve(copy, queue, flavor)
                return True
        for flavor in copy.flavors:
            victims = self._victims(copy, queue, flavor)
            if not victims:
                continue
            if copy.gated:
                if not copy.blocked:
                    copy.blocked = True
                    self._listener.answered(copy)
                return False
            for victim, home in victims:
                self._release(victim, home)
                victim.state = State.GONE
                self._listener.preempted(victim)
            self._reserve(copy, queue, flavor)
            return True
        return False

    def _reserve(self, copy: Copy, queue: ClusterQueue, flavor: int) -> None:
        queue.node.reserve(flavor, copy.request)
        queue.running[copy] = None
        queue.priorities[copy.priority] = queue.priorities.get(copy.priority, 0) + 1
        copy.state, copy.flavor, copy.reserved_at = State.RESERVED, flavor, self._clock.now
        self._listener.admitted(copy)

    def _release(self, copy: Copy, queue: ClusterQueue) -> None:
        queue.node.free(copy.flavor, copy.request)
        del queue.running[copy]
        queue.priorities[copy.priority] -= 1
        if not queue.priorities[copy.priority]:
            del queue.priorities[copy.priority]

    def _victims(self, copy: Copy, queue: ClusterQueue, flavor: int) -> list[tuple[Copy, ClusterQueue]]:
        """Whom it may preempt to fit, the lowest priority and the youngest first; empty: it would not fit."""
        taken: list[tuple[Copy, ClusterQueue]] = []
        fits = False
        for victim, home in itertools.islice(self._preemptible(copy, queue, flavor), _MOST_VICTIMS):
            home.node.free(flavor, victim.request)
            taken.append((victim, home))
            fits = queue.node.fits(flavor, copy.request)
            if fits:
                break
        for victim, home in reversed(taken):
            home.node.reserve(flavor, victim.request)
        return taken if fits else []

    def _preemptible(self, copy: Copy, queue: ClusterQueue, flavor: int) -> Iterator[tuple[Copy, ClusterQueue]]:
        if queue.reclaim and queue.node.owns(flavor, copy.request):
            for other in self.queues:
                if other is not queue and other.node.borrows():
                    yield from ((c, other) for c in reversed(other.running) if c.flavor == flavor)
        if queue.within and queue.has_lower(copy.priority):
            lower = [c for c in reversed(queue.running) if c.flavor == flavor and c.priority < copy.priority]
            yield from ((c, queue) for c in sorted(lower, key=lambda c: c.priority))
