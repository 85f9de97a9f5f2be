"""After a restart: whether a worker that has said nothing yet may have the job already.

The job is made on a worker before that worker is recorded. A manager that is stopped in between leaves a job behind of
which only its worker knows. The next one must not give it to another worker that happens to answer first.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from multikueue.core.situation import Situation
from multikueue.core.snapshot import Worker
from multikueue.core.workloads import nominated

PATIENCE: Final = timedelta(seconds=30)
"""How long after its first failure a worker is waited for that this process has never heard: long enough for three more
attempts. One that has been lost for longer, before the restart too, holds nobody up."""


def until_heard(situation: Situation) -> float | None:
    """For how many seconds at most nobody may be given the job; None: it may be given now.

    Whoever has it keeps it, and only workers it was offered to may have it.
    """
    winner = situation.winner
    if winner is None or situation.job_on(winner) is not None or situation.has_ended_on(winner):
        return None
    offered = nominated(situation.workload)
    waits = [_wait_for(worker, situation) for worker in situation.workers if worker.name in offered]
    return max((seconds for seconds in waits if seconds > 0), default=None)


def _wait_for(worker: Worker, situation: Situation) -> float:
    if worker.known:
        return 0.0
    if worker.awaited:
        return PATIENCE.total_seconds()
    if worker.lost_since is None:
        return 0.0  # it answers, but does not serve the kind
    return (worker.lost_since + PATIENCE - situation.now).total_seconds()
