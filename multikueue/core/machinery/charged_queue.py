"""A work queue in which keys that somebody caused are at their expense."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

import attrs

from multikueue.core.machinery.queue import WorkQueue

K = TypeVar("K", bound=Hashable)


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
