"""`batch/v1` Job. What the manager's shows of its copy is in `job_status`."""

from __future__ import annotations

from multikueue.adapters.job_status import WORDS, job_outcome, job_status, settled_end, status_at_settled_end
from multikueue.adapters.kind import JobKind
from multikueue.adapters.managed_by_support import KUBERNETES
from multikueue.adapters.rules import TTL, CopyRules, Delegation, StatusRules, SyncRules, counters_at_zero, limits_at
from multikueue.adapters.templates import PodTemplates
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.copies import renaming_patch
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import (
    MIN_PARALLELISM_ANNOTATION,
    SAME_COMPLETIONS_ANNOTATION,
    STOPPING_ANNOTATION,
)
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig
from multikueue.core.model.started import is_started
from multikueue.core.model.workload_names import is_latest_slice

_GENERATED_LABELS = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")
"""Template labels the manager's API server filled in; a worker's refuses another Job's."""
_NAME_LABEL = "batch.kubernetes.io/job-name"
"""It filled in this one, too, and any server takes it."""


def job_size(local: Json, remote: Json, stamp: Stamp) -> Json | None:
    """The patch that gives an elastic job's copy its new size, and the name of the slice that has quota for it.

    A copy grows only for the slice made for this very size: an older slice sees the bigger job before it knows that
    it has been replaced. It shrinks with the Workload, right after its copy: a worker's Kueue that sees the two differ
    stops the job (`OutOfSync`).
    """
    old, new = (dig(job, "spec", "parallelism") or 0 for job in (remote, local))
    counted = sum(stamp.counts.values())
    if old < new and counted != new and not is_latest_slice(JOB.gvk, local, stamp.workload):
        return None
    if new < old and new < counted:
        return None
    patch = renaming_patch(remote, stamp)
    return {**patch, "spec": {"parallelism": new}} if old != new else patch


def at_full_size(job: Json, made: Json, stamp: Stamp) -> Json:
    """The copy with as many pods as the user wants: Kueue may have started the manager's Job with fewer."""
    noted, pod_sets = annotations_of(job), stamp.pod_sets
    if MIN_PARALLELISM_ANNOTATION in noted and len(pod_sets) == 1 and is_started(job):
        made["spec"]["parallelism"] = pod_sets[0].get("count", 1)
        if noted.get(SAME_COMPLETIONS_ANNOTATION) == "true":
            made["spec"]["completions"] = made["spec"]["parallelism"]
    return made


def _is_counting(job: Json) -> bool:
    """Its controller first notes which pods have ended, and shows none of them active any more. With the next write it
    counts them, and says whether the job has ended by that.
    """
    noted = dig(job, "status", "uncountedTerminatedPods") or {}
    return any(noted.values())


KINDS = (
    JobKind(
        resource=JOB,
        framework="batch/job",
        delegation=Delegation(own_controller="kubernetes.io/job-controller", heeding=KUBERNETES),
        copies=CopyRules(
            left_out=(
                ("spec", "selector"),
                ("spec", TTL),
                ("metadata", "annotations", STOPPING_ANNOTATION),  # by it the manager's Kueue knows what it is doing
                *(("spec", "template", "metadata", "labels", label) for label in _GENERATED_LABELS),
            ),
            templates=(PodTemplates(at=("spec", "template"), pod_set="main", kept=(_NAME_LABEL,)),),
            prepared=at_full_size,
            unread=(("spec", "template"),),
        ),
        status=StatusRules(
            rule=job_status,
            words=WORDS,
            finished=job_outcome,
            settled=settled_end,
            at_settled_end=status_at_settled_end,
            counting=_is_counting,
            stopped=counters_at_zero(("active",), ("ready",), ("terminating",)),
        ),
        sync=SyncRules(resized=job_size, forwarded=(*limits_at("spec"), ("spec", "maxFailedIndexes"))),
    ),
)
