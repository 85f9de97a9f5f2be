"""Workloads with quota on the manager and no worker yet, and the order among them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import attrs

from multikueue.core.dispatchers.scored.facts import USUAL, FlavorAmounts, Place, ResourceRequest, Shape
from multikueue.core.model.names import ObjectKey

Age: TypeAlias = tuple[datetime, str, ObjectKey]


class Rank(NamedTuple):
    """The order inside a manager's ClusterQueue."""

    lower: int
    queued: datetime
    uid: str
    key: ObjectKey


class Kind(NamedTuple):
    """Held Workloads that fit at the same places at the same time, and run for about as long."""

    queue: str
    shape: Shape
    places: tuple[Place, ...]
    lasts: int
    """How long they run, rounded up: two to the half of this, in seconds."""

    def ends_within(self, seconds: float) -> bool:
        """Whether they do, by estimate."""
        return math.exp2(self.lasts / 2) <= seconds


RESERVED_AFTER: Final = timedelta(minutes=1)
"""How long a Workload is held until it may get the reservation."""
ESTIMATED: Final = 30
"""Seconds for which it counts when its owner could start."""


@attrs.frozen
class Reservation:
    """Who is to start next at a place where it has no room yet."""

    owner: ObjectKey
    wait: float
    """Seconds until it could start, by estimate: what ends before may use what is kept free. Infinity: by what we know
    it could not, and whoever fits may."""

    @staticmethod
    def estimated_at(now: datetime) -> datetime:
        """When that is reckoned: not at each moment anew."""
        return now.replace(second=now.second // ESTIMATED * ESTIMATED, microsecond=0)


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

    run_time: float = USUAL
    """Seconds that it runs, at most or by estimate."""
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

    @property
    def age(self) -> Age:
        """The smallest has been held for the longest time."""
        return self.reserved, self.uid, self.key

    @cached_property
    def kind(self) -> Kind:
        """With which others it is counted."""
        lasts = math.ceil(2 * math.log2(max(1.0, self.run_time)))
        return Kind(self.queue, self.request.shape, tuple(sorted(self.waits_for or ())), lasts)


@attrs.define
class Held:
    """The held Workloads of one kind."""

    ranked: list[Rank] = attrs.field(factory=list)
    aged: list[Age] = attrs.field(factory=list)


@attrs.frozen
class Line:
    """Those that fit at one place, in order."""

    base: FlavorAmounts
    """Free without what our offers take."""
    before: dict[ObjectKey, FlavorAmounts]
    """What is free when its turn comes, of each that fits, and of the one that has the reservation."""
    fits: dict[ObjectKey, None]
    rest: FlavorAmounts
    """What is free for all others."""
    reservation: Reservation | None
