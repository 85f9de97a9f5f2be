"""Whether another worker may have the job already, though it is not to be seen there.

The job is made on a worker before that worker is recorded. If the connection breaks in between, or the manager is
stopped, a job may be left behind of which nobody but its worker knows. Nobody else may be given it before that is
clear: it would run twice. Nobody waits where nothing went wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from multikueue.core.model.names import Json
from multikueue.core.model.workloads import is_of_attempt, nominated
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker

PATIENCE: Final = timedelta(seconds=60)
"""How long after a start workers are waited for that this process has never heard: long enough for a worker that does
not answer once, and for three or four attempts at one that is not there yet. One that was lost so long ago, before the
start too, holds nobody up once it has failed to answer."""
FIRST_WORD: Final = timedelta(seconds=60)
"""When we look again at a worker that has yet to say its first word. It is told to us when it does, or when asking it
has failed; a request's deadline is half as long."""
SETTLING: Final = timedelta(seconds=10)
"""How long a creation that was not answered may take to show in a watch that works: a request can be held up on its
way, and arrive after its sender has given up."""


def until_clear(situation: Situation) -> float | None:
    """For how many seconds at most nobody may be given the job; None: it may be given now.

    Whoever has it keeps it; see `Situation.winner`.
    """
    winner = situation.winner
    if winner is None or situation.has_it(winner) or situation.has_ended_on(winner):
        return None
    others = (worker for worker in situation.workers if worker.name != winner.name)
    waits = [wait for worker in others for wait in _waits(situation, worker)]
    if any(name != winner.name for name in unheard(situation)):
        waits.append(PATIENCE - situation.snapshot.running_for)
    longest = max(waits, default=timedelta(0)).total_seconds()
    return longest if longest > 0 else None


def unheard(situation: Situation) -> tuple[str, ...]:
    """Whom it is offered to, and who has yet to say what lies there. Only workers it was offered to may have it."""
    if situation.snapshot.running_for >= PATIENCE:
        return ()
    found = [situation.snapshot.worker(name) for name in nominated(situation.workload)]
    return tuple(worker.name for worker in found if worker is not None and _is_unheard(situation, worker))


def _is_unheard(situation: Situation, worker: Worker) -> bool:
    if worker.known or worker.awaited:
        return not worker.known
    return worker.lost_since is None or situation.now - worker.lost_since < PATIENCE


def unsure_until(worker: Worker, timeout: timedelta) -> timedelta:
    """How long after a creation without an answer a worker may have the job, though it does not show.

    Args:
        worker: which one.
        timeout: how long one that cannot be reached keeps what it has.
    """
    return SETTLING if worker.in_sight else timeout


def _waits(situation: Situation, worker: Worker) -> Iterator[timedelta]:
    timeout = situation.settings.worker_lost_timeout
    if worker.unsure_for is not None:  # a job was to be made there, and there was no answer
        yield unsure_until(worker, timeout) - worker.unsure_for
    known = situation.jobs_on(worker) if not worker.in_sight else []
    if any(is_of_attempt(job, situation.attempt) or _may_go_on(situation, worker, job) for job in known):
        lost_for = situation.now - worker.lost_since if worker.lost_since is not None else None
        yield timeout - (situation.snapshot.quiet_for if lost_for is None else lost_for)


def _may_go_on(situation: Situation, worker: Worker, job: Json) -> bool:
    """Whether an earlier attempt's job may run on a lost worker: its quota was freed before it was seen to stop."""
    of_this = situation.adapter.keeps_status and situation.job_of(job) is not None
    return of_this and not worker.reachable and situation.adapter.outcome(job) is None
