"""Whether a job is to run now, for every kind alike; how it runs is its kind's course."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.course import Fate, Moment, Run, Turn
from multikueue.sandbox.kueue.naming import queue_name


def decide_run(
    kind: SandboxKind,
    job: Json,
    run: Run | None,
    *,
    time: float,
    now: datetime,
    startup: float,
    draw: Callable[[], Fate],
) -> Turn:
    """What becomes of the job.

    Args:
        kind: of the job.
        job: as it is stored.
        run: as the last turn left it.
        time: the loop's clock.
        now: the wall clock, for the status.
        startup: seconds until a pod is ready.
        draw: throws the dice for a new start.
    """
    suspended = kind.is_held(job)
    if is_terminating(job) or kind.is_delegated(job) or (not suspended and is_waiting(kind, job)):
        return Turn()
    pods = kind.pods.counts(job)
    return kind.course.turn(
        job, run, Moment(time=time, now=now, startup=startup, draw=draw, suspended=suspended, pods=pods)
    )


def is_waiting(kind: SandboxKind, job: Json) -> bool:
    """Whether the job is queued and Kueue has not started it.

    Kueue's webhook would have created it suspended; there are no webhooks here, so until the small Kueue has seen and
    suspended it, it looks startable. What tells is the annotation Kueue puts into the template when it starts a job.
    """
    return bool(queue_name(job)) and not kind.pods.is_started(job)
