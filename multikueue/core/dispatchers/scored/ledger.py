"""Who is ahead: the room that waiting Workloads of this manager have a claim to, on every queue of the workers.

One ledger serves the manager. It is a function of what was put in last, whatever the order it came in, and costs per
change in proportion to the number of *different* requests that wait, not to the number of Workloads.
"""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.core.dispatchers.scored.facts import FlavorAmounts, Place, QueueFacts, Request
from multikueue.core.model.names import ObjectKey


@attrs.frozen
class Entry:
    """A Workload with quota on the manager and no worker yet."""

    key: ObjectKey
    uid: str
    queue: str
    """Its ClusterQueue on the manager."""
    priority: int
    """Effective."""
    queued: datetime
    """Kueue's queue timestamp."""
    reserved: datetime
    """When it got its quota."""
    request: Request
    places: tuple[Place, ...]
    """Where it could go: what passes the filter, best first."""
    offered: tuple[Place, ...] = ()
    """Where it has, or is about to have, a copy without quota."""
    held_since: datetime | None = None
    """None: it is offered."""


class Ledger:
    """Entries and queues."""

    def put(self, entry: Entry) -> None:
        """Insert or replace by key; an equal one changes nothing."""
        raise NotImplementedError

    def drop(self, key: ObjectKey) -> None:
        """It has a worker, has ended, or has lost its quota."""
        raise NotImplementedError

    def set_queue(self, place: Place, facts: QueueFacts | None) -> None:
        """A queue as it is now; None: it is gone, or the worker is."""
        raise NotImplementedError

    def net(self, key: ObjectKey, place: Place, now: datetime) -> FlavorAmounts:
        """Free at a place for one Workload, net of offers and of the claims ahead of it."""
        raise NotImplementedError

    def woken(self, now: datetime) -> tuple[ObjectKey, ...]:
        """Held Workloads to plan again since the last call: those for which a free that has grown has room now, oldest
        first, as many as fit. Empty after anything but growth."""
        raise NotImplementedError
