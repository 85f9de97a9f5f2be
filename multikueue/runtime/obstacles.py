"""Names that somebody else's objects have on a worker.

They cannot be seen: our watches show only what carries our label. That one is there is learnt when a creation is
refused. But the same happens after a lost reply, when the object is our own and its event is on the way. So an
obstacle counts only once the watch has had time to show the object, and is tried again after a while.
"""

from __future__ import annotations

from typing import Final

import anyio
import attrs

from multikueue.core.names import ObjectKey, Resource

CERTAIN_AFTER: Final = 5.0
"""Seconds a watch may lag behind the answer to a write; it is milliseconds as a rule."""
FORGOTTEN_AFTER: Final = 300.0
"""Seconds until a worker is offered the Workload again: the other object may have been removed."""


@attrs.define(eq=False)
class Obstacles:
    """What stands in the way on one worker, by Workload."""

    _since: dict[tuple[Resource, ObjectKey], float] = attrs.field(factory=dict, init=False)

    def met(self, resource: Resource, workload: ObjectKey) -> None:
        """A creation for this Workload was refused because the name is taken."""
        now = anyio.current_time()
        if now - self._since.get((resource, workload), float("-inf")) > FORGOTTEN_AFTER:
            self._since[resource, workload] = now

    def block(self, resource: Resource, workload: ObjectKey, *, own: bool) -> bool:
        """Whether the Workload cannot run there.

        Args:
            resource: of the object that must be created.
            workload: whose object it is.
            own: whether our own object of that kind can be seen: then it was that one.
        """
        since = self._since.get((resource, workload))
        if since is None:
            return False
        if own:
            del self._since[resource, workload]
            return False
        return CERTAIN_AFTER <= anyio.current_time() - since <= FORGOTTEN_AFTER
