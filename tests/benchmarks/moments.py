"""When what was seen, and the latencies between: all by one process's clock, from the arrival of watch events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from multikueue.core.model.names import Json

SUBMITTED: Final = "submitted"
"""Just before the request that creates the job."""
CREATED: Final = "created"
"""The job on the manager."""
QUOTA: Final = "quota"
"""Reserved on the manager."""
ADMITTED: Final = "admitted there"
"""The first copy of the Workload that a worker admitted."""
READY: Final = "ready"
"""Our check on the manager's Workload."""
ADMITTED_HERE: Final = "admitted here"
"""The Workload on the manager."""
COMPLETE_THERE: Final = "complete there"
FINISHED_THERE: Final = "finished there"
"""The copy of the Workload on the worker."""
COMPLETE: Final = "complete"
"""The job on the manager."""
FINISHED: Final = "finished"
"""The Workload on the manager."""

LATENCIES: Final[Mapping[str, tuple[str, str]]] = {
    "created_ready": (CREATED, READY),
    "created_finished": (CREATED, FINISHED),
    "admitted_ready": (ADMITTED, READY),
    "finished_finished": (FINISHED_THERE, FINISHED),
    "complete_complete": (COMPLETE_THERE, COMPLETE),
}
"""What is reported, each from one moment to another; the last two for Workload and job.

A controller may let a job end before anybody sees Ready: only `created_finished` is there for all jobs."""


@attrs.define(eq=False)
class Moments:
    """The first time that each thing was seen of each job, in seconds."""

    seen: dict[str, dict[str, float]] = attrs.field(factory=dict)

    def note(self, job: str, what: str, when: float) -> None:
        """Something was seen, again or for the first time."""
        self.seen.setdefault(job, {}).setdefault(what, when)

    def count(self, what: str) -> int:
        """Of how many jobs that was seen."""
        return sum(what in moments for moments in self.seen.values())

    def all(self, what: str) -> list[float]:
        """When that was seen, in the order of time."""
        return sorted(moments[what] for moments in self.seen.values() if what in moments)

    def latencies(self, name: str) -> list[tuple[float, float]]:
        """For each job that has both moments: the first one, and the seconds from there to the second."""
        return self.between(*LATENCIES[name])

    def between(self, begin: str, end: str) -> list[tuple[float, float]]:
        """The same for any two moments."""
        pairs = ((moments.get(begin), moments.get(end)) for moments in self.seen.values())
        return sorted((first, last - first) for first, last in pairs if first is not None and last is not None)

    def rate(self, what: str, since: str = CREATED) -> float:
        """Jobs per second, from the first that was created to the last of which that was seen."""
        begin, end = self.all(since), self.all(what)
        return len(end) / (end[-1] - begin[0]) if begin and end and end[-1] > begin[0] else 0.0


def quantiles(seconds: Iterable[float]) -> Json:
    """p50, p95, p99 and the greatest, in milliseconds; by the nearest rank, so each is one that was measured."""
    ordered = sorted(seconds)
    if not ordered:
        return {}
    ranks = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(_nearest(ordered, rank) * 1000, 1) for name, rank in ranks.items()}


def _nearest(ordered: list[float], rank: float) -> float:
    return ordered[min(len(ordered) - 1, max(0, -int(-rank * len(ordered) // 1) - 1))]
