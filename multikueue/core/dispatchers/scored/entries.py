"""Workloads with quota on the manager and no worker yet, and the order among them."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import NamedTuple

import attrs

from multikueue.core.dispatchers.scored.facts import FlavorAmounts, Place, ResourceRequest, Shape
from multikueue.core.model.names import ObjectKey


class Rank(NamedTuple):
    """The order inside a manager's ClusterQueue."""

    lower: int
    queued: datetime
    uid: str
    key: ObjectKey


class Kind(NamedTuple):
    """Held Workloads that fit at the same places at the same time."""

    queue: str
    shape: Shape
    places: tuple[Place, ...]


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
    request: ResourceRequest
    places: tuple[Place, ...]
    """Where it could go: what passes the filter, best first."""
    offered: tuple[Place, ...] = ()
    """Where it has, or is about to have, a copy without quota. Empty: it is held."""
    doubtful: bool = False
    """Whether nobody has taken it there in time: that takes no room, and it waits for the other places as if held."""
    unplaced: tuple[Place, ...] = ()
    """Where it was told that nodes have no place for its pods."""
    without_room: bool = False
    """Whether it fits nowhere where it is offered: that keeps what is free there, and it waits for the other places."""

    @cached_property
    def waits_for(self) -> tuple[Place, ...] | None:
        """Where it stands in line, best first; None: it does not."""
        if self.offered and not self.doubtful and not self.without_room:
            return None
        return tuple(place for place in self.places if place not in self.offered)

    @property
    def rank(self) -> Rank:
        """Its place among those of its ClusterQueue."""
        return Rank(-self.priority, self.queued, self.uid, self.key)

    @cached_property
    def kind(self) -> Kind:
        """With which others it is counted."""
        return Kind(self.queue, self.request.shape, tuple(sorted(self.waits_for or ())))


@attrs.frozen
class Line:
    """Those that fit at one place, in order."""

    base: FlavorAmounts
    """Free without what our offers take."""
    before: dict[ObjectKey, FlavorAmounts]
    """What is free when its turn comes, of each that fits."""
    rest: FlavorAmounts
    """What is free for all others."""
