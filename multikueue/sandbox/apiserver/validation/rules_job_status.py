"""
What a Job's status must be, and how it may change.

The server is strict here because of `managedBy`: whoever manages a Job, its status keeps its promises to those who
read it. Most rules are only asked when what they speak of changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.status_errors import Cause
from multikueue.sandbox.apiserver.validation.rules import invalid_value, not_negative, required

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_CONDITIONS = "status.conditions"
_MET, _TARGET = "SuccessCriteriaMet", "FailureTarget"


def is_true(status: Json, kind: str) -> bool:
    """Whether a condition is there and true."""
    return any(item.get("type") == kind and item.get("status") == "True" for item in status.get("conditions") or ())


def is_finished(status: Json) -> bool:
    """Whether the Job has ended, one way or the other."""
    return is_true(status, "Complete") or is_true(status, "Failed")


def check_job_status(old: Json, new: Json) -> list[Cause]:
    """What is wrong with a new status."""
    before, after, spec = old.get("status") or {}, new.get("status") or {}, new["spec"]
    return [
        *not_negative(after, "status", *_COUNTS),
        *_check_complete(before, after),
        *_check_finished(before, after, spec),
        *_check_indexes(before, after, spec),
        *_check_pods(before, after),
        *_check_criteria(after, spec),
        *_check_lasting(before, after),
        *_check_counters(before, after, spec),
        *_check_times(before, after, spec),
    ]


def _changed(before: Json, after: Json, *kinds: str) -> bool:
    return any(is_true(before, kind) != is_true(after, kind) for kind in kinds)


def _differs(before: Json, after: Json, *fields: str) -> bool:
    return any(before.get(field) != after.get(field) for field in fields)


def _check_complete(before: Json, after: Json) -> Iterator[Cause]:
    complete, ended = is_true(after, "Complete"), after.get("completionTime")
    if _changed(before, after, "Complete", "Failed") and complete and is_true(after, "Failed"):
        yield invalid_value(_CONDITIONS, "cannot set Complete=True and Failed=true conditions")
    if _changed(before, after, "Complete", _TARGET) and complete and is_true(after, _TARGET):
        yield invalid_value(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions")
    if _changed(before, after, "Complete") or _differs(before, after, "completionTime"):
        if ended and not complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            yield invalid_value("status.completionTime", why, ended)
        if complete and not ended:
            yield required("status.completionTime", "completionTime is required for Complete jobs")
    if _differs(before, after, "startTime", "completionTime"):
        started = after.get("startTime")
        if started and ended and ended < started:
            yield invalid_value("status.completionTime", "must be equal to or after `startTime`", ended)
    if (_changed(before, after, "Failed") or _differs(before, after, "failedIndexes")) and (
        is_true(after, "Failed") and not is_true(after, _TARGET)
    ):
        yield invalid_value(_CONDITIONS, "cannot set Failed=True condition without the FailureTarget=true condition")
    if _changed(before, after, "Complete", _MET) and complete and not is_true(after, _MET):
        why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield invalid_value(_CONDITIONS, why)


def _check_finished(before: Json, after: Json, spec: Json) -> Iterator[Cause]:
    if not is_finished(after):
        return
    turned = not is_finished(before)
    if (turned or _differs(before, after, "active")) and (after.get("active") or 0) > 0:
        yield invalid_value("status.active", "active>0 is invalid for finished job", after["active"])
    never_runs = spec.get("suspend") and spec.get("completions") == 0
    if (turned or _differs(before, after, "startTime")) and not never_runs and not after.get("startTime"):
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = after.get("uncountedTerminatedPods") or {}
    if (turned or _differs(before, after, "uncountedTerminatedPods")) and any(uncounted.values()):
        yield invalid_value("status.uncountedTerminatedPods", "must be empty for finished job", uncounted)
    if (turned or _differs(before, after, "terminating")) and (after.get("terminating") or 0) > 0:
        yield invalid_value("status.terminating", "terminating>0 is invalid for finished job", after["terminating"])


def _check_indexes(before: Json, after: Json, spec: Json) -> Iterator[Cause]:
    done, failed = after.get("completedIndexes"), after.get("failedIndexes")
    if _differs(before, after, "completedIndexes") and done and spec.get("completionMode") != "Indexed":
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid_value("status.completedIndexes", why, f'"{done}"')
    if _differs(before, after, "failedIndexes") and failed is not None and "backoffLimitPerIndex" not in spec:
        why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid_value("status.failedIndexes", why, f'"{failed}"')


def _check_pods(before: Json, after: Json) -> Iterator[Cause]:
    ready = after.get("ready")
    if ready is not None and _differs(before, after, "ready", "active") and ready > (after.get("active") or 0):
        yield invalid_value("status.ready", "cannot set more ready pods than active", ready)


def _check_criteria(after: Json, spec: Json) -> Iterator[Cause]:
    if is_true(after, _MET):
        for kind, shown in (("Failed", "Failed=true"), (_TARGET, "FailureTarget=true")):
            if is_true(after, kind):
                yield invalid_value(_CONDITIONS, f"cannot set SuccessCriteriaMet=True and {shown} conditions")
    elif spec.get("successPolicy") and is_true(after, "Complete"):
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield invalid_value(_CONDITIONS, why)


def _check_lasting(before: Json, after: Json) -> Iterator[Cause]:
    for kind in ("Failed", "Complete", _TARGET):
        if is_true(before, kind) and not is_true(after, kind):
            yield invalid_value(_CONDITIONS, f"cannot disable the terminal {kind}=True condition")


def _check_counters(before: Json, after: Json, spec: Json) -> Iterator[Cause]:
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field in ("failed",) if elastic else ("failed", "succeeded"):
        if (after.get(field) or 0) < (before.get(field) or 0):
            yield invalid_value(f"status.{field}", f"cannot decrease the {field} counter", after.get(field) or 0)


def _check_times(before: Json, after: Json, spec: Json) -> Iterator[Cause]:
    old, new = before.get("completionTime"), after.get("completionTime")
    if old and new and old != new:
        yield invalid_value("status.completionTime", "field is immutable", new)
    resuming = is_true(before, "Suspended") and _is_false(after, "Suspended")
    started = before.get("startTime")
    if started and started != after.get("startTime") and not resuming and not spec.get("suspend"):
        why = "field is immutable for unsuspended job once set"
        yield invalid_value("status.startTime", why, after.get("startTime"))
    if is_true(before, _MET) and not is_true(after, _MET):
        yield invalid_value(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition")
    if is_true(before, "Complete") and not is_true(before, _MET) and is_true(after, _MET):
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield invalid_value(_CONDITIONS, why)


def _is_false(status: Json, kind: str) -> bool:
    return any(item.get("type") == kind and item.get("status") == "False" for item in status.get("conditions") or ())
