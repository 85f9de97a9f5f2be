"""Reading a Workload: what its conditions, checks and annotations say."""

from __future__ import annotations

import functools
from datetime import datetime
from enum import StrEnum
from typing import Final

import attrs

from multikueue.core.model import labels
from multikueue.core.model.conditions import changed_at, condition, is_true
from multikueue.core.model.names import GVK, ClusterName, Json
from multikueue.core.model.objects import annotations_of, counted, dig, digest, is_terminating, labels_of, uid


class CheckState(StrEnum):
    """State of one AdmissionCheck on a Workload."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


class Rejection(StrEnum):
    """Why our check was Rejected: the reason of the condition that is written with it."""

    KIND_NOT_ENABLED = "KindNotEnabled"
    NOT_DELEGATED = "NotDelegated"
    ACTED_ON_HERE = "ActedOnHere"
    """A controller of the manager acts on the job although it is delegated."""
    NOT_COPIED = "CannotBeCopied"
    """A rule of the job's kind fails for it."""
    NOT_TAKEN = "NotTaken"
    """No worker took it for as long as its dispatcher waits."""


VERDICT: Final = "multikueue.dev/Rejected"
"""The type of that condition. Kueue resets the check as soon as it has deactivated the Workload; this one stays."""
OUT_OF_SYNC: Final = "OutOfSync"
"""A worker's Kueue finished the Workload because the job that claims it is another."""
OWNER_NOT_FOUND: Final = "OwnerNotFound"
"""A worker's Kueue finished the Workload because it found no job behind it."""
ON_HOLD: Final = "OnHold"
"""Reason of `QuotaReserved` where quota was taken, without an eviction, as the job is not run as it is."""
OUT_OF_TIME: Final = "MaximumExecutionTimeExceeded"
"""Kueue deactivated the Workload because it ran for longer than its `maximumExecutionTimeSeconds`."""
STOPPED_FROM_MANAGER: Final = "EvictedOnManagerCluster"
"""Why we ask a worker's Kueue to deactivate a copy: the manager does not go on with that run."""
SLICE_REPLACED: Final = "WorkloadSliceReplaced"
"""Kueue finished the Workload because a bigger slice of the same elastic job has quota."""
MOST_EVICTIONS_AT_ONCE: Final = 8
"""So many evictions back a copy's attempt is looked for, while one is under way."""
ENDS: Final = ("Succeeded", "Failed", "FailedToStart", SLICE_REPLACED)
"""Why Kueue finishes a Workload that is over: its job has ended, cannot be started, or is another Workload's now."""


@attrs.frozen
class Owner:
    """The job a Workload belongs to: its kind and its name; the namespace is the Workload's."""

    gvk: GVK
    name: str


def is_finished(workload: Json) -> bool:
    """Whether the job has ended, well or not."""
    return is_true(workload, "Finished")


def is_on_hold(workload: Json) -> bool:
    """Whether its Kueue has taken its quota, and gives it none until its job says something else."""
    reserved = condition(workload, "QuotaReserved") or {}
    return reserved.get("status") == "False" and reserved.get("reason") == ON_HOLD


def is_active(workload: Json) -> bool:
    """Whether it may run: nobody has deactivated it."""
    return dig(workload, "spec", "active") is not False


REACTIVATED: Final = ("Requeued", "Reactivated", "The workload was reactivated")
"""What Kueue says when it queues one again that is active again: condition, reason and message."""


def is_left_out(workload: Json) -> bool:
    """Whether its Kueue keeps it out of the queue, though it is active again.

    Kueue (up to v0.19.2) queues again what it had deactivated, but not if there was a cause: a check that rejected it,
    too many requeues.
    """
    known = condition(workload, "Requeued") or {}
    out = known.get("status") == "False" and str(known.get("reason")).startswith("DeactivatedDueTo")
    return out and is_active(workload) and not is_true(workload, "DeactivationTarget")


