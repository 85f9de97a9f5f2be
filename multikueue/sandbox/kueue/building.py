"""The Workload Kueue makes for a job, or for gated pods."""

from __future__ import annotations

from multikueue.core.model.kinds import KUEUE_GROUP, WORKLOAD
from multikueue.core.model.labels import (
    COMPONENT_INDEX_ANNOTATION,
    ELASTIC_ANNOTATION,
    GROUP_WORKLOAD_ANNOTATION,
    JOB_OWNER_GVK_ANNOTATION,
    JOB_OWNER_NAME_ANNOTATION,
    JOB_UID_LABEL,
    PRIORITY_CLASS_LABEL,
    SLICE_REPLACEMENT_ANNOTATION,
    WORKLOAD_FINALIZER,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import labels_of, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.core.model.workloads import is_elastic
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kinds.pods import POD
from multikueue.sandbox.kinds.sets import SetKind, pod_sets
from multikueue.sandbox.kueue.units import Unit, queue_name
from multikueue.sandbox.objects import owned_by

MAX_TIME_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
"""On a job: for how many seconds it may run."""


def build_workload(kind: SandboxKind, job: Json, priority: int, *, replaces: Json | None = None) -> Json:
    """The Workload for a job, with the job as its controller.

    Args:
        priority: the value of the job's priority class, 0 without one.
        replaces: for an elastic job that has grown, the Workload of its earlier size.
    """
    spec: Json = {
        "active": True,
        "podSets": kind.pods.read(job),
        "priority": priority,
        "queueName": queue_name(job),
    }
    if priority_class(job):
        spec["priorityClassRef"] = {
            "group": KUEUE_GROUP,
            "kind": "WorkloadPriorityClass",
            "name": priority_class(job),
        }
    spec |= _limit(job)
    extra = str(job["metadata"].get("generation") or 0) if is_elastic(job) else ""
    metadata: Json = {
        "name": workload_name(kind.resource.gvk, job["metadata"]["name"], uid(job), extra),
        "namespace": job["metadata"]["namespace"],
        "labels": {JOB_UID_LABEL: uid(job)},
        "finalizers": [WORKLOAD_FINALIZER],
        "ownerReferences": [owned_by(kind.resource, job)],
    }
    if is_elastic(job):
        metadata["annotations"] = {ELASTIC_ANNOTATION: "true"}
    if replaces is not None:
        metadata["annotations"][SLICE_REPLACEMENT_ANNOTATION] = str(ObjectKey.of(replaces))
    return {"apiVersion": WORKLOAD.gvk.api_version, "kind": WORKLOAD.gvk.kind, "metadata": metadata, "spec": spec}


def unit_workload(unit: Unit) -> Json:
    """The Workload for a pod, a group of pods or a part of a set. Only a pod on its own is its controller."""
    owner = unit.owners[0][1]
    spec: Json = {"active": True, "podSets": _unit_pod_sets(unit), "priority": 0, "queueName": queue_name(owner)}
    spec |= _limit(owner)
    metadata: Json = {
        "name": unit.key.name,
        "namespace": unit.key.namespace,
        "finalizers": [WORKLOAD_FINALIZER],
        "ownerReferences": [owned_by(*owner, controller=unit.kind is None and not unit.group) for owner in unit.owners],
    }
    if unit.kind is not None:
        metadata["annotations"] = _owner_annotations(unit, unit.kind, owner["metadata"]["name"])
    elif unit.group:
        metadata["annotations"] = {GROUP_WORKLOAD_ANNOTATION: "true"}
    else:
        metadata["labels"] = {JOB_UID_LABEL: uid(owner)}
    return {"apiVersion": WORKLOAD.gvk.api_version, "kind": WORKLOAD.gvk.kind, "metadata": metadata, "spec": spec}


def _limit(job: Json) -> Json:
    seconds = labels_of(job).get(MAX_TIME_LABEL) or ""
    return {"maximumExecutionTimeSeconds": int(seconds)} if seconds.isdecimal() else {}


def _owner_annotations(unit: Unit, kind: SetKind, name: str) -> Json:
    gvk = kind.resource.gvk
    noted = {JOB_OWNER_GVK_ANNOTATION: f"{gvk.api_version}, Kind={gvk.kind}", JOB_OWNER_NAME_ANNOTATION: name}
    return {**noted, COMPONENT_INDEX_ANNOTATION: unit.component} if unit.component else noted


def _unit_pod_sets(unit: Unit) -> list[Json]:
    if unit.kind is not None:
        return pod_sets(unit.members)
    (first, *_) = unit.pods
    (made,) = POD.pods.read(first)
    return [{**made, "count": len(unit.pods)}]


def priority_class(job: Json) -> str:
    """The WorkloadPriorityClass the job names; empty without one."""
    return labels_of(job).get(PRIORITY_CLASS_LABEL) or ""
