"""Workers at fault: what a job remembers of one, and what a worker itself carries.

A job's placements (`multikueue.dev/placements` on its Workload) say which ended by the worker's fault. Failures of
different jobs are read from the annotation `multikueue.dev/failures` of the MultiKueueCluster, which outlives the
Workloads, and a restart. We do not write it yet: that needs a right to patch MultiKueueClusters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.model.conditions import condition, is_true, parse_timestamp, timestamp
from multikueue.core.model.names import Json

FAILURES_ANNOTATION: Final = "multikueue.dev/failures"
FAULT: Final = "worker"
"""What an entry of the placements has as `fault` if the worker is to blame."""
SHORTEST: Final = timedelta(hours=1)
LONGEST: Final = timedelta(hours=8)

_FAULTY: Final = frozenset({"PodsReadyTimeout", "AdmissionCheck"})
"""Reasons of a worker's Kueue to evict a copy: pods never ready, or its own checks (provisioning) failed."""


def is_fault(copy: Json) -> bool:
    """Whether a worker evicted its copy because something is wrong there. A lost worker is at fault, too."""
    evicted = condition(copy, "Evicted") or {}
    return is_true(copy, "Evicted") and str(evicted.get("reason")) in _FAULTY


def failed_on(placements: Sequence[Json], workers: Iterable[str]) -> frozenset[str]:
    """The workers of a job's config that it does not go to: those it failed on since all of them had failed it.

    Args:
        placements: of the job, the last one at the end (`core.workload.history`).
        workers: those that could take it.
    """
    able, failed = set(workers), set[str]()
    for placement in placements:
        worker = placement.get("worker")
        if placement.get("fault") == FAULT and isinstance(worker, str):
            failed.add(worker)
            if failed >= able:
                failed.clear()
    return frozenset(failed)


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
            hours = int(noted.get("hours") or 0)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()
        owners = tuple((owner, at) for owner, at in listed if at is not None)
        return cls(owners, parse_timestamp(str(noted.get("until") or "")), hours)

    def failed(self, owner: str, now: datetime) -> Failures:
        """After a job of this owner has failed there by the worker's fault.

        Two of different owners within `LONGEST` make a penalty of an hour; each failure after it doubles it. One that
        ends while the penalty lasts began before, and changes nothing.
        """
        recent = {one: at for one, at in self.owners if now - at < LONGEST} | {owner: now}
        owners = tuple(sorted(recent.items()))[-5:]
        if self.penalized(now) or len(owners) < 2:
            return attrs.evolve(self, owners=owners)
        hours = min(max(1, self.hours * 2), LONGEST // SHORTEST)
        return Failures(owners, now + timedelta(hours=hours), hours)

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
