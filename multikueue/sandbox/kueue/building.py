"""The Workload Kueue makes for a job."""

from __future__ import annotations

from multikueue.core.kinds import KUEUE_GROUP, WORKLOAD
from multikueue.core.labels import JOB_UID_LABEL, WORKLOAD_FINALIZER
from multikueue.core.names import Json
from multikueue.core.objects import labels_of, uid
from multikueue.sandbox.kinds import SandboxKind
from multikueue.sandbox.kueue.naming import queue_name, workload_name

PRIORITY_CLASS_LABEL = "kueue.x-k8s.io/priority-class"


def build_workload(kind: SandboxKind, job: Json, priority: int) -> Json:
    """The Workload for a job, with the job as its controller.

    Args:
        priority: the value of the job's priority class, 0 without one.
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
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {
            "name": workload_name(kind.resource.gvk, job["metadata"]["name"], uid(job)),
            "namespace": job["metadata"]["namespace"],
            "labels": {JOB_UID_LABEL: uid(job)},
            "finalizers": [WORKLOAD_FINALIZER],
            "ownerReferences": [owner_reference(kind, job)],
        },
        "spec": spec,
    }


def owner_reference(kind: SandboxKind, job: Json) -> Json:
    """A reference that makes the job the controller."""
    return {
        "apiVersion": kind.resource.gvk.api_version,
        "kind": kind.resource.gvk.kind,
        "name": job["metadata"]["name"],
        "uid": uid(job),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def priority_class(job: Json) -> str:
    """The WorkloadPriorityClass the job names; empty without one."""
    return labels_of(job).get(PRIORITY_CLASS_LABEL) or ""
