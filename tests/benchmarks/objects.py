"""The objects of a benchmark's load."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import CONTROLLER_NAME, JOB_UID_LABEL, QUEUE_LABEL, WORKLOAD_FINALIZER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of, uid
from multikueue.core.model.workload_names import workload_name
from multikueue.sandbox.objects import owned_by
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueued.mirrors.mirror import RUNS_POD

NAMESPACE: Final = "default"
ATTACKER: Final = "attacker"
"""The namespace of the tenant whose jobs are large; workers have no quota for it."""
LARGE: Final = 1_200_000
"""Bytes of one of these, about."""
UNCHECKED: Final = "unchecked"
"""A queue whose Workloads have none of our checks: nobody is asked to dispatch them."""


def job(number: int, prefix: str = "job") -> Json:
    """A job of one pod for the queue, as Kueue's webhook would leave it: suspended and delegated."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }
    return {
        "apiVersion": JOB.gvk.api_version,
        "kind": JOB.gvk.kind,
        "metadata": {
            "name": f"{prefix}-{number:05}",
            "namespace": NAMESPACE,
            "labels": {QUEUE_LABEL: LOCAL_QUEUE_NAME},
        },
        "spec": {
            "suspend": True,
            "managedBy": CONTROLLER_NAME,
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def pod_of(copy: Json, name: str) -> Json:
    """A pod of a job on a worker, as the job's controller and Kueue make it there."""
    labels = {"batch.kubernetes.io/job-name": name_of(copy), "batch.kubernetes.io/controller-uid": uid(copy)}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    metadata = {
        "namespace": copy["metadata"]["namespace"],
        "name": name,
        "labels": {**labels, RUNS_POD: "true"},
        "ownerReferences": [owned_by(JOB, copy)],
    }
    spec = {"nodeName": "node-1", "restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def large_job(number: int, queue: str = LOCAL_QUEUE_NAME) -> Json:
    """A job as large as API servers take it, in the namespace of `ATTACKER`."""
    made = job(number, "large")
    made["metadata"] |= {"namespace": ATTACKER, "labels": {QUEUE_LABEL: queue}}
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": f"FILLER_{number}", "value": "x" * (LARGE // 100)} for number in range(100)]
    return made


def workload_of(owner: Json) -> Json:
    """The Workload Kueue makes for a stored job."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": JOB.gvk.api_version,
        "kind": JOB.gvk.kind,
        "name": metadata["name"],
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    template = {
        "metadata": {"labels": {"batch.kubernetes.io/job-name": metadata["name"]}},
        "spec": owner["spec"]["template"]["spec"],
    }
    return {
        "apiVersion": WORKLOAD.gvk.api_version,
        "kind": WORKLOAD.gvk.kind,
        "metadata": {
            "name": workload_name(JOB.gvk, metadata["name"], uid(owner)),
            "namespace": metadata["namespace"],
            "labels": {JOB_UID_LABEL: uid(owner)},
            "finalizers": [WORKLOAD_FINALIZER],
            "ownerReferences": [reference],
        },
        "spec": {
            "active": True,
            "podSets": [{"name": "main", "count": 1, "template": template}],
            "priority": 0,
            "queueName": LOCAL_QUEUE_NAME,
        },
    }
