"""Slots for what is done at the same time: so many in all, fewer for some flows, and who is asked when one is free.

Whoever finds no place is not kept, only its key. When there is room, the key is asked again what it wants by then. That
may be nothing, or again nothing that fits; so the next one is asked as soon as that is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import attrs

from multikueue.core.machinery.fair_keys import FairKeys

K = TypeVar("K", bound=Hashable)


@attrs.define(eq=False)
class KeySlots(Generic[K]):
    """Who has a place, who waits for one, and who is being asked."""

    limit: int
    """Slots in all."""
    share: Callable[[Hashable], int]
    """How many of them a flow may have."""
    _inside: dict[K, Hashable] = attrs.field(factory=dict, init=False)
    """By key, its flow."""
    _asked: dict[K, Hashable] = attrs.field(factory=dict, init=False)
    """The same of those for whom a place is kept until they have said what they want."""
    _taken: Counter[Hashable] = attrs.field(factory=Counter, init=False)
    """By flow, the places of both."""
    _waiting: FairKeys[K] = attrs.field(factory=FairKeys, init=False)

    def enter(self, key: K, flow: Hashable) -> bool:
        """Take a place; if there is none, wait for one. A key that has one keeps it.

        Returns:
            Whether it has a place.
        """
        if key in self._inside:
            return True
        self._answered(key)
        if not self._has_room(flow):
            self._waiting.add(key, flow)
            return False
        self._waiting.discard(key)
        self._inside[key] = flow
        self._taken[flow] += 1
        return True

    def leave(self, key: K) -> None:
        """Give a place back."""
        self._give_back(self._inside, key)

    def withdraw(self, key: K) -> None:
        """A key wants no place now. If it has one, it keeps it."""
        self._answered(key)
        self._waiting.discard(key)

    def ask(self) -> list[K]:
        """The keys to be asked now, one for each free place. Each is to `enter` or to `withdraw` later."""
        asked: list[K] = []
        while len(self._inside) + len(self._asked) < self.limit:
            flows: list[Hashable] = []

            def may(flow: Hashable, flows: list[Hashable] = flows) -> bool:
                flows.append(flow)
                return self._taken[flow] < self.share(flow)

            key = self._waiting.take(may)
            if key is None:
                break
            self._asked[key] = flows[-1]
            self._taken[flows[-1]] += 1
            asked.append(key)
        return asked

    def __contains__(self, key: K) -> bool:
        """Whether a key waits or is being asked."""
        return key in self._asked or key in self._waiting

    @property
    def inside(self) -> int:
        """How many have a place."""
        return len(self._inside)

    @property
    def waiting(self) -> int:
        """How many wait, or are being asked."""
        return len(self._waiting) + len(self._asked)

    def _has_room(self, flow: Hashable) -> bool:
        return len(self._inside) + len(self._asked) < self.limit and self._taken[flow] < self.share(flow)

    def _answered(self, key: K) -> None:
        self._give_back(self._asked, key)

    def _give_back(self, keys: dict[K, Hashable], key: K) -> None:
        if key in keys:
            flow = keys.pop(key)
            self._taken[flow] -= 1
            if not self._taken[flow]:
                del self._taken[flow]
