"""`v1` Pod: one on its own (a Deployment's, for example), or one of a group that is admitted together.

The manager's pods stay behind a scheduling gate: nothing else keeps them from running there, and the pod that runs is
the copy. Where that gate is Kueue's alone the check stays Pending, since a Ready one would open it. A pod that carries
our own gate beside it (the webhook puts it on new ones) stays where it is when Kueue opens its gate. What the manager's
pod shows is what its copy does; a Deployment sees its replicas become ready that way.

A copy is made once. When its pod is deleted on the worker (a drained node), a single pod's Workload goes with it and is
tried again; a member of a group that runs has ended, as on one cluster, and whoever made it makes another in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from multikueue.adapters.kind import JobKind
from multikueue.adapters.rules import ALWAYS_DELEGATED, CopyRules, HoldRules, Membership, StatusRules, SyncRules, ended
from multikueue.core.model import labels
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.conditions import condition, conditions, is_true
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import (
    annotations_of,
    counted,
    dig,
    is_terminating,
    labels_of,
    name_of,
    uid,
    with_value,
)
from multikueue.core.model.started import is_started, lasting_gates, restore_placement

PODS: Final = Resource(GVK("", "v1", "Pod"), "pods")

_LEFT_OUT = (
    # What the manager made of the priority class; a worker's class of that name may have another value.
    ("spec", "priority"),
    ("spec", "preemptionPolicy"),
    # By this label a ReplicaSet of the same Deployment on the worker would adopt the copy, and remove it.
    ("metadata", "labels", "pod-template-hash"),
)
_CONTAINERS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_ADDRESSES = ("hostIP",), ("hostIPs",), ("podIP",), ("podIPs",)
_OF_A_RUN = (
    *_CONTAINERS,
    *(name for (name,) in _ADDRESSES),
    *("startTime", "nominatedNodeName", "reason", "message", "resize"),
    *("resourceClaimStatuses", "allocatedResources", "resources"),
)
"""What the status of a pod has only once it has been somewhere."""
_GATE: Final[Json] = {"name": labels.ADMISSION_GATE}
_GATED: Json = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""As the scheduler writes it. Autoscalers make no room for such a pod."""


def group_name(pod: Json) -> str:
    """The group a pod belongs to, which is the name of its Workload; empty for a pod on its own."""
    return labels_of(pod).get(labels.POD_GROUP_NAME) or annotations_of(pod).get(labels.POD_GROUP_NAME) or ""


def pod_outcome(pod: Json) -> Outcome | None:
    """How one pod ended."""
    phase, message = dig(pod, "status", "phase"), str(dig(pod, "status", "message") or "")
    return ended(message, well=phase == "Succeeded") if phase in ("Succeeded", "Failed") else None


def pods_outcome(pods: Sequence[Json]) -> Outcome | None:
    """How the pods of one Workload ended: Kueue's rule.

    A pod of a group that fails may be replaced. So a group has ended when as many pods have succeeded as it has, or
    when nothing of it runs and one of its pods says that it is not to be retried.
    """
    if not group_name(pods[0]):
        return pod_outcome(pods[0])
    total = counted(annotations_of(pods[0]).get(labels.POD_GROUP_TOTAL_ANNOTATION, ""))
    if total is None or annotations_of(pods[0]).get(labels.POD_GROUP_SERVING_ANNOTATION) == "true":
        return None
    succeeded = sum(dig(pod, "status", "phase") == "Succeeded" for pod in pods)
    over = all(pod_outcome(pod) is not None for pod in pods)
    final = any(annotations_of(pod).get(labels.RETRIABLE_ANNOTATION) == "false" for pod in pods)
    if succeeded == total or (over and final):
        return Outcome("Succeeded", f"Pods succeeded: {succeeded}/{total}.")
    return None


def pod_status(local: Json, remote: Json, now: datetime) -> Json | None:
    """The status the manager's pod should have, or None to leave it.

    * A pod that has ended stays as it is, and so does one on its way out until its copy has ended.
    * A copy that is being deleted did not end by itself, whatever it says: its Workload is tried again. In a group that
      runs it did: see `member_there`.
    * While the copy waits for a node, the manager's pod shows that it is gated, or its autoscaler would make room.
    """
    if is_terminating(remote) and pod_outcome(remote) is not None:
        return None
    if (is_terminating(local) or pod_outcome(local) is not None) and pod_outcome(remote) is None:
        return None
    wanted = _acceptable(dig(local, "status") or {}, dig(remote, "status") or {})
    own = condition(local, "PodScheduled")
    if own is not None and _is_gated(local) and not is_true(remote, "PodScheduled"):
        wanted["conditions"] = [*(shown for shown in conditions(remote) if shown.get("type") != own["type"]), own]
    return wanted


