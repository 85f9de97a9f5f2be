"""What the server fills in for pods and pod templates, and what may not change in a pod."""

from __future__ import annotations

from multikueue.core.names import Json
from multikueue.sandbox.apiserver.statuses import Cause

_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_MUTABLE = frozenset(
    (
        "activeDeadlineSeconds",
        "tolerations",
        "schedulingGates",
        "nodeSelector",
        "nodeName",  # what the binding subresource does on a real server
        "affinity",
        "containers",
        "initContainers",
        "terminationGracePeriodSeconds",
    )
)


def fill_pod_spec(spec: Json) -> None:
    """Set the defaults of a pod spec, in place."""
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        container.setdefault("resources", {})
        for key, text in _CONTAINER.items():
            container.setdefault(key, text)
    for key, value in _SPEC.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})


def create_pod(pod: Json) -> list[Cause]:
    """Default a new pod."""
    spec = pod.setdefault("spec", {})
    fill_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    pod["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
    if spec.get("containers"):
        return []
    return [Cause("FieldValueRequired", "spec.containers", "Required value")]


def update_pod(old: Json, new: Json) -> list[Cause]:
    """Refuse changes of what is fixed once a pod exists."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    moved = before.get("nodeName") and before.get("nodeName") != after.get("nodeName")
    if not moved and _fixed(before) == _fixed(after) and _without_images(before) == _without_images(after):
        return []
    message = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,..."
    return [Cause("FieldValueForbidden", "spec", message)]


def _fixed(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _MUTABLE}


def _without_images(spec: Json) -> list[Json]:
    containers = spec.get("containers") or []
    return [{key: value for key, value in container.items() if key != "image"} for container in containers]
