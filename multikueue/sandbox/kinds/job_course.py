"""What becomes of one batch Job now: a function of the Job, of its run so far, and of the time.

Pods are counted, not made: a Job's status changes as if they ran.
"""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds.course import Ending, Moment, Run, Turn
from multikueue.sandbox.kinds.job_statuses import completed, failed, started, suspended


class JobCourse:
    """The course of `batch/v1` Jobs, which end in several rounds if they have more completions than parallelism.

    Implements `multikueue.sandbox.kinds.course.Course`.
    """

    ends = True

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """See `Course`."""
        if self.ending(job) is not None:
            return Turn()
        if moment.suspended:
            return _suspended(job, moment.now)
        succeeded = _number(job, "status", "succeeded")
        if succeeded >= wanted(job):
            return Turn(status=completed(job, succeeded, moment.now), event=("Completed", "Job completed"))
        run = run or moment.started()
        if moment.time < run.ends_at:
            return _running(job, run, moment.time, moment.now)
        return _ended(job, run, moment.time, moment.now)

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        for kind, reason in (("Complete", "Succeeded"), ("Failed", "Failed")):
            if is_true(job, kind):
                return Ending(reason, str((condition(job, kind) or {}).get("message") or ""))
        return None

    def is_active(self, job: Json) -> bool:
        """See `Course`."""
        return _number(job, "status", "active") != 0

    def pods_ready(self, job: Json) -> bool:
        """See `Course`."""
        return _number(job, "status", "ready") + _number(job, "status", "succeeded") >= pods_at_first(job)


def wanted(job: Json) -> int:
    """How many pods must succeed; a work queue without completions is done when all its pods are."""
    completions = dig(job, "spec", "completions")
    return completions if isinstance(completions, int) else _parallelism(job)


def pods_at_first(job: Json) -> int:
    """How many pods run at a time."""
    return min(_parallelism(job), wanted(job))


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