def has_quota(workload: Json) -> bool:
    """Whether quota is reserved in a ClusterQueue."""
    return is_true(workload, "QuotaReserved")


def is_admitted(workload: Json) -> bool:
    """Whether quota is reserved and all checks are Ready."""
    return is_true(workload, "Admitted")


def is_evicted(workload: Json) -> bool:
    """Whether it is being taken out of its quota."""
    return is_true(workload, "Evicted")


def is_out_of_time(workload: Json) -> bool:
    """Whether it is being taken out of its quota because it has run for as long as it may."""
    return _is_deactivated_for(workload, OUT_OF_TIME)


def was_stopped_from_manager(copy: Json) -> bool:
    """Whether a worker's Kueue has evicted a copy because we have asked it to."""
    return _is_deactivated_for(copy, STOPPED_FROM_MANAGER)


def _is_deactivated_for(workload: Json, cause: str) -> bool:
    """Kueue puts the cause behind the reason of the eviction, as in `DeactivatedDueToMaximumExecutionTimeExceeded`."""
    reason = str((condition(workload, "Evicted") or {}).get("reason") or "")
    return is_evicted(workload) and reason.endswith(cause)


def was_rejected(workload: Json) -> bool:
    """Whether it was deactivated because an admission check rejected it: Kueue notes that as the cause. The check
    itself is Pending again by then."""
    reason = str((condition(workload, "Evicted") or {}).get("reason") or "")
    return is_evicted(workload) and not is_active(workload) and reason == "DeactivatedDueToAdmissionCheck"


def verdict(workload: Json) -> Rejection | None:
    """Why our check was Rejected last; None: it was not, it was by an older version, or the Workload was made active
    again since. Its deactivation, by Kueue, is the one change of its spec that may follow."""
    rejection = condition(workload, VERDICT) or {}
    generation, judged = dig(workload, "metadata", "generation"), rejection.get("observedGeneration")
    if not isinstance(generation, int) or not isinstance(judged, int) or generation - judged > 1:
        return None
    return next((known for known in Rejection if known == rejection.get("reason")), None)


def is_live(workload: Json) -> bool:
    """Whether it has quota, has not ended, and nobody has deleted it."""
    return has_quota(workload) and not is_finished(workload) and not is_terminating(workload)


def has_had_owner(copy: Json) -> bool:
    """Whether a job has ever stood behind the copy: the worker's Kueue notes the job it adopts, and keeps the note."""
    return labels.JOB_UID_LABEL in labels_of(copy) or bool(dig(copy, "metadata", "ownerReferences"))


def finish_reason(workload: Json) -> str:
    """Reason of the Finished condition; empty if there is none."""
    return str((condition(workload, "Finished") or {}).get("reason") or "")


def checks(workload: Json) -> list[Json]:
    """The Workload's admission checks."""
    return dig(workload, "status", "admissionChecks") or []


def check(workload: Json, name: str) -> Json | None:
    """The entry of one admission check."""
    return next((entry for entry in checks(workload) if entry.get("name") == name), None)


def check_state(workload: Json, name: str) -> CheckState:
    """State of one admission check; an entry without a state counts as Pending."""
    entry = check(workload, name) or {}
    return CheckState(entry.get("state") or CheckState.PENDING)


def other_checks_ready(workload: Json, name: str) -> bool:
    """Whether every check but the one named is Ready: only then may copies be made."""
    return all(entry.get("state") == CheckState.READY for entry in checks(workload) if entry.get("name") != name)


def is_about_to_be_evicted(workload: Json, name: str) -> bool:
    """Whether its Kueue is about to evict or deactivate it: for a check other than the one named, or as asked to."""
    others = (entry.get("state") for entry in checks(workload) if entry.get("name") != name)
    asked = not is_active(workload) or is_true(workload, "DeactivationTarget")
    return asked or any(state in (CheckState.RETRY, CheckState.REJECTED) for state in others)


