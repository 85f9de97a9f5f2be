"""What stands in the way of copies on a worker: others' objects of the same name, and refusals.

Others' objects cannot be seen: our watches show only what carries our label. That one is there is learnt when a
creation is refused. But the same happens after a lost reply, when the object is our own and its event is on the way. So
an obstacle counts only once the watch has had time to show the object, and is tried again after a while.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs

from multikueue.core.model.names import ObjectKey, Resource
from multikueue.runtime.clock import loop_time

CERTAIN_AFTER: Final = 5.0
"""Seconds a watch may lag behind the answer to a write; it is milliseconds as a rule."""
FORGOTTEN_AFTER: Final = 300.0
"""Seconds until a worker is offered the Workload again: the other object may have been removed."""


@attrs.define(eq=False)
class CreateConflicts:
    """What stands in the way on one worker, by Workload."""

    _since: dict[tuple[Resource, ObjectKey], dict[ObjectKey, float]] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        """Of how many Workloads and kinds something is remembered."""
        return len(self._since)

    def met(self, resource: Resource, workload: ObjectKey, key: ObjectKey) -> float:
        """A creation for this Workload was refused; returns for how many seconds that has been so.

        Args:
            resource: of the object that was to be created.
            workload: whose object it is.
            key: its name.
        """
        now, since = loop_time(), self._since.pop((resource, workload), {})
        self._forget_abandoned(now)
        self._since[resource, workload] = since  # it comes last
        if now - since.get(key, float("-inf")) >= FORGOTTEN_AFTER:
            since[key] = now
        return now - since[key]

    def block(self, resource: Resource, workload: ObjectKey, *, own: Collection[ObjectKey]) -> float | None:
        """For how many seconds the Workload is not offered to this worker; None if nothing is in the way.

        Args:
            resource: of the objects that must be created.
            workload: whose objects they are.
            own: our own objects of that kind that can be seen: if one of them was in the way, it was ours.
        """
        since = self._since.get((resource, workload))
        if since is None:
            return None
        now = loop_time()
        for key in [key for key, met in since.items() if key in own or now - met >= FORGOTTEN_AFTER]:
            del since[key]
        if not since:
            del self._since[resource, workload]
        certain = [FORGOTTEN_AFTER - (now - met) for met in since.values() if now - met >= CERTAIN_AFTER]
        return max(1.0, *certain) if certain else None  # a moment too early would be a moment too often

    def _forget_abandoned(self, now: float) -> None:
        """Forget those of Workloads that nobody asks about any more, the oldest first."""
        while self._since:
            oldest, since = next(iter(self._since.items()))
            if any(now - met < FORGOTTEN_AFTER for met in since.values()):
                return
            del self._since[oldest]
