"""The scored dispatcher with what it looks at."""

from __future__ import annotations

import attrs

from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.runtime.controller import KeyQueue
from multikueue.runtime.parts import Part, PartHost
from multikueue.runtime.scored.penalties import PenaltyReconciler
from multikueue.runtime.scored.queue_room import WorkerRooms


@attrs.frozen
class ScoredDispatcher(Scored):
    """What a manager takes as its dispatcher: `Scored`, which alone would know nothing of any queue."""

    def part(self, host: PartHost) -> Part:
        """See `BringsPart`."""
        process = host.process
        rooms = WorkerRooms(host)
        host.follow_queues(rooms.changed)
        penalties = PenaltyReconciler(host.manager, KeyQueue(), process.clock)
        for handler in (rooms.job_changed, penalties.changed):
            host.manager.workloads.informer.subscribe(handler)
        return Part(
            (process.controller("multikueue_penalty", penalties, penalties.queue),),
            (rooms.run,),
            figures=rooms,
            profiles=frozenset(self.profiles),
            starving=rooms.starving,
        )
