"""A mirror: the pod of the manager that shows a pod of a run on its worker. Pure.

It is never run: what would cost quota, be refused by a policy, or make objects on the manager is left out. Each field
has its reason, and its row in a test.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import attrs
import orjson

from multikueue.core.model.labels import OWN_PREFIX
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import (
    annotations_of,
    controller_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    reference_to,
    uid,
)
from multikueue.core.model.outside_text import without_controls
from multikueued.mirror_names import MIRROR, WORKER, WORKER_POD, WORKER_POD_UID, node_name
from multikueued.mirrors.node import REACHABLE, unreachable
from multikueued.mirrors.status import WORD, shown_status, text

KUEUE: Final = "kueue.x-k8s.io/"
RUNS_POD: Final = "kueue.x-k8s.io/multikueue-worker-workload-pod"
"""Label by which a worker's Kueue tells pods of what a MultiKueue has sent it, of any manager: `true`."""
NOT_KUEUES: Final = (
    "kueue.x-k8s.io/queue-name",
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/pod-group-name",
    "kueue.x-k8s.io/tas",
    RUNS_POD,
)
"""Labels of Kueue that would have the manager's Kueue take the mirror for a pod of its own."""
KEPT_ANNOTATIONS: Final = ("batch.kubernetes.io/job-completion-index", "kubectl.kubernetes.io/default-container")
NOT_INJECTED: Final = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
"""Injectors of the manager would add containers that do not run."""
NOT_COMPARED: Final = (
    "qosClass",
    "nominatedNodeName",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "observedGeneration",
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "resize",
)
"""Of a mirror's status: what is not ours to write, see `status.SHOWN`."""
LARGEST: Final = 64 << 10
"""Bytes of what is kept of a pod, as JSON. A job is one object, its pods are many, with its arguments in each: a larger
one is shown without them, and not at all if that is not enough."""
_WORD: Final = text(WORD)
_REFERENCE: Final = ("apiVersion", "kind", "name", "uid")
_NOTHING: Final = {"cpu": "0", "memory": "0", "ephemeral-storage": "0"}
"""Of all that a LimitRange fills in otherwise, and a quota counts."""
_OF_A_MIRROR: Final = (
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "ownerReferences",
    "finalizers",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_CONTAINER: Final = ("name", "image", "command", "args")
_PORT: Final = ("name", "containerPort", "protocol")
_STRICT: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_STRICT_POD: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}

Shows = tuple[str, ObjectKey, str]
"""What a mirror says that it shows: worker, the pod there, and its UID."""


@attrs.frozen
class Run:
    """What the pods of one job on a worker are shown for."""

    worker: str
    job: Json
    """The manager's."""
    gvk: GVK
    """Of the job."""
    copy_uid: str
    """UID of its copy on the worker."""
    namespace: str
    """The job's."""

    @property
    def uid(self) -> str:
        """The job's."""
        return uid(self.job)


def shown_of(pod: Json) -> Json | None:
    """What is kept in memory of a worker's pod, `LARGEST` at most; None: it has no controller, so it is of no job.

    Args:
        pod: one that `pod_flaw` has nothing against.
    """
    if controller_of(pod) is None:
        return None
    kept = ("namespace", "name", "uid", "resourceVersion", "labels", "ownerReferences", "deletionTimestamp")
    metadata: Json = {field: pod["metadata"][field] for field in kept if field in pod["metadata"]}
    noted = annotations_of(pod)
    metadata["annotations"] = {name: _WORD(noted[name]) for name in KEPT_ANNOTATIONS if name in noted}
    spec = {field: dig(pod, "spec", field) for field in ("containers", "initContainers", "restartPolicy")}
    spec |= {name: list(map(_container, spec[name] or [])) for name in ("containers", "initContainers")}
    for container in spec["containers"]:
        container.pop("restartPolicy", None)  # rules of single containers need a feature of the manager's API server
    made: Json = {"metadata": metadata, "spec": spec, "status": shown_status(pod.get("status"))}
    if _is_small(made):
        return made
    for container in (*spec["containers"], *spec["initContainers"]):
        container.pop("command", None)
        container.pop("args", None)
    return made if _is_small(made) else _core_of(made)


def _is_small(kept: Json) -> bool:
    try:
        return len(orjson.dumps(kept)) <= LARGEST
    except orjson.JSONEncodeError:  # it nests deeper than any pod
        return False


def is_too_large(pod: Json) -> bool:
    """Whether too little is kept of a pod to make a mirror of it."""
    return not pod["spec"]["containers"]


def _core_of(pod: Json) -> Json:
    """Whose it is, and its phase."""
    metadata = {name: value for name, value in pod["metadata"].items() if name not in ("labels", "annotations")}
    controller = controller_of(pod) or {}
    metadata["ownerReferences"] = [{field: controller.get(field) or "" for field in _REFERENCE} | {"controller": True}]
    status = {"phase": dig(pod, "status", "phase")}
    return {"metadata": metadata, "spec": {"containers": [], "initContainers": []}, "status": status}


