"""The plan where what one worker shows cannot be read, or makes it raise: the others go on.

Objects of a worker that cannot be read: what is there is unknown, neither absent nor lost. Whoever may create or change
an object there can bring this about. So nothing follows from it: what cannot be read is not changed or deleted, and no
Workload is sent back, finished or given to another worker because of it. It concerns this Workload alone: the worker
goes on with all others.

What comes from workers is checked where it comes in, and code of others is asked through a guard where it is called:
rows by `adapters.safe`, dispatchers by `core.dispatchers.guarded`. So what raises all the same is a defect of ours; it
must not hold up the Workload everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model.names import ClusterName
from multikueue.core.workload.effects import Plan
from multikueue.core.workload.facts.snapshot import PlanSettings, Snapshot, Worker
from multikueue.core.workload.facts.worker_states import (
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
)
from multikueue.core.workload.plan import plan


@attrs.frozen
class GuardedPlan:
    """A plan, and which workers were left out of it, each with what it made the plan raise."""

    plan: Plan
    left_out: Mapping[ClusterName, Exception] = attrs.field(factory=dict)


def guarded_plan(snapshot: Snapshot, now: datetime, settings: PlanSettings, dispatcher: Dispatcher) -> GuardedPlan:
    """Decide as `plan` does. If that raises, decide as if nothing were known of the workers that it raises for.

    It must not raise without all of them. Then one after the other is looked at again, and stays left out if it raises.

    Raises:
        Exception: it raises whatever the workers show.
    """

    def attempt(seen: Snapshot) -> Plan | Exception:
        try:
            return plan(seen, now, settings, dispatcher)
        except Exception as error:  # of any code: adapters may come from elsewhere
            return error

    first = attempt(snapshot)
    if isinstance(first, Plan):
        return GuardedPlan(first)
    left_out = {worker.name: first for worker in snapshot.workers if not worker.is_empty or worker.shared}
    decided = attempt(_without(snapshot, left_out))
    if isinstance(decided, Exception):
        raise decided from first
    for name in [*left_out]:
        fewer = {other: error for other, error in left_out.items() if other != name}
        again = attempt(_without(snapshot, fewer))
        if isinstance(again, Plan):
            decided, left_out = again, fewer
        else:
            left_out[name] = again
    return GuardedPlan(decided, left_out)


def _without(snapshot: Snapshot, left_out: Mapping[ClusterName, Exception]) -> Snapshot:
    def seen(worker: Worker) -> Worker:
        error = left_out.get(worker.name)
        if error is None:
            return worker
        why = f"what it shows of this Workload cannot be used ({type(error).__name__}), see the log of the controller"
        return hidden(worker, why)

    return attrs.evolve(snapshot, workers=tuple(map(seen, snapshot.workers)))


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
