"""What many keep within one bound, by flow: nobody keeps so much that another finds no room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Final, Generic, TypeVar

import attrs

from multikueue.core.machinery.fair_keys import FairKeys

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

PART: Final = 3, 4
"""Which part of what the others leave a flow may have. Of n flows that take all they can, a newcomer finds one part in
3n + 1 free, and may have three quarters of that."""


@attrs.frozen
class Need:
    """What of one Workload is, or would be, on a cluster."""

    bytes: int
    """As sent, of its Workload or of its jobs, whichever is more: kinds are listed each by itself."""
    objects: int = 1
    """Of one kind."""


@attrs.frozen
class UsedUp:
    """Whose share of what may be on a cluster is the largest, while somebody waits for a share."""

    namespace: str
    bytes: int
    objects: int
    waiting: int
    """Workloads of any namespace that are not offered there for want of a share."""


@attrs.define(eq=False)
class Shares(Generic[K]):
    """Amounts by key, each key in one flow."""

    limit: int
    """Of the sum."""
    _kept: dict[K, tuple[Hashable, int]] = attrs.field(factory=dict, init=False)
    """By key, its flow and its amount."""
    _by_flow: Counter[Hashable] = attrs.field(factory=Counter, init=False)
    total: int = attrs.field(default=0, init=False)

    def __repr__(self) -> str:
        return f"<Shares: {self.total} of {self.limit}, {len(self._by_flow)} flows>"

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def of(self, flow: Hashable) -> int:
        """How much a flow has."""
        return self._by_flow[flow]

    def kept(self, key: K) -> int:
        """How much a key has."""
        return self._kept[key][1] if key in self._kept else 0

    def flow_of(self, key: K) -> Hashable | None:
        """Whose a key is; None: it has nothing."""
        return self._kept[key][0] if key in self._kept else None

    def largest(self) -> Hashable | None:
        """The flow that has most; None: nobody has anything."""
        return max(self._by_flow, key=self.of, default=None)

    def has_room(self, flow: Hashable, amount: int) -> bool:
        """Whether a flow may keep so much more."""
        mine = self._by_flow[flow]
        part, of = PART
        return (mine + amount) * of <= (self.limit - (self.total - mine)) * part

    def keep(self, key: K, flow: Hashable, amount: int) -> None:
        """A key has this amount, whether or not there is room. It counts as the most that it has had."""
        before, had = self._kept.get(key, (flow, 0))
        if key in self._kept and before == flow and amount <= had:
            return
        self.drop(key)
        self._kept[key] = flow, max(amount, had)
        self._by_flow[flow] += max(amount, had)
        self.total += max(amount, had)

    def drop(self, key: K) -> None:
        """A key has nothing any more."""
        flow, amount = self._kept.pop(key, (None, 0))
        self.total -= amount
        if flow is not None:
            self._by_flow[flow] -= amount
            if self._by_flow[flow] <= 0:
                del self._by_flow[flow]


@attrs.define(eq=False, repr=False)
class LatestOfEach(MutableMapping[K, V]):
    """Values by key, each key in one flow. Beyond a number of all, the first goes of the flow that has most."""

    limit: int
    flow_of: Callable[[K], Hashable]
    _values: dict[K, V] = attrs.field(factory=dict, init=False)
    _order: FairKeys[K] = attrs.field(factory=FairKeys, init=False)

    def __repr__(self) -> str:
        return f"<LatestOfEach: {len(self)} of {self.limit}>"

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __setitem__(self, key: K, value: V) -> None:
        self._values[key] = value
        self._order.add(key, self.flow_of(key))
        if len(self) > self.limit:
            del self._values[self._order.crowd_out()]

    def __delitem__(self, key: K) -> None:
        del self._values[key]
        self._order.discard(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
