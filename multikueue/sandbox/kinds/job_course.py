"""How a batch Job goes on: a function of the Job, of its run so far, and of the time.

Pods are counted, not made: a Job's status changes as if they ran. The statuses are what kube-controller-manager 1.36
writes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import condition, conditions, find, is_true, new_condition, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds.course import Ending, Moment, Run, Turn, by_then, seconds_left

_NO_PODS: Json = {"terminating": 0, "uncountedTerminatedPods": {}, "ready": 0}
_REPLACED_LATE: Final = "Failed"
"""A `podReplacementPolicy`: no pod is made while another ends."""
_ENDS: Final = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
"""What says how a Job will end, and the end."""
_PER_INDEX: Final = ("backoffLimitPerIndex", "maxFailedIndexes")
_TOO_MANY: Final = ("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes")
_LATE: Final = ("DeadlineExceeded", "Job was active longer than specified deadline")


class JobCourse:
    """The course of `batch/v1` Jobs, which end in several rounds if they have more completions than parallelism.

    Implements `multikueue.sandbox.kinds.course.Course`.
    """

    ends = True

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """See `Course`."""
        if self.ending(job) is not None:
            return Turn()
        settled = next((condition(job, kind) for kind in _ENDS if is_true(job, kind)), None)
        if settled is not None and dig(job, "status", "startTime"):
            return _settled(job, settled, moment)
        succeeded = _number(job, "status", "succeeded")
        if succeeded >= wanted(job) and (succeeded or dig(job, "spec", "completions") == 0) and not moment.deleted:
            return _completed(job, succeeded, moment)
        if moment.suspended:
            return _suspended(job, moment)
        if moment.deleted:
            return _shown(job, {**stopped(job), "terminating": moment.ending})
        if moment.ending and not run and dig(job, "spec", "podReplacementPolicy") == _REPLACED_LATE:
            return Turn()
        if not pods(job):
            return _shown(job, {**started(job, 0, 0, moment.now), "terminating": moment.ending})
        run, began = run or moment.started(), dig(job, "status", "startTime")
        left = seconds_left(job, "activeDeadlineSeconds", began, moment.now)
        if left is not None and left <= 0:
            return _settled(job, _condition("FailureTarget", True, *_LATE, moment.now), moment)
        if moment.time < run.ends_at:
            return by_then(_running(job, run, moment), left, moment)
        return _ended(job, run, moment)

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


def seconds_kept(job: Json, now: datetime) -> float | None:
    """Until a Job that has ended is deleted; None: it has not ended, or is kept."""
    ended = next((condition(job, kind) for kind in _ENDS.values() if is_true(job, kind)), None)
    return seconds_left(job, "ttlSecondsAfterFinished", dig(ended, "lastTransitionTime"), now)


def _settled(job: Json, settled: Json, moment: Moment) -> Turn:
    """What is said already how it ends: its pods are deleted, and it ends once they have gone."""
    failed = _number(job, "status", "failed") + _number(job, "status", "active")
    lost = {"failed": failed} if failed and settled["type"] == "FailureTarget" else {}
    status = {**stopped(job), **lost, "terminating": moment.ending}
    if settled not in conditions(job):
        return Turn(status={**status, "conditions": [*conditions(job), settled]})
    if moment.ending or _number(job, "status", "active"):
        return _shown(job, status)
    end, words = _ENDS[settled["type"]], (settled.get("reason") or "", settled.get("message") or "")
    ended = {"completionTime": timestamp(moment.now)} if end == "Complete" else {}
    return _final(job, {**status, **ended}, (end,), words, moment.now)


def _suspended(job: Json, moment: Moment) -> Turn:
    counted = {"terminating": moment.ending}
    if is_true(job, "Suspended") and not _number(job, "status", "active") and not dig(job, "status", "startTime"):
        return _shown(job, {**_status(job), **(counted if "terminating" in _status(job) else {})})
    event = None if is_true(job, "Suspended") else ("Suspended", "Job suspended")
    return Turn(status={**suspended(job, moment.now), **counted}, event=event)


def _shown(job: Json, status: Json) -> Turn:
    return Turn() if status == job.get("status") else Turn(status=status)


def _running(job: Json, run: Run, moment: Moment) -> Turn:
    count, time = pods(job), moment.time
    ready = count if time >= run.ready_at else 0
    at = run.ready_at if time < run.ready_at else run.ends_at
    status = {**started(job, count, ready, moment.now), "terminating": moment.ending}
    if status == job.get("status"):
        return Turn(run=run, at=at)
    event = ("Resumed", "Job resumed") if is_true(job, "Suspended") else None
    return Turn(status=status, run=run, at=at, event=event)


def _ended(job: Json, run: Run, moment: Moment) -> Turn:
    if run.fate.fails:
        return _failed(job, moment.now)
    succeeded = _number(job, "status", "succeeded") + pods(job)
    if succeeded >= wanted(job):
        return _completed(job, succeeded, moment)
    following = attrs.evolve(run, ready_at=moment.time, ends_at=moment.time + run.fate.duration)
    counted = {**job, "status": {**_status(job), "succeeded": succeeded, **_indexes(job, "completed", succeeded)}}
    count = pods(counted)
    return Turn(status=started(counted, count, count, moment.now), run=following, at=following.ends_at)


def _parallelism(job: Json) -> int:
    value = dig(job, "spec", "parallelism")
    return value if isinstance(value, int) else 1


def _number(job: Json, *path: str) -> int:
    value = dig(job, *path)
    return value if isinstance(value, int) else 0


def suspended(job: Json, now: datetime) -> Json:
    """No pods, no start time, and Suspended is True."""
    listed = _with(job, "Suspended", True, "JobSuspended", "Job suspended", now)
    kept = {field: value for field, value in stopped(job).items() if field != "startTime"}
    return {**kept, "conditions": listed}


def stopped(job: Json) -> Json:
    """No pods."""
    return {**{field: value for field, value in _status(job).items() if field != "active"}, **_NO_PODS}


def started(job: Json, pods: int, ready: int, now: datetime) -> Json:
    """Pods are there; a Job that was suspended is resumed."""
    result = {**_status(job), **_NO_PODS, "active": pods, "ready": ready}
    result.setdefault("startTime", timestamp(now))
    was = find(conditions(job), "Suspended")
    if was is not None and was.get("status") == "True":
        result["conditions"] = _with(job, "Suspended", False, "JobResumed", "Job resumed", now)
        result["startTime"] = timestamp(now)
    return result


def _completed(job: Json, succeeded: int, moment: Moment) -> Turn:
    """All completions are reached."""
    words = ("CompletionsReached", "Reached expected number of succeeded pods")
    now = timestamp(moment.now)
    result = {**({} if moment.suspended else {"startTime": now}), **stopped(job), "succeeded": succeeded}
    result.update({"completionTime": now, **_indexes(job, "completed", succeeded)})
    return _final(job, result, ("SuccessCriteriaMet", "Complete"), words, moment.now)


def _failed(job: Json, now: datetime) -> Turn:
    """Its pods failed more often than it allows."""
    words = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    limit, each, most = (dig(job, "spec", field) for field in ("backoffLimit", *_PER_INDEX))
    result = {**stopped(job), "failed": 1 + (limit if isinstance(limit, int) else 6)}
    if each is not None:
        words = _TOO_MANY if most is not None and most < wanted(job) else ("FailedIndexes", "Job has failed indexes")
        result.update({"failed": wanted(job) * (1 + each), **_indexes(job, "failed", wanted(job))})
    return _final(job, result, ("FailureTarget", "Failed"), words, now)


def _indexes(job: Json, what: str, count: int) -> Json:
    """The first indexes of an indexed Job, which are its pods that have ended so."""
    indexed, end = dig(job, "spec", "completionMode") == "Indexed", count - 1
    return {f"{what}Indexes": "0" + f"{',' if count == 2 else '-'}{end}" * (end > 0)} if indexed and count else {}


def _status(job: Json) -> Json:
    return job.get("status") or {}


def _final(job: Json, result: Json, kinds: tuple[str, ...], words: tuple[str, str], now: datetime) -> Turn:
    listed = [*conditions(job), *(_condition(kind, True, *words, now) for kind in kinds)]
    event = ("Completed", "Job completed") if kinds[-1] == "Complete" else words
    return Turn(status={**result, "conditions": listed}, event=event)


def _with(job: Json, kind: str, status: bool, reason: str, message: str, now: datetime) -> list[Json]:
    others = [entry for entry in conditions(job) if entry.get("type") != kind]
    return [*others, _condition(kind, status, reason, message, now)]


def _condition(kind: str, status: bool, reason: str, message: str, now: datetime) -> Json:
    result = new_condition(kind, status, reason, message, now=now)
    return {**result, "lastProbeTime": result["lastTransitionTime"]}