def _never_runs(pod: Json) -> bool:
    """Whether it is being deleted behind its gates: it has no node, and no server gives it one any more."""
    return is_terminating(pod) and dig(pod, "status", "phase") == "Pending" and bool(_gates(pod))


def _is_gated(pod: Json) -> bool:
    return not _gates(pod).isdisjoint((labels.ADMISSION_GATE, labels.HOLDING_GATE))


def _gates(pod: Json) -> set[str]:
    return {str(gate.get("name")) for gate in dig(pod, "spec", "schedulingGates") or []}


def why_free(pod: Json) -> str:
    """Why a pod would run on the manager if Kueue opened its gate; empty if it carries ours as well."""
    if labels.HOLDING_GATE in _gates(pod):
        return ""
    return f'Pod "{name_of(pod)}" lacks the scheduling gate {labels.HOLDING_GATE}, which only new pods can get'


def hold(pod: Json) -> Json | None:
    """What puts our gate on a new pod that Kueue has put its own on.

    One without is not queued: nobody would copy it. Neither would we copy one of a StatefulSet: the set itself is.
    """
    gates, parent = _gates(pod), annotations_of(pod).get(labels.POD_PARENT_ANNOTATION)
    if labels.ADMISSION_GATE not in gates or labels.HOLDING_GATE in gates or parent not in (None, "", "deployment"):
        return None
    return {"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": labels.HOLDING_GATE}}


def _acceptable(known: Json, wanted: Json) -> Json:
    """Without the containers that an API server would not let run again.

    The copy of an earlier attempt may have had containers that ended; those of the new one are told once the
    manager's pod has forgotten them.
    """
    acceptable = dict(wanted)
    for field in _CONTAINERS:
        ended = {container.get("name") for container in known.get(field) or [] if dig(container, "state", "terminated")}
        if field in wanted and ended:
            kept = [
                container
                for container in wanted[field]
                if container.get("name") not in ended or dig(container, "state", "terminated")
            ]
            acceptable[field] = kept
    return acceptable


def _stopped(status: Json) -> Json:
    if status.get("phase") in ("Succeeded", "Failed") or not status:
        return status
    kept = {field: value for field, value in status.items() if field not in _OF_A_RUN}
    if any(
        shown.get("type") != "PodScheduled" or shown.get("status") != "False"
        for shown in status.get("conditions") or []
    ):
        kept["conditions"] = [_GATED]
    return {**kept, "phase": "Pending"}


def pod_copy(job: Json, made: Json, stamp: Stamp) -> Json:
    """A copy that waits behind the gate of the worker's Kueue, wherever the manager's Kueue would have the pod run.

    Gates of one cluster stay there: our own, and those behind which pods wait for a place in a topology.
    """
    spec = made["spec"]
    pod_set = _pod_set_of(job, stamp.pod_sets)
    opened = labels.HOLDING_GATE in _gates(job) and labels.ADMISSION_GATE not in _gates(job)
    if pod_set is not None and (opened or is_started(job)):
        restore_placement(spec, pod_set)
    others = [gate for gate in lasting_gates(spec.get("schedulingGates") or []) if gate != _GATE]
    spec["schedulingGates"] = [*others, dict(_GATE)]
    return with_origin_uid(job, made, stamp)


def _pod_set_of(pod: Json, pod_sets: Sequence[Json]) -> Json | None:
    """The pod set a pod is counted in: Kueue notes its name when it starts the pod, and a group's as the role."""
    names = (labels_of(pod).get(labels.PODSET_LABEL), annotations_of(pod).get(labels.ROLE_HASH_ANNOTATION))
    noted = next((pod_set for name in names for pod_set in pod_sets if name and pod_set.get("name") == name), None)
    return pod_sets[0] if noted is None and len(pod_sets) == 1 else noted


def with_origin_uid(job: Json, made: Json, stamp: Stamp) -> Json:
    """The copy with the UID of the object it is made of: one of the same name may take its place later."""
    return with_value(made, ("metadata", "annotations", labels.ORIGIN_UID_ANNOTATION), uid(job))


KINDS = (
    JobKind(
        resource=PODS,
        framework="pod",
        delegation=ALWAYS_DELEGATED,
        copies=CopyRules(left_out=_LEFT_OUT, suspend=None, prepared=pod_copy),
        status=StatusRules(
            rule=pod_status,
            finished=pod_outcome,
            addresses=_ADDRESSES,
            all_finished=pods_outcome,
            stopped=_stopped,
            pods_are_gone=lambda pod: pod_outcome(pod) is not None or _never_runs(pod),
        ),
        sync=SyncRules(forwarded=(("spec", "activeDeadlineSeconds"),)),
        membership=Membership(selector=f"{labels.MANAGED_LABEL}=true", group=group_name),
        keeps_check_pending=True,
        holding=HoldRules(why_free=why_free, hold=hold),
    ),
)