def cluster_name(workload: Json) -> ClusterName | None:
    """The worker that admitted it: once set it is kept until eviction."""
    return dig(workload, "status", "clusterName") or None


def noted_worker(workload: Json) -> ClusterName | None:
    """The worker that had it last, as far as an annotation of ours keeps its name."""
    return ClusterName(annotations_of(workload).get(labels.LAST_WORKER_ANNOTATION) or "") or None


def nominated(workload: Json) -> tuple[str, ...]:
    """The workers it is offered to."""
    return tuple(dig(workload, "status", "nominatedClusterNames") or ())


def cluster_queue(workload: Json) -> str:
    """The ClusterQueue whose quota it holds; empty without quota."""
    return dig(workload, "status", "admission", "clusterQueue") or ""


def is_elastic(obj: Json) -> bool:
    """Whether a Workload or a job says that its size may change while it runs."""
    return annotations_of(obj).get(labels.ELASTIC_ANNOTATION) == "true"


def has_had_quota(workload: Json) -> bool:
    """Whether it has quota, is evicted, or Finished: a slice that never had quota takes no job from another one."""
    return has_quota(workload) or is_evicted(workload) or is_finished(workload)


def is_replaced(workload: Json) -> bool:
    """Whether it is a Finished slice of an elastic job whose place a bigger slice has taken: the job has not ended."""
    return is_elastic(workload) and is_finished(workload) and finish_reason(workload) == SLICE_REPLACED


def replaces_slice(workload: Json) -> bool:
    """Whether it takes the place of a smaller slice of an elastic job, which may be running."""
    return is_elastic(workload) and labels.SLICE_REPLACEMENT_ANNOTATION in annotations_of(workload)


def is_made_for(workload: Json, owned_by: Owner, job: Json) -> bool:
    """Whether the Workload was made for this very object: another of the same kind and name may have taken its place.

    Args:
        workload: of which the job is the owner by kind and name.
        owned_by: this kind and name.
        job: the object of that name.
    """
    noted = [
        str(reference.get("uid") or "")
        for reference in dig(workload, "metadata", "ownerReferences") or []
        if (reference.get("kind"), reference.get("name")) == (owned_by.gvk.kind, owned_by.name)
    ]
    return not noted or uid(job) in noted


def has_members(workload: Json) -> bool:
    """Whether several jobs of one kind stand behind it: the pods of a group.

    Kinds that make such pods (StatefulSet, LeaderWorkerSet) are named as the owner; then that is the one job.
    """
    noted = annotations_of(workload)
    return noted.get(labels.GROUP_WORKLOAD_ANNOTATION) == "true" and labels.JOB_OWNER_GVK_ANNOTATION not in noted


def component_index(workload: Json) -> int | None:
    """Its place among the Workloads of one job (LeaderWorkerSet); -1 if it does not tell, None if it is alone."""
    noted = annotations_of(workload).get(labels.COMPONENT_INDEX_ANNOTATION)
    if noted is None:
        return None
    index = counted(noted)
    return -1 if index is None else index


def owner(workload: Json) -> Owner | None:
    """The job behind the Workload.

    The owner annotations (StatefulSet, LeaderWorkerSet) come first, then the controller, then the first owner:
    a pod group has owners but no controller.
    """
    noted = annotations_of(workload)
    if noted.get(labels.JOB_OWNER_NAME_ANNOTATION):
        gvk = GVK.parse(noted.get(labels.JOB_OWNER_GVK_ANNOTATION, ""))
        if gvk is not None:
            return Owner(gvk, noted[labels.JOB_OWNER_NAME_ANNOTATION])
    references = dig(workload, "metadata", "ownerReferences") or []
    if not references:
        return None
    chosen = next((reference for reference in references if reference.get("controller")), references[0])
    return Owner(GVK.of(chosen.get("apiVersion", ""), chosen.get("kind", "")), chosen.get("name", ""))


