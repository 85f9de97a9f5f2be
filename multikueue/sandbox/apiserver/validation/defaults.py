"""What the server fills in for Pods and pod templates, Jobs and Namespaces."""

from __future__ import annotations

from multikueue.core.model.names import Json

_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_EXPELLED_AFTER = 300  # seconds on a node that is gone, by DefaultTolerationSeconds
_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_COMPUTE = ("cpu", "memory")


def fill_pod_spec(spec: Json) -> None:
    """Set the defaults of a pod spec, in place."""
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        container.setdefault("resources", {})
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
        for key, text in _CONTAINER.items():
            container.setdefault(key, text)
        for probe in (container[field] for field in _PROBES if container.get(field)):
            for key, number in _PROBE.items():
                probe.setdefault(key, number)
            if "httpGet" in probe:
                probe["httpGet"] = {"path": "/", "scheme": "HTTP", **probe["httpGet"]}
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


def qos_class(spec: Json) -> str:
    """`Guaranteed` when all limits are set and requested, `BestEffort` when nothing is, else `Burstable`."""
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    asked = [
        {key: value for key, value in (container.get("resources", {}).get(kind) or {}).items() if _counts(key, value)}
        for container in containers
        for kind in ("requests", "limits")
    ]
    if not any(asked):
        return "BestEffort"
    pairs = list(zip(asked[::2], asked[1::2], strict=True))
    if all(requests == limits and set(limits) == set(_COMPUTE) for requests, limits in pairs):
        return "Guaranteed"
    return "Burstable"


def _counts(resource: str, quantity: str) -> bool:
    return resource in _COMPUTE and quantity != "0"


def fill_job(job: Json) -> None:
    """Set the defaults of a Job."""
    spec = job.setdefault("spec", {})
    # A work queue (parallelism without completions) keeps completions unset.
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        for pattern in rule.get("onPodConditions") or []:
            pattern["status"] = pattern.get("status") or "True"
    template = spec.setdefault("template", {})
    fill_pod_spec(template.setdefault("spec", {}))
    labels = (template.get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = labels  # the same dict: the Job gets the labels too that its template gets later


def fill_set(obj: Json) -> None:
    """Set the defaults of a Deployment or a StatefulSet."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    fill_pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def prepare_job(job: Json) -> None:
    """Complete a new Job: the selector and the labels of its pods."""
    spec, metadata = job["spec"], job["metadata"]
    job["status"] = {}
    if spec.get("manualSelector"):
        return
    uid, name = metadata["uid"], metadata.get("name") or ""
    labels = spec["template"].setdefault("metadata", {}).setdefault("labels", {})
    for key, value in (("job-name", name), ("controller-uid", uid)):
        labels.setdefault(key, value)
        labels.setdefault(f"batch.kubernetes.io/{key}", value)
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault("batch.kubernetes.io/controller-uid", uid)


def prepare_namespace(namespace: Json) -> None:
    """Complete a new namespace."""
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}
    label_namespace({}, namespace)


def label_namespace(_old: Json, namespace: Json) -> None:
    """Keep the label that names the namespace; the server always sets it."""
    metadata = namespace["metadata"]
    labels = metadata.get("labels") or {}
    metadata["labels"] = {**labels, "kubernetes.io/metadata.name": metadata.get("name") or ""}
