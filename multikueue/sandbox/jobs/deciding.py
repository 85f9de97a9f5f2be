"""Whether a job is to run now, for how long, and how it ends, for every kind alike.

The runner's options, a job's annotations and random numbers decide; how a run goes on is its kind's course.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating
from multikueue.sandbox.apiserver.verbs.deleting import FOREGROUND
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.course import Fate, Moment, Run, Turn
from multikueue.sandbox.kueue.units import queue_name

DURATION_ANNOTATION: Final = "sandbox.multikueue.dev/duration"
"""On a job: how long its pods run, as `2s`, `500ms`, `1m30s`; overrides what is drawn."""
OUTCOME_ANNOTATION: Final = "sandbox.multikueue.dev/outcome"
"""On a job: `fail` or `complete`; overrides what is drawn."""
TRAP_ANNOTATION: Final = "sandbox.multikueue.dev/trap"
"""On a job, the pod template of a batch Job, or a pod: how long that goes on after SIGTERM; overrides the options.

A process that ends before its grace period does so with exit code 0 if the outcome is `complete`.
"""
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def decide_run(
    kind: SandboxKind,
    job: Json,
    run: Run | None,
    *,
    time: float,
    now: datetime,
    startup: float,
    draw: Callable[[], Fate],
    ending: int = 0,
) -> Turn:
    """What becomes of the job.

    Args:
        kind: of the job.
        job: as it is stored.
        run: as the last turn left it.
        time: the loop's clock.
        now: the wall clock, for the status.
        startup: seconds until a pod is ready.
        draw: draws the fate of a new start.
        ending: how many of its pods have yet to end.
    """
    suspended = kind.is_held(job)
    begins = run is None and not suspended
    if kind.is_delegated(job) or (begins and is_terminating(job) and not is_deleted(job)):
        return Turn()
    if not suspended and is_waiting(kind, job):
        return Turn()
    moment = Moment(
        time=time,
        now=now,
        startup=startup,
        draw=draw,
        suspended=suspended,
        deleted=is_deleted(job),
        ending=ending,
        pods=kind.pods.counts(job),
    )
    return kind.course.turn(job, run, moment)


def is_deleted(job: Json) -> bool:
    """Whether its pods are being deleted: with it, and not only after it."""
    return FOREGROUND in (dig(job, "metadata", "finalizers") or ())


def is_waiting(kind: SandboxKind, job: Json) -> bool:
    """Whether the job is queued and Kueue has not started it.

    Kueue's webhook would have created it suspended; there are no webhooks here, so until the small Kueue has seen and
    suspended it, it looks startable. What tells is the annotation Kueue puts into the template when it starts a job.
    """
    return bool(queue_name(job)) and not kind.pods.is_started(job)


@attrs.frozen
class RunnerOptions:
    """How long jobs run and how they end. All times are seconds of the loop's clock."""

    mean: float = 5.0
    """Mean time a pod runs; long enough to be seen running, short enough to be waited for."""
    minimum: float = 1.0
    maximum: float = 30.0
    startup: float = 0.0
    """Time from start to readiness of a pod."""
    failure_rate: float = 0.0
    """Share of jobs that fail."""
    trap: float = 0.0
    """How long pods go on after SIGTERM, at most for their grace period; jobs have pods if it is more than 0."""
    blocking: bool = True
    """Whether pods keep a job that is deleted in the foreground (`blockOwnerDeletion`)."""


def fate(job: Json, options: RunnerOptions, seed: int, start: int) -> Fate:
    """What happens to a job: the same for the same seed, name and number of starts, whatever else runs.

    Args:
        start: how often the job was started before.
    """
    numbers = random.Random(f"{seed}/{ObjectKey.of(job)}/{start}")
    drawn = min(options.maximum, max(options.minimum, numbers.expovariate(1 / options.mean)))
    fails = numbers.random() < options.failure_rate
    noted = annotations_of(job)
    duration = parse_duration(noted.get(DURATION_ANNOTATION, ""))
    outcome = noted.get(OUTCOME_ANNOTATION)
    return Fate(drawn if duration is None else duration, fails if outcome is None else outcome == "fail")


def trap_of(obj: Json, options: RunnerOptions) -> float:
    """Seconds for which the pods of a job, or a pod, go on after SIGTERM if nobody kills them."""
    templates = (obj, dig(obj, "spec", "template"))
    noted = (annotations_of(template).get(TRAP_ANNOTATION, "") for template in templates if template)
    return next((seconds for seconds in map(parse_duration, noted) if seconds is not None), options.trap)


def parse_duration(text: str) -> float | None:
    """Seconds of a Go-like duration or a bare number; None if it is neither."""
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
