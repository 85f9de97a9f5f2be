"""What the core of Kueue does next about one Workload: a list of rules, the first that applies decides.

Quota itself is given by the scheduler (`scheduling`); everything about the job is in `deciding_jobs`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import attrs

from multikueue.core.model.conditions import condition, is_true, parse_timestamp
from multikueue.core.model.eviction import ADMISSION_CHECK, DEACTIVATED, evicted, with_condition
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import JOB_UID_LABEL, WORKLOAD_FINALIZER
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, labels_of
from multikueue.core.model.workloads import (
    OUT_OF_TIME,
    checks,
    cluster_queue,
    has_quota,
    is_active,
    is_admitted,
    is_evicted,
    is_finished,
    is_on_hold,
)
from multikueue.sandbox.kueue.applying import ADMISSION, admission_body
from multikueue.sandbox.kueue.effects import NOTHING, ApplyStatus, Decision, Note, Replace, Rest, Step, first_of
from multikueue.sandbox.kueue.gates import with_gates
from multikueue.sandbox.kueue.scheduling.queues import Configuration, check_names
from multikueue.sandbox.kueue.statuses import (
    PODS_READY_TIMEOUT,
    deactivated,
    finished,
    released,
    requeued,
    synced_admitted,
    unreserved,
    with_backoff,
    with_checks,
    with_requeue_time,
    without_past_time,
    without_requeue_time,
)

CONTROLLER: Final = "kueue-workload-controller"
"""Who reports this module's events."""


@attrs.frozen
class Situation:
    """One Workload and what surrounds it."""

    workload: Json
    configuration: Configuration
    now: datetime
    orphaned: bool = False
    """Whether it belonged to a job of a kind we know that is no longer there."""
    pods_ready_timeout: timedelta | None = None
    """For how long an admitted Workload may be without ready pods; None: for ever."""


def decide_workload(situation: Situation) -> Decision:
    """The next thing to do."""
    return first_of(rule(situation) for rule in _RULES)


def admission(workload: Json, *notes: Note) -> Step:
    """Write the status of `workload`, as Kueue's core does."""
    return Step(ApplyStatus(WORKLOAD, admission_body(workload), ADMISSION), notes)


def without_finalizer(workload: Json) -> Step | None:
    """Take Kueue's finalizer off; None if it is not there."""
    held = dig(workload, "metadata", "finalizers") or []
    if WORKLOAD_FINALIZER not in held:
        return None
    rest = [name for name in held if name != WORKLOAD_FINALIZER]
    return Step(Replace(WORKLOAD, {**workload, "metadata": {**workload["metadata"], "finalizers": rest}}))


def eviction_note(workload: Json, reason: str, message: str, cause: str = "") -> Note:
    """The event of an eviction."""
    suffix = f"DueTo{cause}" if reason == DEACTIVATED and cause else ""
    return Note(CONTROLLER, workload, f"EvictedDueTo{reason}{suffix}", message)


def admitted_note(controller: str, workload: Json, now: datetime) -> Note:
    """The event of an admission."""
    waited = seconds_since(condition(workload, "QuotaReserved"), now)
    note = f"Admitted by ClusterQueue {cluster_queue(workload)}, wait time since reservation was {waited:.0f}s"
    return Note(controller, workload, "Admitted", note)


def seconds_since(entry: Json | None, now: datetime) -> float:
    """How long a condition has been what it is."""
    since = parse_timestamp((entry or {}).get("lastTransitionTime"))
    return max(0.0, (now - since).total_seconds()) if since else 0.0


def _being_deleted(situation: Situation) -> Decision | None:
    workload = situation.workload
    if not is_terminating(workload):
        return None
    owned = dig(workload, "metadata", "ownerReferences")
    if owned and not situation.orphaned:
        return NOTHING  # the job is stopped first
    return without_finalizer(workload) or NOTHING


def _over(situation: Situation) -> Decision | None:
    workload = situation.workload
    if is_finished(workload):
        return without_finalizer(workload) or NOTHING
    if situation.orphaned:
        message = "The workload's owner no longer exists"
        return admission(finished(workload, "OwnerNotFound", message, situation.now))
    return None


def _to_deactivate(situation: Situation) -> Decision | None:
    workload = situation.workload
    if is_active(workload):
        if not is_true(workload, "DeactivationTarget"):
            return None
        return Step(Replace(WORKLOAD, {**workload, "spec": {**workload["spec"], "active": False}}))
    if not is_evicted(workload):
        cause = str((condition(workload, "DeactivationTarget") or {}).get("reason") or "")
        result = deactivated(workload, situation.now)
        message = str((condition(result, "Evicted") or {}).get("message"))
        notes = [eviction_note(workload, DEACTIVATED, message, cause)] if has_quota(workload) else []
        return admission(result, *notes)
    return _released_without_job(situation) or _out_of_time(situation) or NOTHING


def _backing_off(situation: Situation) -> Decision | None:
    """Nothing else is done before its time to queue again: with quota it keeps that, and is evicted afterwards.

    That is Kueue's order (v0.19.2): a check that names a time to try again keeps others out until then.
    """
    workload, now = situation.workload, situation.now
    result = with_requeue_time(workload, now)
    if result is not workload:
        return admission(result)
    due = parse_timestamp(dig(workload, "status", "requeueState", "requeueAt"))
    return Rest(after=(due - now).total_seconds()) if due is not None and due > now else None


