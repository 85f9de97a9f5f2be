"""The plan where what one worker shows makes it raise: the others go on.

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
from multikueue.core.workload.facts.snapshot import PlanSettings, Snapshot, Worker, hidden
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

    def decide(left_out: Mapping[ClusterName, Exception]) -> Plan:
        shown = snapshot.with_workers(lambda one: _without(one, left_out.get(one.name)))
        return plan(shown, now, settings, dispatcher)

    try:
        return GuardedPlan(plan(snapshot, now, settings, dispatcher))
    except Exception as first:  # of any code: adapters may come from elsewhere
        left_out = {worker.name: first for worker in snapshot.workers if not worker.is_empty or worker.shared}
        decided = decide(left_out)
    for name in [*left_out]:
        fewer = {other: error for other, error in left_out.items() if other != name}
        try:
            decided, left_out = decide(fewer), fewer
        except Exception as error:
            left_out[name] = error
    return GuardedPlan(decided, left_out)


def _without(worker: Worker, error: Exception | None) -> Worker:
    why = f"what it shows of this Workload cannot be used ({type(error).__name__}), see the log of the controller"
    return worker if error is None else hidden(worker, why)
