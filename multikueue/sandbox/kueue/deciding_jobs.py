"""What Kueue does next about one job: its Workload, starting it, stopping it, seeing it end.

A list of rules, the first that applies decides. The same rules serve the manager, where another controller copies the
job's status, and the workers, where the job runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import condition
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.eviction import with_condition
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.labels import JOB_UID_LABEL, STOPPING_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, is_terminating, uid
from multikueue.core.model.workloads import (
    ON_HOLD,
    checks,
    cluster_queue,
    has_quota,
    is_admitted,
    is_elastic,
    is_evicted,
    is_finished,
    replaces_slice,
)
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.injecting import Injection, TemplateConflictError
from multikueue.sandbox.kueue.applying import PODS_READY, condition_body
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.kueue.deciding_workloads import admission, without_finalizer
from multikueue.sandbox.kueue.effects import (
    NOTHING,
    ApplyStatus,
    Create,
    Decision,
    Delete,
    Note,
    Replace,
    Rest,
    Step,
    first_of,
)
from multikueue.sandbox.kueue.scheduling.podsets import as_admitted, equivalent
from multikueue.sandbox.kueue.slices import SLICE_OUT_OF_SYNC, counts, replaced_key, resized
from multikueue.sandbox.kueue.starting import continue_stop, start, stop, suspended_when_queued
from multikueue.sandbox.kueue.statuses import finished, released, unreserved
from multikueue.sandbox.kueue.units import queue_name
from multikueue.sandbox.objects import owned_by


@attrs.frozen
class JobSituation:
    """One job, its Workload, and what is needed to act on them."""

    kind: SandboxKind
    job: Json
    workload: Json | None
    now: datetime
    replaced: Json | None = None
    """Of an elastic job: the slice that its Workload replaces, if that has not finished."""
    priority: int = 0
    """Value of the job's priority class; 0 without one."""
    injections: Callable[[], dict[str, Injection]] = dict
    """What starting puts into the templates; may raise `TemplateConflictError`."""

    def note(self, reason: str, note: str) -> Note:
        """An event on the job."""
        return Note(self.kind.controller, self.job, reason, note)

    def stopped(self, message: str) -> Decision | None:
        """Stop the job, if it is not stopped. The server may refuse that of one that has ended meanwhile."""
        if self.kind.is_suspended(self.job):
            return None
        if self.kind.is_held(self.job) and (written := continue_stop(self.kind, self.job, self.workload)) is not None:
            return Step(written)
        return Step(stop(self.kind, self.job, self.workload), (self.note("Stopped", message),))


def decide_job(situation: JobSituation) -> Decision:
    """The next thing to do."""
    if not queue_name(situation.job) or is_terminating(situation.job):
        return NOTHING
    rules = _RULES if situation.workload is not None else _RULES_WITHOUT_WORKLOAD
    return first_of(rule(situation, situation.workload or {}) for rule in rules)


def _half_stopped(situation: JobSituation, _workload: Json) -> Decision | None:
    if annotations_of(situation.job).get(STOPPING_ANNOTATION) != "true" or situation.kind.ending(situation.job):
        return None  # a job that ended while it was being stopped has ended: that comes first
    written = continue_stop(situation.kind, situation.job, situation.workload)
    return NOTHING if written is None else Step(written)


def _fresh(situation: JobSituation, _workload: Json) -> Decision | None:
    """A new job that is not suspended: there is no webhook that would have created it so."""
    kind, job = situation.kind, situation.job
    if job.get("status") or kind.is_suspended(job) or kind.pods.is_started(job):
        return None
    return Step(Replace(kind.resource, suspended_when_queued(job, kind)))


def _to_create(situation: JobSituation, _workload: Json) -> Decision | None:
    kind, job = situation.kind, situation.job
    if kind.ending(job) is not None:
        return NOTHING
    if prebuilt_workload(job):
        return situation.stopped("missing workload") or NOTHING
    stopped = situation.stopped("Missing Workload; unable to restore pod templates")
    if stopped is not None:
        return stopped
    if kind.course.is_active(job):
        return NOTHING  # its pods go first
    workload = build_workload(kind, job, situation.priority)
    return Step(
        Create(WORKLOAD, workload), (situation.note("CreatedWorkload", f"Created Workload: {ObjectKey.of(workload)}"),)
    )


