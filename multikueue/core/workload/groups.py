"""Several Workloads of one job (a LeaderWorkerSet has one per replica): all of them go to the same worker.

The first of them finds the worker; the others follow. They are nominated for exactly that worker, so that Kueue's
webhook accepts it as their `clusterName`.
"""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Candidates, Dispatcher, Nomination
from multikueue.core.dispatchers.guarded import Guarded
from multikueue.core.model.names import Json
from multikueue.core.model.workloads import component_index
from multikueue.core.workload.effects import Announce, Plan
from multikueue.core.workload.situation import Situation


@attrs.frozen
class Follow:
    """A dispatcher that knows the answer: where the rest of the group is."""

    cluster: str

    def nominate(self, workload: Json, candidates: Candidates, now: datetime) -> Nomination:
        """See `Dispatcher.nominate`."""
        del workload, now
        return Nomination((self.cluster,) if self.cluster in candidates.configured else ())


def chooser(situation: Situation) -> Dispatcher:
    """Who says where it is offered: the group, if it has a place, or the operator's dispatcher."""
    place = situation.group_place
    return Guarded(situation.dispatcher) if place is None else Follow(place)


def is_split(situation: Situation) -> bool:
    """Whether the rest of the group is on several workers: following one would make it no better."""
    return len(situation.group_places) > 1


def tell_split(situation: Situation) -> Plan:
    """Warn: somebody must evict one part or the other."""
    where = " and ".join(f'"{name}"' for name in situation.group_places)
    return Plan((Announce("Warning", f"Component workloads are assigned to different clusters: {where}"),))


def must_wait(situation: Situation) -> bool:
    """Whether parts of the group are missing, or a part before this one has yet to find the worker."""
    index = component_index(situation.workload)
    job = situation.job
    if index is None or job is None:
        return False
    if len(situation.group) + 1 < situation.adapter.expected_workloads(job):
        return True
    if situation.group_places:
        return False
    others = [component_index(one) for one in situation.group]
    return index < 0 or any(other is not None and 0 <= other < index for other in others)
