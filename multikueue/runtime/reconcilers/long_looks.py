"""Workloads that take long to look at: a namespace has a fifth of the loop for all of its own.

How many pods a group has is its tenant's choice: with a thousand a snapshot and its plan take 35 ms, and each change of
a pod asks for them. In turn with those of others, which take 2 ms, one such group had nearly all of the loop.
"""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.core.model.names import ObjectKey
from multikueue.runtime.loop import loop_time

MANY: Final = 64
"""Jobs of one Workload, here and on workers: with more it takes long. The time does not decide: on a busy machine every
look may take long."""
REST: Final = 4
"""After a look the namespace's Workloads of this kind rest for so many times as long as it took."""
MOST_REST: Final = 1.0
"""Seconds of it at most: the machine may have been busy with something else while one was looked at."""


@attrs.define(eq=False)
class LongLooks:
    """When those are looked at again."""

    _large: set[ObjectKey] = attrs.field(factory=set, init=False)
    """The Workloads that had many jobs when they were looked at last."""
    _rests_until: dict[str, float] = attrs.field(factory=dict, init=False)
    """By namespace; as many as have such Workloads."""

    def rest(self, key: ObjectKey) -> float:
        """For how many seconds a Workload is not looked at; 0: it may be now."""
        return max(0.0, self._rests_until.get(key.namespace, 0.0) - loop_time()) if key in self._large else 0.0

    def looked(self, key: ObjectKey, jobs: int, began: float) -> None:
        """A Workload was looked at.

        Args:
            key: the Workload.
            jobs: how many it has, here and on workers.
            began: when the look did, on the loop's clock.
        """
        now = loop_time()
        if jobs > MANY:
            self._large.add(key)
            self._rests_until[key.namespace] = now + min(REST * (now - began), MOST_REST)
        elif key in self._large:
            self._large.discard(key)
            if not any(key.namespace == large.namespace for large in self._large):
                self._rests_until.pop(key.namespace, None)
