"""The fleet's jobs while they are simulated."""

from __future__ import annotations

import attrs

from multikueue.core.dispatchers.dispatcher import Nomination
from multikueue.core.dispatchers.scored.starts import Interval
from tests.dispatch.kueue import Copy
from tests.dispatch.load import Job


@attrs.frozen
class Placement:
    """Where it has run before."""

    worker: str
    until: float
    reason: str


@attrs.define(eq=False)
class Workload:
    """One job's Workload on the manager."""

    job: Job
    quota: Copy
    """Its place in the manager's own Kueue."""
    queued: float
    """Since when it waits there."""
    reserved: float | None = None
    """Since when it has quota on the manager."""
    nominated: tuple[str, ...] = ()
    message: str = ""
    """Of the check."""
    copies: dict[str, Copy] = attrs.field(factory=dict)
    """By worker, from the request on."""
    answers: dict[str, str] = attrs.field(factory=dict)
    """What the copies' Kueues say, by worker."""
    winner: str | None = None
    """`status.clusterName`."""
    running: bool = False
    looks: int = 0
    """How often its dispatcher has been asked."""
    requests: int = 0
    """To workers, until it started."""
    writes: int = 0
    """To the manager."""
    evictions: int = 0
    """By workers where pods were not ready."""
    preemptions: int = 0
    started: float | None = None
    ended: float | None = None
    given_up: bool = False
    placements: list[Placement] = attrs.field(factory=list)
    promised: Interval | None = None
    """When it would start, as was said while it waited; None: nobody asked, or too little was known."""
    latest: Nomination | None = None
    """What its dispatcher answered last."""

    @property
    def waits(self) -> bool:
        """Whether it is its dispatcher's turn."""
        return self.reserved is not None and self.winner is None
