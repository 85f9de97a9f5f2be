"""The plan, where what one worker shows makes it raise: the others go on.

What comes from workers is checked where it comes in, so this is for what the check does not know. What raises is a
defect of ours; it must not hold up the Workload everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model.names import ClusterName
from multikueue.core.workload.effects import Plan
from multikueue.core.workload.plan import plan
from multikueue.core.workload.snapshot import PlanSettings, Snapshot, Worker
from multikueue.core.workload.unreadable import hidden


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
    try:
        return GuardedPlan(plan(snapshot, now, settings, dispatcher))
    except Exception as error:  # of any code: adapters may come from elsewhere
        first = error
    left_out = {worker.name: first for worker in snapshot.workers if not worker.is_empty or worker.shared}
    if not left_out:
        raise first
    try:
        decided = plan(_without(snapshot, left_out), now, settings, dispatcher)
    except Exception as error:  # as above
        raise error from first
    for name in [*left_out]:
        fewer = {other: error for other, error in left_out.items() if other != name}
        try:
            decided = plan(_without(snapshot, fewer), now, settings, dispatcher)
        except Exception as error:  # as above
            left_out[name] = error
        else:
            left_out = fewer
    return GuardedPlan(decided, left_out)


def _without(snapshot: Snapshot, left_out: Mapping[ClusterName, Exception]) -> Snapshot:
    def seen(worker: Worker) -> Worker:
        error = left_out.get(worker.name)
        if error is None:
            return worker
        why = f"what it shows of this Workload cannot be used ({type(error).__name__}), see the log of the controller"
        return hidden(worker, why)

    return attrs.evolve(snapshot, workers=tuple(map(seen, snapshot.workers)))