def job_reference(workload: Json) -> Json | None:
    """What names the job behind the Workload, as an event does; None: its UID is not known."""
    job = owner(workload)
    uid_of_job = owner_names(workload, job.gvk).get(job.name) if job is not None else None
    if job is None or uid_of_job is None:
        return None
    metadata = {"namespace": workload["metadata"]["namespace"], "name": job.name, "uid": uid_of_job}
    return {"apiVersion": job.gvk.api_version, "kind": job.gvk.kind, "metadata": metadata}


def owner_names(workload: Json, gvk: GVK) -> dict[str, str]:
    """The UIDs of a Workload's owners of one kind, by name."""
    references = dig(workload, "metadata", "ownerReferences") or []
    wanted = (gvk.api_version, gvk.kind)
    return {
        reference["name"]: reference["uid"]
        for reference in references
        if (reference["apiVersion"], reference["kind"]) == wanted
    }


def owner_uids(workload: Json) -> set[str]:
    """The UIDs of all its owners: the Workloads of one group have one in common."""
    return {str(reference.get("uid")) for reference in dig(workload, "metadata", "ownerReferences") or []}


def attempt(workload: Json, *, evictions_ago: int = 0) -> str:
    """Which attempt at running this is: it changes with every new reservation of quota.

    A Workload can be evicted and get quota again within 300 ms, so the state in between may never be seen. The
    attempt tells its copies apart all the same: the object's UID, how often it was evicted, and when it got quota.
    """
    reserved = condition(workload, "QuotaReserved") or {}
    return _attempt(uid(workload), evictions(workload) - evictions_ago, reserved.get("lastTransitionTime"))


def attempts(workload: Json) -> tuple[str, ...]:
    """What copies of the attempt that goes on, or that its Kueue is ending, may be marked with; the newest first.

    Kueue counts an eviction as it begins, and may count several before the quota is free: a copy of the attempt that
    they end is marked with so many less.
    """
    ends = is_evicted(workload) and has_quota(workload)
    counted = min(evictions(workload), MOST_EVICTIONS_AT_ONCE) if ends else 0
    return tuple(attempt(workload, evictions_ago=ago) for ago in range(counted + 1))


@functools.lru_cache(maxsize=4096)
def _attempt(of: str, evicted: int, reserved: str | None) -> str:
    """Every snapshot and every plan of a Workload asks for it several times."""
    return digest([of, evicted, reserved])


def reserved_at(workload: Json) -> datetime | None:
    """When this attempt got its quota, by the clock of the manager's Kueue; None if that cannot be read."""
    return changed_at(workload, "QuotaReserved")


def evictions(workload: Json) -> int:
    """How often it has been evicted so far. Kueue counts an eviction as it begins."""
    listed = dig(workload, "status", "schedulingStats", "evictions") or []
    return sum(int(entry.get("count") or 0) for entry in listed)


def pod_counts(workload: Json) -> dict[str, int]:
    """How many pods it is for, by pod set, in their order; one where a pod set does not tell (the API's default)."""
    return {str(pod_set.get("name")): pod_set.get("count", 1) for pod_set in dig(workload, "spec", "podSets") or []}


def has_lost_its_record(workload: Json) -> bool:
    """Whether it had a worker, and nothing says which any more: it may be any that was not read since.

    Somebody has erased it, or it was evicted while nobody was there who could have noted it.
    """
    had_one = is_admitted(workload) or is_evicted(workload) or evictions(workload) > 0
    return had_one and cluster_name(workload) is None and noted_worker(workload) is None


def is_serving_pod(job: Json) -> bool:
    """Whether a job is a pod of a group that runs until somebody stops it."""
    return annotations_of(job).get(labels.POD_GROUP_SERVING_ANNOTATION) == "true"


def is_on(workload: Json, cluster: str) -> bool:
    """Whether a Workload is on a worker, or about to be: while it is, the job of its group stays there."""
    return is_live(workload) and cluster in (cluster_name(workload), *nominated(workload))
