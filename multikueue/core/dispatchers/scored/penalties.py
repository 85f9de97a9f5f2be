"""Workers at fault: what a job remembers of one, and what a worker itself carries.

A job's placements (`multikueue.dev/placements` on its Workload) say which ended by the worker's fault. Failures of
different jobs lie in the annotation `multikueue.dev/failures` of the MultiKueueCluster, which outlives the Workloads,
and a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.model.conditions import parse_timestamp, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.placements import FAULT

FAILURES_ANNOTATION: Final = "multikueue.dev/failures"
SHORTEST: Final = timedelta(hours=1)
LONGEST: Final = timedelta(hours=8)


def failed_on(placements: Sequence[Json], workers: Iterable[str], now: datetime) -> dict[str, datetime]:
    """The workers that a job does not go to, and until when: those it failed on since all had failed it.

    It goes back after `SHORTEST`: the others may have no room for ever.

    Args:
        placements: of the job, the last one at the end (`core.workload.check_updates`).
        workers: those that could take it.
        now: the manager's wall clock.
    """
    able, failed = set(workers), dict[str, datetime]()
    for placement in placements:
        worker, ended = placement.get("worker"), parse_timestamp(str(placement.get("until")))
        if placement.get("fault") == FAULT and isinstance(worker, str) and ended is not None:
            failed[worker] = min(ended, now) + SHORTEST  # whoever may change the Workload writes this
            if failed.keys() >= able:
                failed.clear()
    return {worker: until for worker, until in failed.items() if now < until}


@attrs.frozen
class Failures:
    """What a MultiKueueCluster carries."""

    owners: tuple[tuple[str, datetime], ...] = ()
    """Whose jobs failed there, and when last."""
    until: datetime | None = None
    """When the penalty ends; None: there has been none."""
    hours: int = 0
    """How long the last penalty was."""

    @classmethod
    def parse(cls, annotation: str | None) -> Failures:
        """Read the annotation; nothing if it is damaged."""
        try:
            noted: Any = json.loads(annotation or "{}")
            listed = [(str(owner), parse_timestamp(str(at))) for owner, at in dict(noted.get("owners") or {}).items()]
            hours = min(max(0, int(noted.get("hours") or 0)), LONGEST // SHORTEST)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return cls()
        owners = tuple((owner, at) for owner, at in listed if at is not None)
        return cls(owners, parse_timestamp(str(noted.get("until") or "")), hours)

    def failed(self, owner: str, at: datetime) -> Failures:
        """After a job of this owner has failed there by the worker's fault.

        Two of different owners within `LONGEST` make a penalty of an hour; one within `LONGEST` after a penalty makes
        the next, twice as long. One that ends while a penalty lasts began before, and changes nothing. Nor does an
        owner's next one within `SHORTEST`: what is said is written.
        """
        known = dict(self.owners)
        if self.penalized(at) or (owner in known and at - known[owner] < SHORTEST):
            return self
        recent = {earlier: when for earlier, when in known.items() if at - when < LONGEST} | {owner: at}
        owners = tuple(sorted(recent.items(), key=lambda item: item[1]))[-5:]
        again = self.until is not None and at - self.until < LONGEST
        if len(owners) < 2 and not again:
            return Failures(owners)
        hours = min(self.hours * 2 if again else 1, LONGEST // SHORTEST)
        return Failures(owners, at + timedelta(hours=hours), hours)

    def penalized(self, now: datetime) -> bool:
        """Whether it ranks last."""
        return self.until is not None and now < self.until

    def __str__(self) -> str:
        """The annotation; empty: there is none. A success clears all: write none."""
        if not self.owners and self.until is None:
            return ""
        noted = {"owners": {owner: timestamp(at) for owner, at in self.owners}}
        penalty = {"until": timestamp(self.until), "hours": self.hours} if self.until is not None else {}
        return json.dumps(noted | penalty, separators=(",", ":"))


@attrs.frozen
class WorkerVerdict:
    """What the end of a job's time on a worker says of the worker."""

    owner: str
    """Whose it was: its namespace."""
    failed: bool
    """Whether by the worker's fault; otherwise the job has succeeded there."""
    at: datetime


def together(ended: Sequence[WorkerVerdict], verdict: WorkerVerdict) -> tuple[WorkerVerdict, ...]:
    """What counts of those that ended, in the order of time, and one more: at most one of each owner."""
    return (*(other for other in ended if other.owner != verdict.owner), verdict) if verdict.failed else (verdict,)


def noted(annotation: str | None, ended: Sequence[WorkerVerdict]) -> str | None:
    """What a MultiKueueCluster's annotation is to be after these have ended; empty: away with it; None: it stays.

    Args:
        annotation: as it is.
        ended: in the order of time. A success clears what was before it.
    """
    before = after = Failures.parse(annotation)
    for verdict in ended:
        after = after.failed(verdict.owner, verdict.at) if verdict.failed else Failures()
    return None if after == before else str(after)