def _to_adopt(situation: JobSituation, workload: Json) -> Decision | None:
    job = situation.job
    owners = dig(workload, "metadata", "ownerReferences") or []
    controller = next((owner for owner in owners if owner.get("controller")), None)
    if controller is not None:
        return None if controller["uid"] == uid(job) else NOTHING  # another job's: not ours to touch
    metadata = {
        **workload["metadata"],
        "labels": {**(dig(workload, "metadata", "labels") or {}), JOB_UID_LABEL: uid(job)},
        "ownerReferences": [*owners, owned_by(situation.kind.resource, job)],
    }
    return Step(Replace(WORKLOAD, {**workload, "metadata": metadata}))


def _replaced_in_vain(situation: JobSituation, _workload: Json) -> Decision | None:
    """A slice that is evicted, or has lost its quota, while another is to replace it: it cannot come back."""
    replaced = situation.replaced
    if replaced is None or (has_quota(replaced) and not is_evicted(replaced)):
        return None
    return admission(finished(replaced, "OutOfSync", SLICE_OUT_OF_SYNC, situation.now))


def _over(situation: JobSituation, workload: Json) -> Decision | None:
    if is_finished(workload):
        return NOTHING
    if is_terminating(workload):
        return situation.stopped("Workload is deleted") or without_finalizer(workload) or NOTHING
    return None


def _resized(situation: JobSituation, workload: Json) -> Decision | None:
    """An elastic job that is not as its Workload says, or whose bigger Workload is not admitted yet: it runs on."""
    kind, job = situation.kind, situation.job
    if not is_elastic(job) or prebuilt_workload(job):
        return None
    wanted, had = counts(kind.pods.read(job)), counts(dig(workload, "spec", "podSets") or [])
    if wanted == had or len(wanted) != len(had):
        return _awaiting_slice(situation, workload)
    if not has_quota(workload) or all(new <= old for new, old in zip(wanted, had, strict=True)):
        return Step(Replace(WORKLOAD, resized(workload, wanted)))
    if situation.replaced is not None:
        return NOTHING  # it has quota, and is about to take the other's place
    slice_ = build_workload(kind, job, situation.priority, replaces=workload)
    message = f"Created Workload: {ObjectKey.of(slice_)}"
    return Step(Create(WORKLOAD, slice_), (situation.note("CreatedWorkload", message),))


def _awaiting_slice(situation: JobSituation, workload: Json) -> Decision | None:
    waits = replaced_key(workload) is not None and not is_admitted(workload) and not is_evicted(workload)
    return NOTHING if waits and not situation.kind.is_suspended(situation.job) else None


def _different(situation: JobSituation, workload: Json) -> Decision | None:
    kind, job = situation.kind, situation.job
    if _matches(situation, workload) or (prebuilt_workload(job) and is_elastic(job) and replaces_slice(workload)):
        return None  # a slice that replaces another is believed: its job follows
    if prebuilt_workload(job):
        message = "The prebuilt workload is out of sync with its user job"
        return admission(finished(workload, "OutOfSync", message, situation.now))
    if kind.is_suspended(job) and not has_quota(workload):
        fresh = build_workload(kind, job, situation.priority)
        event = f"Updated not matching Workload for suspended job: {ObjectKey.of(workload)}"
        return Step(Replace(WORKLOAD, {**workload, "spec": fresh["spec"]}), (situation.note("UpdatedWorkload", event),))
    stopped = situation.stopped("No matching Workload; restoring pod templates according to existent Workload")
    if stopped is not None:
        return stopped
    event = f"Deleted not matching Workload: {ObjectKey.of(workload)}"
    return without_finalizer(workload) or Step(
        Delete(WORKLOAD, ObjectKey.of(workload), uid(workload)), (situation.note("DeletedWorkload", event),)
    )


