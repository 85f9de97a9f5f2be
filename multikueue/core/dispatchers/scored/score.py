"""Which of the workers that are equally sure is the best."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate
from multikueue.core.dispatchers.scored.facts import JobFacts
from multikueue.core.dispatchers.scored.job_annotations import Narrowing
from multikueue.core.dispatchers.scored.profile import Weights
from multikueue.core.dispatchers.scored.room import placed
from multikueue.core.model.names import ClusterName

COST = "multikueue.dev/cost"
"""On a MultiKueueCluster: what an hour costs there, compared with the others."""
SPEED = "multikueue.dev/speed"
"""On a MultiKueueCluster: how fast jobs run there, compared with the others."""


@attrs.frozen
class Taste:
    """What makes a worker better for one Workload."""

    uid: str
    job: JobFacts
    narrowing: Narrowing
    weights: Weights
    places: Sequence[str]
    """Where it has run, the last one at the end."""


def ordered(workers: Sequence[Candidate], taste: Taste, now: datetime) -> list[Candidate]:
    """The workers of a tier, best first; those with a penalty last. Equal ones by a hash, which spreads Workloads."""
    figures = {worker.name: _Figures.of(worker, taste.job) for worker in workers}
    cheapest = min((one.price for one in figures.values()), default=0.0)
    soonest = min((one.finish for one in figures.values()), default=0.0)

    def key(worker: Candidate) -> tuple[bool, float, str]:
        one, weights = figures[worker.name], taste.weights
        healthy = not _penalized(worker, now)
        points = (
            weights.quota * one.left
            + weights.preference * taste.narrowing.preference(worker.labels)
            + weights.cost * (cheapest / one.price)
            + weights.finish * (soonest / one.finish)
            + weights.sticky * (worker.name in taste.places)
            + weights.health * healthy
        )
        return not healthy, -round(points, 6), _hash(taste.uid, worker.name)

    return sorted(workers, key=key)


@attrs.frozen
class _Figures:
    """Of one worker, for one Workload."""

    left: float
    """The share of what it may use that would stay free."""
    price: float
    finish: float
    """In seconds, or in any unit if the run time is not known."""

    @classmethod
    def of(cls, worker: Candidate, job: JobFacts) -> _Figures:
        speed = _positive(worker.annotations.get(SPEED))
        run_time = (job.run_time or 1.0) / speed
        backlog = worker.queue.others_pending if worker.queue is not None else 0
        return cls(_left(worker, job), _positive(worker.annotations.get(COST)) / speed, run_time * (1 + backlog))


def _left(worker: Candidate, job: JobFacts) -> float:
    """What stays free of the scarcest resource: 0 where figures are not known, or it does not fit."""
    queue = worker.queue
    if queue is None or job.request is None:
        return 0.0
    free = queue.free if worker.net is None else worker.net
    taken = placed(job.request, queue.groups, free) or {}
    shares = [
        (free[key] - amount) / queue.nominal[key] for key, amount in taken.items() if queue.nominal.get(key) and amount
    ]
    return max(0.0, min(1.0, *shares)) if shares else 0.0


def _penalized(worker: Candidate, now: datetime) -> bool:
    return worker.queue is not None and worker.queue.penalized(now)


def _positive(text: str | None) -> float:
    """A number above 0, no further from 1 than what can be divided; 1 where there is none that is 0 at least."""
    try:
        number = float(text or 1)
    except ValueError:
        return 1.0
    return min(max(number, 1e-9), 1e9) if math.isfinite(number) and number >= 0 else 1.0


def _hash(uid: str, name: ClusterName) -> str:
    return hashlib.sha256(f"{uid}/{name}".encode()).hexdigest()
