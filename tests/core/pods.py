"""Builders for the pods of a group, and for what of them lies on workers."""

from __future__ import annotations

from typing import Any

import attrs

from multikueue.adapters.pod import KINDS, PODS
from multikueue.core.model.labels import (
    ADMISSION_GATE,
    GROUP_WORKLOAD_ANNOTATION,
    POD_GROUP_NAME,
    POD_GROUP_TOTAL_ANNOTATION,
)
from multikueue.core.model.names import ClusterName, Json
from tests.core.building import EARLIER, NAMESPACE, marked_on, snapshot, stamp_of, workload
from tests.core.door import JobCopy, Snapshot, Worker

(POD,) = KINDS
GROUP = "group"
RUNNING: Json = {"phase": "Running"}
PENDING: Json = {"phase": "Pending"}
DONE: Json = {"phase": "Succeeded"}
BROKEN: Json = {"phase": "Failed"}


def group(*members: str, **facts: Any) -> Json:
    """The Workload of a pod group: its pods own it, and none of them is its controller."""
    made = workload(name=GROUP, owner=None, **facts)
    made["metadata"].setdefault("annotations", {})[GROUP_WORKLOAD_ANNOTATION] = "true"
    references = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"} for name in members]
    made["metadata"]["ownerReferences"] = references or [{"apiVersion": "v1", "kind": "Pod", "name": "p0", "uid": "x"}]
    return made


def pod(name: str, status: Json | None = None, *, total: int = 2, deleting: bool = False, uid: str = "") -> Json:
    """The manager's pod, behind its gate."""
    metadata: Json = {"name": name, "namespace": NAMESPACE, "uid": uid or f"uid-{name}", "resourceVersion": "1"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    metadata["labels"] = {POD_GROUP_NAME: GROUP}
    metadata["annotations"] = {POD_GROUP_TOTAL_ANNOTATION: str(total)}
    spec = {"schedulingGates": [{"name": ADMISSION_GATE}], "containers": [{"name": "c", "image": "i"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": PENDING if status is None else status,
    }


def copied(local: Json, job: Json, status: Json | None = None, *, deleting: bool = False, stale: bool = False) -> Json:
    """The copy of a pod for the Workload `local`."""
    made = POD.copy(job, stamp_of(local, EARLIER if stale else None))
    name = job["metadata"]["name"]
    made["metadata"] |= {"uid": f"copy-{name}", "resourceVersion": "2"}
    if deleting:
        made["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return {**made, "status": RUNNING if status is None else status}


def place(name: str, made: Json | None, *pods: Json, **facts: Any) -> Worker:
    """One worker and which pods lie there."""
    jobs = tuple(JobCopy(PODS, marked_on(name, pod)) for pod in pods)
    return Worker(ClusterName(name), copy=None if made is None else marked_on(name, made), jobs=jobs, **facts)


def seen(local: Json | None, pods: list[Json], *workers: Worker, **facts: Any) -> Snapshot:
    """What the caches show of a group."""
    jobs = {pod["metadata"]["name"]: pod for pod in pods}
    return attrs.evolve(snapshot(local, *workers, job={}, adapter=POD, **facts), jobs=jobs)
