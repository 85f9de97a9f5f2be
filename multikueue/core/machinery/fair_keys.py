"""Keys in flows that take turns: a flow with ten thousand keys delays the key of another by one turn."""

from __future__ import annotations

import bisect
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)


@attrs.define(eq=False)
class FairKeys(Generic[K]):
    """Keys, each in one flow. Flows take turns; within one, keys come in the order of their times, and of equal times
    in the order in which they were added.

    With n flows that have keys, the first key of each is taken within n takes.
    """

    _keys: OrderedDict[Hashable, list[tuple[float, int, K]]] = attrs.field(factory=OrderedDict, init=False)
    """By flow, in the order of their turns, its keys in their order; none is empty."""
    _places: dict[K, tuple[Hashable, float, int]] = attrs.field(factory=dict, init=False)
    """The flow of each key, its time, and its number among equal times."""
    _order: int = attrs.field(default=0, init=False)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def add(self, key: K, flow: Hashable, at: float = 0.0) -> None:
        """Add a key to a flow. One that is in that flow keeps its place; it leaves any other, and keeps its time."""
        if key in self._places:
            before, at, _ = self._places[key]
            if before == flow:
                return
            self.discard(key)
        self._order += 1
        self._places[key] = flow, at, self._order
        bisect.insort(self._keys.setdefault(flow, []), (at, self._order, key))

    def discard(self, key: K) -> None:
        """Remove a key, if it is there."""
        if key in self._places:
            flow, at, order = self._places.pop(key)
            keys = self._keys[flow]
            del keys[bisect.bisect_left(keys, (at, order))]
            if not keys:
                del self._keys[flow]

    def crowd_out(self) -> K:
        """Remove and return the first key of the flow that has most."""
        longest = max(self._keys.values(), key=len)
        _, _, key = longest[0]
        self.discard(key)
        return key

    def has(self, may: Callable[[Hashable], bool]) -> bool:
        """Whether there is a key that `take` returns."""
        return any(map(may, self._keys))

    def take(self, may: Callable[[Hashable], bool] = lambda _: True) -> K | None:
        """Remove and return the first key of the flow whose turn it is; None if there is none.

        Args:
            may: whether keys of a flow may be taken now. A flow of which none may keeps its turn.
        """
        for flow, keys in self._keys.items():
            if may(flow):
                _, _, key = keys[0]
                self._keys.move_to_end(flow)
                self.discard(key)
                return key
        return None


def in_turns(keys: Iterable[K], flow_of: Callable[[K], Hashable]) -> Iterator[K]:
    """Keys of each flow in their order, flows in turn: of all that are too many, each flow has some of the first."""
    flows: dict[Hashable, deque[K]] = {}
    for key in keys:
        flows.setdefault(flow_of(key), deque()).append(key)
    turns = deque(flows.values())
    while turns:
        flow = turns.popleft()
        yield flow.popleft()
        if flow:
            turns.append(flow)
