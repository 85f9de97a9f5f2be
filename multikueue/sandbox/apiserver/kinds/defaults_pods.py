"""What the server fills in for pods and pod templates."""

from __future__ import annotations

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.kinds.quality_of_service import qos_class

_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_EXPELLED_AFTER = 300  # seconds on a node that is gone, by DefaultTolerationSeconds
_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def fill_pod_spec(spec: Json) -> None:
    """Set the defaults of a pod spec, in place."""
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        container.setdefault("resources", {})
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
        for key, text in _CONTAINER.items():
            container.setdefault(key, text)
    for key, value in _SPEC.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})
    for volume in spec.get("volumes") or []:
        for source in _SOURCES_WITH_MODE:
            if source in volume:
                volume[source].setdefault("defaultMode", 0o644)
        if len(volume) == 1:
            volume["emptyDir"] = {}


def _pull_policy(image: str) -> str:
    name, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if name and "@" not in name and tag in ("", "latest") else "IfNotPresent"


def fill_pod(pod: Json) -> None:
    """Set the defaults of a pod."""
    spec = pod.setdefault("spec", {})
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    fill_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)


def prepare_pod(pod: Json) -> None:
    """Complete a new pod, as its strategy and the admission plugins that are on by default do."""
    spec = pod["spec"]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerate_trouble({}, pod)
    pod["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            }
        ]


def tolerate_trouble(_old: Json, pod: Json) -> None:
    """Let a pod stay for some minutes on a node that is in trouble, unless it says itself how long."""
    spec = pod["spec"]
    tolerations = spec.get("tolerations") or []
    for key in _TROUBLE:
        if not any(item.get("key") in (key, None) and _tolerates_expulsion(item) for item in tolerations):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EXPELLED_AFTER}
            tolerations = [*tolerations, toleration]
    spec["tolerations"] = tolerations


def _tolerates_expulsion(toleration: Json) -> bool:
    return toleration.get("effect") in ("NoExecute", None)
