"""Whether another worker may have the job already, though it is not to be seen there.

The job is made on a worker before that worker is recorded. If the connection breaks in between, or the manager is
stopped, a job may be left behind of which nobody but its worker knows. Nobody else may be given it before that is
clear: it would run twice. Nobody waits where nothing went wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from multikueue.core.situation import Situation
from multikueue.core.snapshot import Worker
from multikueue.core.workloads import is_of_attempt, nominated

PATIENCE: Final = timedelta(seconds=60)
"""How long after a start workers are waited for that this process has never heard: long enough for a worker that does
not answer once, and for three or four attempts at one that is not there yet. One that has been lost for so long, before
the start too, holds nobody up."""
SETTLING: Final = timedelta(seconds=10)
"""How long a creation that was not answered may take to show in a watch that works: a request can be held up on its
way, and arrive after its sender has given up."""


def until_clear(situation: Situation) -> float | None:
    """For how many seconds at most nobody may be given the job; None: it may be given now.

    Whoever has it keeps it; see `Situation.winner`.
    """
    winner = situation.winner
    if winner is None or situation.job_on(winner) is not None or situation.has_ended_on(winner):
        return None
    others = (worker for worker in situation.workers if worker.name != winner.name)
    waits = [wait for worker in others for wait in _waits(situation, worker)]
    longest = max(waits, default=timedelta(0)).total_seconds()
    return longest if longest > 0 else None


def unheard(situation: Situation) -> tuple[str, ...]:
    """Whom it is offered to, and who has yet to say what lies there. Only workers it was offered to may have it."""
    if situation.snapshot.running_for >= PATIENCE:
        return ()
    found = [situation.snapshot.worker(name) for name in nominated(situation.workload)]
    return tuple(worker.name for worker in found if worker is not None and _is_unheard(situation, worker))


def _is_unheard(situation: Situation, worker: Worker) -> bool:
    long_lost = worker.lost_since is not None and situation.now - worker.lost_since >= PATIENCE
    return not worker.known and not long_lost


def _waits(situation: Situation, worker: Worker) -> Iterator[timedelta]:
    timeout = situation.settings.worker_lost_timeout
    in_sight = worker.reachable and worker.serves_kind
    if worker.name in unheard(situation):
        yield PATIENCE - situation.snapshot.running_for
    if worker.unsure_for is not None:  # a job was to be made there, and there was no answer
        yield (SETTLING if in_sight else timeout) - worker.unsure_for
    if not in_sight and any(is_of_attempt(job, situation.attempt) for job in situation.jobs_on(worker)):
        out_of_sight_since = worker.lost_since or situation.now - situation.snapshot.quiet_for
        yield out_of_sight_since + timeout - situation.now
