"""Objects of a worker that cannot be read: what is there is unknown, neither absent nor lost.

Whoever may create or change an object there can bring this about. So nothing follows from it: what cannot be read is
not changed or deleted, and no Workload is sent back, finished or given to another worker because of it. It concerns
this Workload alone: the worker goes on with all others.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.workload.effects import AnnounceWorkload, Effect
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import (
    Connected,
    Creation,
    Kind,
    Lost,
    NothingSent,
    Opaque,
    Reach,
    Served,
    Unserved,
    Untracked,
    Unusable,
    Worker,
)


def hidden(worker: Worker, why: str) -> Worker:
    """The worker without what is known of it: nothing can be told of this Workload there.

    Args:
        worker: one whose Workload copy cannot be read, or of which a decision cannot be made.
        why: what cannot be read.
    """
    return attrs.evolve(
        worker,
        reach=_unseen(worker.reach),
        workload=None,
        jobs=(),
        shared=(),
        creation=_unsure(worker.creation),
        unreadable=why,
    )


def with_hidden_jobs(worker: Worker, why: str) -> Worker:
    """The worker without what is known of the jobs: the Workload copy can be read, and its worker's Kueue be told.

    Args:
        worker: one with a job of this Workload that cannot be read.
        why: what cannot be read.
    """
    reach = attrs.evolve(worker.reach, seen=False) if isinstance(worker.reach, Lost) else worker.reach
    unknown = attrs.evolve(
        worker, reach=reach, kind=_unseen_kind(worker.kind), jobs=(), shared=(), creation=_unsure(worker.creation)
    )
    return attrs.evolve(unknown, unreadable=why)


def tell_unreadable(situation: Situation) -> Iterator[Effect]:
    """Warn its user of what cannot be read. The check says the same while it is Pending."""
    if situation.snapshot.unreadable_job:
        yield AnnounceWorkload("Warning", situation.snapshot.unreadable_job)
    for worker in situation.workers:
        if worker.unreadable:
            yield AnnounceWorkload("Warning", f'Worker cluster "{worker.name}": {worker.unreadable}')


def _unseen(reach: Reach) -> Reach:
    if isinstance(reach, Lost):  # for one that does not answer time counts, whatever it showed before
        return attrs.evolve(reach, seen=False)
    return Opaque(seen=False) if isinstance(reach, Connected | Opaque) else reach


def _unseen_kind(kind: Kind) -> Kind:
    """What was seen before the jobs could not be read does not tell that none runs."""
    if isinstance(kind, Unserved):
        return attrs.evolve(kind, seen=False)
    return Opaque(seen=False) if isinstance(kind, Served | Unusable) else kind


def _unsure(creation: Creation) -> Creation:
    """That nobody has sent the job does not tell that there is none."""
    return Untracked() if isinstance(creation, NothingSent) else creation
