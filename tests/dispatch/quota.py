"""Quotas in a tree of cohorts, as Kueue counts them.

Written for speed, and apart from the product's own port: amounts lie in lists, at `2 * flavor + resource`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.dispatch.load import Request

UNLIMITED: Final = 1 << 60


class QuotaNode:
    """A ClusterQueue's quota, or a cohort's."""

    def __init__(
        self,
        nominal: Sequence[int],
        parent: QuotaNode | None = None,
        borrowing: Sequence[int] | None = None,
        lending: Sequence[int] | None = None,
    ) -> None:
        """Amounts without a limit: None."""
        self.nominal = list(nominal)
        self.parent = parent
        self.borrowing = list(borrowing) if borrowing is not None else None
        self.lending = list(lending) if lending is not None else None
        self.subtree = list(nominal)
        self.usage = [0] * len(self.nominal)
        if parent is not None:
            for i, amount in enumerate(self.subtree):
                parent.grow(i, amount - self._kept(i))

    def grow(self, i: int, amount: int) -> None:
        """Count what a child lends."""
        before = self.subtree[i] - self._kept(i)
        self.subtree[i] += amount
        if self.parent is not None:
            self.parent.grow(i, self.subtree[i] - self._kept(i) - before)

    def _kept(self, i: int) -> int:
        """What it never lends."""
        if self.parent is None or self.lending is None:
            return 0
        return max(0, self.subtree[i] - self.lending[i])

    def available(self, i: int) -> int:
        """Kueue's `available()`."""
        parent = self.parent
        if parent is None:
            return self.subtree[i] - self.usage[i]
        kept = self._kept(i)
        above = parent.available(i)
        if self.borrowing is not None:
            stored = self.subtree[i] - kept
            above = min(above, stored - max(0, self.usage[i] - kept) + self.borrowing[i])
        return max(0, kept - self.usage[i]) + above

    def ceiling(self, i: int) -> int:
        """What could be used if nobody else used anything."""
        parent = self.parent
        if parent is None:
            return self.subtree[i]
        above = self._kept(i) + parent.ceiling(i)
        return above if self.borrowing is None else min(above, self.subtree[i] + self.borrowing[i])

    def add(self, i: int, amount: int) -> None:
        """Use it, the rest from the cohort."""
        parent = self.parent
        if parent is not None:
            above = amount - max(0, self._kept(i) - self.usage[i])
            if above > 0:
                parent.add(i, above)
        self.usage[i] += amount

    def release(self, i: int, amount: int) -> None:
        """Give it back, what was borrowed first."""
        stored = self.usage[i] - self._kept(i)
        self.usage[i] -= amount
        if self.parent is not None and stored > 0:
            self.parent.release(i, min(amount, stored))

    def fits(self, flavor: int, request: Request) -> bool:
        """Whether there is room for it now."""
        gpus, cpus = request
        i = 2 * flavor
        return (not gpus or gpus <= self.available(i)) and (not cpus or cpus <= self.available(i + 1))

    def holds(self, flavor: int, request: Request) -> bool:
        """Whether there could ever be room for it."""
        return request[0] <= self.ceiling(2 * flavor) and request[1] <= self.ceiling(2 * flavor + 1)

    def owns(self, flavor: int, request: Request) -> bool:
        """Whether it would not borrow with it."""
        i = 2 * flavor
        return all(self.usage[i + n] + request[n] <= self.nominal[i + n] for n in (0, 1) if request[n])

    def reserve(self, flavor: int, request: Request) -> None:
        """Use one flavor."""
        self.add(2 * flavor, request[0])
        self.add(2 * flavor + 1, request[1])

    def free(self, flavor: int, request: Request) -> None:
        """Give it back."""
        self.release(2 * flavor, request[0])
        self.release(2 * flavor + 1, request[1])

    def borrows(self) -> bool:
        """Whether more is used than is its own."""
        return any(used > own for used, own in zip(self.usage, self.nominal, strict=True))
