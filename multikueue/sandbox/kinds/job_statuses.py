"""The status kube-controller-manager 1.36 gives a Job, as functions from a Job to its next status."""

from __future__ import annotations

from datetime import datetime

from multikueue.core.model.conditions import conditions, find, new_condition, timestamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig

_NO_PODS: Json = {"terminating": 0, "uncountedTerminatedPods": {}, "ready": 0}


def suspended(job: Json, now: datetime) -> Json:
    """No pods, no start time, and Suspended is True."""
    kept = {field: value for field, value in _status(job).items() if field not in ("active", "startTime")}
    listed = _with(job, "Suspended", True, "JobSuspended", "Job suspended", now)
    return {**kept, **_NO_PODS, "conditions": listed}


def started(job: Json, pods: int, ready: int, now: datetime) -> Json:
    """Pods are there; a Job that was suspended is resumed."""
    result = {**_status(job), **_NO_PODS, "active": pods, "ready": ready}
    result.setdefault("startTime", timestamp(now))
    was = find(conditions(job), "Suspended")
    if was is not None and was.get("status") == "True":
        result["conditions"] = _with(job, "Suspended", False, "JobResumed", "Job resumed", now)
        result["startTime"] = timestamp(now)
    return result


def completed(job: Json, succeeded: int, now: datetime) -> Json:
    """All completions are reached."""
    reason, message = "CompletionsReached", "Reached expected number of succeeded pods"
    result = {**_status(job), **_NO_PODS, "succeeded": succeeded, "completionTime": timestamp(now)}
    result.pop("active", None)
    return _ended(job, result, ("SuccessCriteriaMet", "Complete"), reason, message, now)


def failed(job: Json, now: datetime) -> Json:
    """Its pods failed more often than it allows."""
    reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    limit = dig(job, "spec", "backoffLimit")
    result = {**_status(job), **_NO_PODS, "failed": 1 + (limit if isinstance(limit, int) else 6)}
    result.pop("active", None)
    return _ended(job, result, ("FailureTarget", "Failed"), reason, message, now)


def _status(job: Json) -> Json:
    return job.get("status") or {}


def _ended(job: Json, result: Json, kinds: tuple[str, str], reason: str, message: str, now: datetime) -> Json:
    listed = conditions(job)
    for kind in kinds:
        listed = [*listed, _condition(kind, True, reason, message, now)]
    return {**result, "conditions": listed}


def _with(job: Json, kind: str, status: bool, reason: str, message: str, now: datetime) -> list[Json]:
    others = [entry for entry in conditions(job) if entry.get("type") != kind]
    return [*others, _condition(kind, status, reason, message, now)]


def _condition(kind: str, status: bool, reason: str, message: str, now: datetime) -> Json:
    result = new_condition(kind, status, reason, message, now=now)
    return {**result, "lastProbeTime": result["lastTransitionTime"]}
