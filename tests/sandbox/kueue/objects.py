"""Kueue's objects and Jobs for tests."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.kueue.scheduling.queues import Configuration

KUEUE = "kueue.x-k8s.io/v1beta2"


def flavor(name: str = "default", **spec: Any) -> Json:
    """A ResourceFlavor."""
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def cluster_queue(name: str = "cq", *, cpu: str = "1", checks: tuple[str, ...] = (), **spec: Any) -> Json:
    """A ClusterQueue with one flavor."""
    resources = [{"name": "cpu", "nominalQuota": cpu}]
    body: Json = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": resources}]}],
    }
    if checks:
        body["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": {**body, **spec}}


def local_queue(name: str = "lq", *, queue: str = "cq", namespace: str = "default") -> Json:
    """A LocalQueue."""
    return {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": queue},
    }


def admission_check(name: str = "mk") -> Json:
    """An AdmissionCheck for MultiKueue."""
    return {
        "apiVersion": KUEUE,
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "spec": {"controllerName": "kueue.x-k8s.io/multikueue"},
    }


def priority_class(name: str, value: int) -> Json:
    """A WorkloadPriorityClass."""
    return {"apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value}


def job(
    name: str = "j1",
    *,
    cpu: str = "1",
    queue: str | None = "lq",
    labels: Json | None = None,
    annotations: Json | None = None,
    **spec: Any,
) -> Json:
    """A Job of one container."""
    marked = {**({"kueue.x-k8s.io/queue-name": queue} if queue else {}), **(labels or {})}
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": marked, "annotations": annotations or {}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}, **spec},
    }


def configuration(*objects: Json) -> Configuration:
    """These objects, as an administrator has made them."""
    kinds = (ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR)
    return Configuration(
        {kind: {ObjectKey.of(obj): obj for obj in objects if obj["kind"] == kind.gvk.kind} for kind in kinds}
    )


def condition(obj: Json, kind: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition."""
    for entry in (obj.get("status") or {}).get("conditions") or []:
        if entry["type"] == kind:
            return entry["status"], entry["reason"], entry["message"]
    return None


def is_true(obj: Json, kind: str) -> bool:
    """Whether a condition is True."""
    return (condition(obj, kind) or ("",))[0] == "True"