def has_ended(pod: Json) -> bool:
    """Whether none of its containers will run again."""
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def mirror_body(pod: Json, run: Run, origin: str) -> Json:
    """The mirror of a worker's pod, as it is made.

    Args:
        pod: see `shown_of`.
        run: whose it is.
        origin: the daemon's setting.
    """
    spec = pod["spec"]
    metadata = {
        "namespace": run.namespace,
        "name": name_of(pod),
        "labels": mirror_labels(pod, run) | {MIRROR: origin},
        "annotations": {**annotations_of(pod), **NOT_INJECTED, **said_of(pod, run.worker)},
        "ownerReferences": [{**reference_to(run.job, run.gvk), "controller": True}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node_name(run.worker),
            "containers": list(map(_mirrored, spec["containers"])),
            "initContainers": list(map(_mirrored, spec["initContainers"])),
            "restartPolicy": spec.get("restartPolicy") or "Always",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": _STRICT_POD,
            "tolerations": [{"operator": "Exists"}],
            # A deletion by anybody is done at once, without us: else a namespace would wait for this process.
            "terminationGracePeriodSeconds": 0,
        },
    }


def said_of(pod: Json, worker: str) -> dict[str, str]:
    """The annotations by which a mirror says what it shows."""
    return {WORKER: worker, WORKER_POD: f"{namespace_of(pod)}/{name_of(pod)}", WORKER_POD_UID: uid(pod)}


def mirror_labels(pod: Json, run: Run) -> dict[str, str]:
    """The labels of a mirror: the pod's, with the UID of the manager's job for that of its copy; Kueue's as the
    template of the manager's job has them, by all of which some clients select."""
    own = {name: value for name, value in labels_of(pod).items() if not name.startswith((KUEUE, OWN_PREFIX))}
    template = dig(run.job, "spec", "template", "metadata", "labels")
    kueues = template if isinstance(template, dict) else {}
    own |= {name: value for name, value in kueues.items() if name.startswith(KUEUE) and name not in NOT_KUEUES}
    return {name: run.uid if value == run.copy_uid else value for name, value in own.items()}


def mirror_status(pod: Json, lost_since: datetime | None = None) -> Json:
    """The status of a mirror, by its pod's, or by its own while that cannot be seen.

    Args:
        pod: the worker's as `shown_of` keeps it, or the mirror itself.
        lost_since: since when the worker is out of reach; None: it is not.
    """
    status = comparable(pod)
    listed = [condition for condition in status.get("conditions") or [] if condition.get("type") != REACHABLE]
    if lost_since is not None:
        listed.append(unreachable(lost_since))
    status.pop("conditions", None)
    return {**status, "conditions": listed} if listed else status


def comparable(mirror: Json) -> Json:
    """Of a mirror's status what is compared with its pod's."""
    return {name: value for name, value in (mirror.get("status") or {}).items() if name not in NOT_COMPARED}


def pod_key(worker: str, there: ObjectKey) -> ObjectKey:
    """The key of one pod of one worker: `WORKER/NAMESPACE/NAME` as a text."""
    return ObjectKey(worker, str(there))


def shows(mirror: Json) -> Shows:
    """What a mirror says that it shows; empty: it does not say so."""
    said = annotations_of(mirror)
    return said.get(WORKER) or "", ObjectKey.parsed(said.get(WORKER_POD) or ""), said.get(WORKER_POD_UID) or ""


def kept_of(mirror: Json) -> Json:
    """What is kept in memory of a mirror: its status, its owners and finalizers, our label and our annotations.

    Labels and annotations of others, up to a megabyte on each, are left out. From the rest the policy keeps others;
    not from its status, which whoever has `pods/status` may write.
    """
    metadata: Json = {field: mirror["metadata"][field] for field in _OF_A_MIRROR if field in mirror["metadata"]}
    metadata["labels"] = {MIRROR: labels_of(mirror).get(MIRROR, "")}
    metadata["annotations"] = {
        name: value for name, value in annotations_of(mirror).items() if name.startswith(OWN_PREFIX)
    }
    spec = {"nodeName": dig(mirror, "spec", "nodeName") or ""}
    return {"metadata": metadata, "spec": spec, "status": mirror.get("status") or {}}


def _container(container: Json) -> Json:
    kept: Json = {field: _clean(container[field]) for field in (*_CONTAINER, "restartPolicy") if field in container}
    ports = [{field: port[field] for field in _PORT if field in port} for port in container.get("ports") or []]
    return {**kept, **({"ports": ports} if ports else {})}


def _clean(value: str | list[str] | None) -> str | list[str] | None:
    """As a terminal may show it."""
    if isinstance(value, list):
        return list(map(without_controls, value))
    return value and without_controls(value)


def _mirrored(container: Json) -> Json:
    resources: dict[str, Any] = {"requests": dict(_NOTHING), "limits": dict(_NOTHING)}
    return {**container, "resources": resources, "securityContext": _STRICT}
