"""Keys in flows that take turns: a flow with ten thousand keys delays the key of another by one turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)


@attrs.define(eq=False)
class Flows(Generic[K]):
    """Keys, each in one flow. Flows take turns; within one, keys come in the order in which they were added.

    With n flows that have keys, the first key of each is taken within n takes.
    """

    _keys: OrderedDict[Hashable, dict[K, None]] = attrs.field(factory=OrderedDict, init=False)
    """By flow, in the order of their turns; none is empty."""
    _flow: dict[K, Hashable] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._flow)

    def __contains__(self, key: K) -> bool:
        return key in self._flow

    def add(self, key: K, flow: Hashable) -> None:
        """Add a key at the end of a flow. One that is in that flow keeps its place; it leaves any other."""
        if key in self._flow:
            if self._flow[key] == flow:
                return
            self.discard(key)
        self._flow[key] = flow
        self._keys.setdefault(flow, {})[key] = None

    def discard(self, key: K) -> None:
        """Remove a key, if it is there."""
        if key in self._flow:
            flow = self._flow.pop(key)
            del self._keys[flow][key]
            if not self._keys[flow]:
                del self._keys[flow]

    def take(self, may: Callable[[Hashable], bool] = lambda _: True) -> K | None:
        """Remove and return the first key of the flow whose turn it is; None if there is none.

        Args:
            may: whether keys of a flow may be taken now. A flow of which none may keeps its turn.
        """
        for flow, keys in self._keys.items():
            if may(flow):
                key = next(iter(keys))
                self._keys.move_to_end(flow)
                self.discard(key)
                return key
        return None
