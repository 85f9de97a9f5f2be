"""Which of the workers that are equally sure is the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate
from multikueue.core.dispatchers.scored.facts import JobFacts, room_of
from multikueue.core.dispatchers.scored.job_annotations import Narrowing
from multikueue.core.dispatchers.scored.profile import Weights
from multikueue.core.dispatchers.scored.room import placed

COST = "multikueue.dev/cost"
"""On a MultiKueueCluster: what an hour costs there, compared with the others."""
SPEED = "multikueue.dev/speed"
"""On a MultiKueueCluster: how fast jobs run there, compared with the others."""

AT_ONCE: Final = 50
"""So many offers go to a worker before the next equal one has as many: its Kueue admits one job after the other, and
the whole of a burst waited for one Kueue beside others that had nothing to do. With 10 none stayed empty for gangs."""


@attrs.frozen
class Taste:
    """What makes a worker better for one Workload."""

    job: JobFacts
    narrowing: Narrowing
    weights: Weights
    places: Sequence[str]
    """Where it has run, the last one at the end."""
    last: str = ""
    """The last in the config's order of those that could hold it."""


def ordered(workers: Sequence[Candidate], taste: Taste, now: datetime) -> list[Candidate]:
    """The workers of a tier, best first; those with a penalty last. Of equal ones those first where the Workload does
    not borrow, then those with fewer times `AT_ONCE` offers, then those that nobody else uses, and then in the config's
    order: what fills one before the next leaves the last ones empty for jobs that need a whole one. So the last of all
    stays behind."""
    figures = {worker.name: _Figures.of(worker) for worker in workers}
    cheapest = min((each.price for each in figures.values()), default=0.0)
    soonest = min((each.finish for each in figures.values()), default=0.0)

    def key(worker: Candidate) -> tuple[bool, float, bool, int, bool]:
        own, weights = figures[worker.name], taste.weights
        healthy = not _penalized(worker, now)
        points = (
            weights.preference * taste.narrowing.preference(worker.labels)
            + weights.cost * (cheapest / own.price)
            + weights.finish * (soonest / own.finish)
            + weights.sticky * (worker.name in taste.places)
            + weights.health * healthy
        )
        room = room_of(worker)
        queue = room.queue
        behind = worker.name == taste.last or (queue is not None and queue.is_shared(now))
        return not healthy, -round(points, 6), _borrows(worker, taste.job), room.offers // AT_ONCE, behind

    return sorted(workers, key=key)


@attrs.frozen
class _Figures:
    """Of one worker, for one Workload."""

    price: float
    finish: float
    """How long the job takes there, beside others. Where quota tells that there is room, nobody who waits is before it:
    when such jobs counted there, small ones of ours went elsewhere, and no worker stayed empty for a gang."""

    @classmethod
    def of(cls, worker: Candidate) -> _Figures:
        speed = _positive(worker.annotations.get(SPEED))
        queue = room_of(worker).queue
        ahead = queue.others_pending if queue is not None and queue.is_raced else 0
        return cls(_positive(worker.annotations.get(COST)) / speed, (1 + ahead) / speed)


def _borrows(worker: Candidate, job: JobFacts) -> bool:
    """Whether it takes what is not the queue's own, as far as figures tell: that may be taken back."""
    room = room_of(worker)
    queue = room.queue
    if queue is None or job.request is None or not any(queue.borrowable.values()):
        return False
    free = queue.free if room.net is None else room.net
    taken = placed(job.request, queue.groups, free) or {}
    return any(amount > free[key] - queue.borrowable.get(key, 0) for key, amount in taken.items() if amount)


def _penalized(worker: Candidate, now: datetime) -> bool:
    queue = room_of(worker).queue
    return queue is not None and queue.penalized(now)


def _positive(text: str | None) -> float:
    """A number above 0, no further from 1 than what can be divided; 1 where there is none that is 0 at least."""
    try:
        number = float(text or 1)
    except ValueError:
        return 1.0
    return min(max(number, 1e-9), 1e9) if math.isfinite(number) and number >= 0 else 1.0