def _matches(situation: JobSituation, workload: Json) -> bool:
    """Tolerations count until admission; after it, a running job has the flavors' too, and may have fewer pods."""
    kind, job = situation.kind, situation.job
    same = functools.partial(equivalent, kind.pods.read(job), tolerations=not is_admitted(workload))
    return same(as_admitted(workload)) or (kind.is_suspended(job) and same(dig(workload, "spec", "podSets") or []))


def _on_hold(situation: JobSituation, workload: Json) -> Decision | None:
    if not situation.kind.on_hold(situation.job):
        return None
    if not has_quota(workload):
        return NOTHING
    return admission(unreserved(workload, ON_HOLD, "Job is on hold", situation.now))


def _to_finish(situation: JobSituation, workload: Json) -> Decision | None:
    ending = situation.kind.ending(situation.job)
    if ending is None:
        return None
    result = finished(workload, ending.reason, ending.message, situation.now)
    message = f"Workload '{ObjectKey.of(workload)}' is declared finished"
    return admission(result, situation.note("FinishedWorkload", message))


def _pods_ready(situation: JobSituation, workload: Json) -> Decision | None:
    known = condition(workload, "PodsReady") or {}
    status, reason, message = _readiness(situation, workload, known)
    if known.get("status") == str(status) and known.get("reason") == reason:
        return None
    changed = with_condition(workload, "PodsReady", status, reason, message, situation.now)
    return Step(ApplyStatus(WORKLOAD, condition_body(changed, "PodsReady"), PODS_READY))


def _readiness(situation: JobSituation, workload: Json, known: Json) -> tuple[bool, str, str]:
    if not is_admitted(workload):
        return False, "WaitForStart", "Not all pods are ready or succeeded"
    recovering = known.get("reason") == "WaitForRecovery"
    if situation.kind.course.pods_ready(situation.job):
        again = recovering or known.get("reason") == "Recovered"
        reason = "Recovered" if again else "Started"
        return True, reason, "All pods reached readiness and the workload is running"
    if recovering or known.get("status") == "True":
        return False, "WaitForRecovery", "At least one pod has failed, waiting for recovery"
    return False, "WaitForStart", "Not all pods are ready or succeeded"


def _evicted(situation: JobSituation, workload: Json) -> Decision | None:
    if not is_evicted(workload):
        return None
    stopped = situation.stopped(str((condition(workload, "Evicted") or {}).get("message") or ""))
    if stopped is not None:
        return stopped
    if has_quota(workload) and not situation.kind.course.is_active(situation.job):
        return admission(released(workload, situation.now))
    return NOTHING


def _suspended(situation: JobSituation, workload: Json) -> Decision | None:
    kind, job = situation.kind, situation.job
    if not kind.is_suspended(job):
        return None
    if is_admitted(workload):
        try:
            request = start(kind, job, situation.injections())
        except TemplateConflictError as conflict:
            return admission(finished(workload, "FailedToStart", str(conflict), situation.now))
        return Step(request, (situation.note("Started", f"Admitted by clusterQueue {cluster_queue(workload)}"),))
    if not has_quota(workload) and dig(workload, "spec", "queueName") != queue_name(job):
        return Step(Replace(WORKLOAD, {**workload, "spec": {**workload["spec"], "queueName": queue_name(job)}}))
    said = [
        f"{entry['name']}: {entry['message']}"
        for entry in checks(workload)
        if entry.get("state") == "Pending" and entry.get("message")
    ]
    if said and has_quota(workload):
        return Rest(notes=(situation.note("UpdatedAdmissionCheck", "; ".join(said)),))
    return NOTHING


def _running(situation: JobSituation, workload: Json) -> Decision | None:
    if is_admitted(workload) and situation.kind.pods.is_started(situation.job):
        return None
    return situation.stopped("Not admitted by cluster queue")


_Rule = Callable[[JobSituation, Json], Decision | None]
_RULES: Final[tuple[_Rule, ...]] = (
    _half_stopped,
    _fresh,
    _to_adopt,
    _replaced_in_vain,
    _over,
    _on_hold,
    _to_finish,
    _resized,
    _different,
    _pods_ready,
    _evicted,
    _suspended,
    _running,
)
_RULES_WITHOUT_WORKLOAD: Final[tuple[_Rule, ...]] = (_half_stopped, _fresh, _on_hold, _to_create)
