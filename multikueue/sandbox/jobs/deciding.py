"""What becomes of one Job now: a function of the Job, of its run so far, and of the time.

Pods are counted, not made: a Job's status changes as if they ran.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.conditions import is_true
from multikueue.core.names import Json
from multikueue.core.objects import annotations_of, dig, is_terminating
from multikueue.sandbox.jobs.options import Fate
from multikueue.sandbox.jobs.statuses import completed, failed, started, suspended
from multikueue.sandbox.kueue.naming import queue_name
from multikueue.sandbox.kueue.podsets import WORKLOAD_ANNOTATION

JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
"""What `spec.managedBy` says of a Job that is the built-in controller's."""


@attrs.frozen
class Run:
    """One start of a Job, on the loop's clock."""

    fate: Fate
    ready_at: float
    ends_at: float
    """When the pods that are there now end."""


@attrs.frozen
class Turn:
    """What to do about a Job now."""

    status: Json | None = None
    """The status to write; None if it has it."""
    run: Run | None = None
    """Its run from now on; None if it does not run."""
    at: float | None = None
    """When, on the loop's clock, time alone changes something."""
    event: tuple[str, str] | None = None
    """Reason and note of the event to record."""


def decide_run(
    job: Json, run: Run | None, *, time: float, now: datetime, startup: float, draw: Callable[[], Fate]
) -> Turn:
    """What becomes of the Job.

    Args:
        run: as the last turn left it.
        time: the loop's clock.
        now: the wall clock, for the status.
        startup: seconds until a pod is ready.
        draw: throws the dice for a new start.
    """
    if is_ended(job) or is_terminating(job) or not is_ours(job):
        return Turn()
    if dig(job, "spec", "suspend"):
        return _suspended(job, now)
    if is_held(job):
        return Turn()
    succeeded = _number(job, "status", "succeeded")
    if succeeded >= wanted(job):
        return Turn(status=completed(job, succeeded, now), event=("Completed", "Job completed"))
    if run is None:
        drawn = draw()
        run = Run(drawn, ready_at=time + startup, ends_at=time + max(startup, drawn.duration))
    if time < run.ends_at:
        return _running(job, run, time, now)
    return _ended(job, run, time, now)


def is_ours(job: Json) -> bool:
    """Whether the built-in controller runs the Job, and nobody else."""
    return dig(job, "spec", "managedBy") in (None, "", JOB_CONTROLLER)


def is_held(job: Json) -> bool:
    """Whether the Job is queued and Kueue has not started it.

    Kueue's webhook would have created it suspended; there are no webhooks here, so until the small Kueue has seen and
    suspended it, it looks startable. What tells is the annotation Kueue puts into the template when it starts a job.
    """
    started_by_kueue = annotations_of(dig(job, "spec", "template") or {}).get(WORKLOAD_ANNOTATION)
    return bool(queue_name(job)) and not started_by_kueue


def is_ended(job: Json) -> bool:
    """Whether it is over, well or not."""
    return is_true(job, "Complete") or is_true(job, "Failed")


def wanted(job: Json) -> int:
    """How many pods must succeed; a work queue without completions is done when all its pods are."""
    completions = dig(job, "spec", "completions")
    return completions if isinstance(completions, int) else _parallelism(job)


def pods(job: Json) -> int:
    """How many pods run at a time, for what is left to do."""
    return min(_parallelism(job), max(0, wanted(job) - _number(job, "status", "succeeded")))


def _suspended(job: Json, now: datetime) -> Turn:
    stopped = not _number(job, "status", "active") and not dig(job, "status", "startTime")
    if is_true(job, "Suspended") and stopped:
        return Turn()
    return Turn(status=suspended(job, now), event=("Suspended", "Job suspended"))


def _running(job: Json, run: Run, time: float, now: datetime) -> Turn:
    count = pods(job)
    ready = count if time >= run.ready_at else 0
    at = run.ready_at if time < run.ready_at else run.ends_at
    status = started(job, count, ready, now)
    if status == job.get("status"):
        return Turn(run=run, at=at)
    event = ("Resumed", "Job resumed") if is_true(job, "Suspended") else None
    return Turn(status=status, run=run, at=at, event=event)


def _ended(job: Json, run: Run, time: float, now: datetime) -> Turn:
    if run.fate.fails:
        message = "Job has reached the specified backoff limit"
        return Turn(status=failed(job, now), event=("BackoffLimitExceeded", message))
    succeeded = _number(job, "status", "succeeded") + pods(job)
    if succeeded >= wanted(job):
        return Turn(status=completed(job, succeeded, now), event=("Completed", "Job completed"))
    following = attrs.evolve(run, ready_at=time, ends_at=time + run.fate.duration)
    counted = {**job, "status": {**(job.get("status") or {}), "succeeded": succeeded}}
    count = pods(counted)
    return Turn(status=started(counted, count, count, now), run=following, at=following.ends_at)


def _parallelism(job: Json) -> int:
    value = dig(job, "spec", "parallelism")
    return value if isinstance(value, int) else 1


def _number(job: Json, *path: str) -> int:
    value = dig(job, *path)
    return value if isinstance(value, int) else 0
