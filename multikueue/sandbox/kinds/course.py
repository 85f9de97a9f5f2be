"""What the job runner asks of a kind: how a job's status moves, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

import attrs

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig


@attrs.frozen
class Ending:
    """How a job ended, in the words of a Workload's Finished condition."""

    reason: str
    """`Succeeded` or `Failed`."""
    message: str


@attrs.frozen
class Fate:
    """What happens to one start of one job."""

    duration: float
    """Seconds each pod runs."""
    fails: bool


@attrs.frozen
class Run:
    """One start of a job, on the loop's clock."""

    fate: Fate
    ready_at: float
    ends_at: float
    """When the pods that are there now end."""


@attrs.frozen
class Turn:
    """What to do about a job now."""

    status: Json | None = None
    """The status to write; None if it has it."""
    run: Run | None = None
    """Its run from now on; None if it does not run."""
    at: float | None = None
    """When, on the loop's clock, time alone changes something."""
    event: tuple[str, str] | None = None
    """Reason and note of the event to record."""


@attrs.frozen(kw_only=True)
class Moment:
    """What a decision about a job is made from, beside the job."""

    time: float
    """The loop's clock."""
    now: datetime
    """The wall clock, for the status."""
    startup: float
    """Seconds until a pod is ready."""
    draw: Callable[[], Fate]
    """Draws how long a new start runs, and how it ends."""
    suspended: bool = False
    """Whether the job is not to run."""
    deleted: bool = False
    """Whether its pods are being deleted with it."""
    ending: int = 0
    """How many of its pods have yet to end."""
    pods: Mapping[str, int] = attrs.field(factory=dict)
    """How many pods the job has, by role."""

    def started(self) -> Run:
        """A run that begins now."""
        drawn = self.draw()
        return Run(drawn, self.time + self.startup, self.time + max(self.startup, drawn.duration))


def seconds_left(obj: Json, field: str, began: str | None, now: datetime) -> float | None:
    """Until so much of it is over as a field of its spec allows; None: it allows any, or it has not begun."""
    allowed, since = dig(obj, "spec", field), parse_timestamp(began)
    return None if allowed is None or since is None else float(allowed) - (now - since).total_seconds()


def by_then(turn: Turn, left: float | None, moment: Moment) -> Turn:
    """The same, and another look once so many seconds have passed, if any are left."""
    if left is None or left <= 0 or turn.run is None:
        return turn
    return attrs.evolve(turn, at=moment.time + left if turn.at is None else min(turn.at, moment.time + left))


class Course(Protocol):
    """The way of a job of one kind from started to ended. All methods are pure."""

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """What becomes of a job now.

        Args:
            job: one that the kind's own controller is to run, or to stop.
            run: as the last turn left it.
            moment: times, the draw, and what the job wants.
        """

    def ending(self, job: Json) -> Ending | None:
        """How the job ended; None while it has not."""

    def is_active(self, job: Json) -> bool:
        """Whether pods of the job are still there: as long as they are, quota is held."""

    def pods_ready(self, job: Json) -> bool:
        """Whether all that should run does."""

    @property
    def ends(self) -> bool:
        """Whether jobs of this kind end by themselves."""