def _to_requeue(situation: Situation) -> Decision | None:
    workload, now = situation.workload, situation.now
    known = condition(workload, "Requeued") or {}
    if known.get("status") != "False":
        return None
    if known.get("reason") == DEACTIVATED:  # v0.19.2: what was deactivated for a cause stays out of the queue
        return admission(requeued(workload, True, "Reactivated", "The workload was reactivated", now))
    if known.get("reason") not in (PODS_READY_TIMEOUT, ADMISSION_CHECK):
        return None
    message = "The workload backoff was finished"
    return admission(requeued(without_requeue_time(workload), True, "BackoffFinished", message, now))


def _to_sync_checks(situation: Situation) -> Decision | None:
    queue = situation.configuration.cluster_queue_of(situation.workload)
    if queue is None:
        return None
    result = with_checks(situation.workload, check_names(queue, situation.workload), situation.now)
    return None if result is situation.workload else Step(Replace(WORKLOAD, result, "status"))


def _to_sync_gates(situation: Situation) -> Decision | None:
    result = with_gates(situation.workload, situation.now)
    return None if result is situation.workload else admission(result)


def _to_admit(situation: Situation) -> Decision | None:
    workload = situation.workload
    if is_admitted(workload):
        return None
    result = synced_admitted(workload, situation.now)
    if result is workload:
        return None
    return admission(result, *([admitted_note(CONTROLLER, result, situation.now)] if is_admitted(result) else []))


def _refused(situation: Situation) -> Decision | None:
    workload, now = situation.workload, situation.now
    if is_evicted(workload):
        return None
    rejected = [entry for entry in checks(workload) if entry.get("state") == "Rejected"]
    if rejected:
        names = ",".join(entry["name"] for entry in rejected)
        result = with_condition(
            workload, "DeactivationTarget", True, ADMISSION_CHECK, f"Admission check(s): {names}, were rejected", now
        )
        beginning = f"Deactivating workload because AdmissionCheck for {rejected[0]['name']} was Rejected: "
        note = Note(CONTROLLER, workload, "AdmissionCheckRejected", beginning + rejected[0]["message"], "Warning")
        return admission(result, note)
    if not has_quota(workload):
        return None
    retried = [_quoted(entry) for entry in checks(workload) if entry.get("state") == "Retry"]
    if not retried:
        return None
    message = f"Evicted due to AdmissionCheck in Retry state: {', '.join(retried)}"
    result = evicted(workload, ADMISSION_CHECK, message, now)
    return admission(result, eviction_note(workload, ADMISSION_CHECK, message))


def _out_of_time(situation: Situation) -> Decision | None:
    """It may run for so long in all; then it is deactivated.

    Kueue (v0.19.2) says that anew while the job of what it has deactivated stops, and does not take it back.
    """
    workload, limit = situation.workload, dig(situation.workload, "spec", "maximumExecutionTimeSeconds")
    if limit is None or not is_admitted(workload) or is_true(workload, "DeactivationTarget"):
        return None
    before = dig(workload, "status", "accumulatedPastExecutionTimeSeconds") or 0
    left = limit - before - seconds_since(condition(workload, "Admitted"), situation.now)
    if left > 0:
        return Rest(after=left)
    result = with_condition(
        workload, "DeactivationTarget", True, OUT_OF_TIME, "exceeding the maximum execution time", situation.now
    )
    message = f"The maximum execution time ({limit}s) exceeded"
    return admission(without_past_time(result), Note(CONTROLLER, workload, OUT_OF_TIME, message, "Warning"))


def _without_ready_pods(situation: Situation) -> Decision | None:
    """Its pods have not become ready in time: it is queued again, after a back-off."""
    workload, limit, now = situation.workload, situation.pods_ready_timeout, situation.now
    ready = condition(workload, "PodsReady") or {}
    if limit is None or not is_admitted(workload) or is_evicted(workload) or ready.get("status") == "True":
        return None
    waited = min(seconds_since(entry, now) for entry in (condition(workload, "Admitted"), ready) if entry)
    if waited < limit.total_seconds():
        return Rest(after=limit.total_seconds() - waited)
    message = f"Exceeded the PodsReady timeout {ObjectKey.of(workload)}"
    cause = str(ready.get("reason") or "WaitForStart")
    result = evicted(with_backoff(workload, now), PODS_READY_TIMEOUT, message, now, cause=cause)
    return admission(result, eviction_note(workload, PODS_READY_TIMEOUT, message))


def _quoted(entry: Json) -> str:
    message = entry.get("message")
    return f'"{entry["name"]}" ({message})' if message else f'"{entry["name"]}"'


def _released_without_job(situation: Situation) -> Decision | None:
    """A copy whose job has not come yet has nobody to stop: its quota goes back at once."""
    workload = situation.workload
    owned = dig(workload, "metadata", "ownerReferences") or JOB_UID_LABEL in labels_of(workload)
    if owned or not is_evicted(workload) or not has_quota(workload):
        return None
    return admission(released(workload, situation.now))


def _inadmissible(situation: Situation) -> Decision | None:
    workload = situation.workload
    if has_quota(workload) or is_on_hold(workload):
        return None
    message = situation.configuration.inadmissible(workload)
    if message is None:
        return None
    known = condition(workload, "QuotaReserved") or {}
    if known.get("reason") == "Inadmissible" and known.get("message") == message:
        return None
    return admission(unreserved(workload, "Inadmissible", message, situation.now))


_RULES: Final[tuple[Callable[[Situation], Decision | None], ...]] = (
    _being_deleted,
    _over,
    _to_deactivate,
    _backing_off,
    _to_requeue,
    _to_sync_checks,
    _to_sync_gates,
    _to_admit,
    _refused,
    _released_without_job,
    _without_ready_pods,
    _out_of_time,
    _inadmissible,
)
