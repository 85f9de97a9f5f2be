"""`v1` Pod, alone and in groups: kept from running by Kueue's scheduling gate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import attrs

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.labels import (
    ADMISSION_GATE,
    MANAGED_LABEL,
    POD_GROUP_NAME,
    POD_GROUP_TOTAL_ANNOTATION,
    RETRIABLE_ANNOTATION,
)
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import annotations_of, clone, dig, labels_of
from multikueue.sandbox.kinds.course import Ending, Moment, Run, Turn, by_then, seconds_left
from multikueue.sandbox.kinds.injecting import Injection, inject
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import PodSets, pod_set
from multikueue.sandbox.kinds.stages import Stage, Stages

POD_RESOURCE: Final = Resource(GVK("", "v1", "Pod"), "pods")
GATE: Final[Json] = {"name": ADMISSION_GATE}
_GROUP_SIZE: Final = 2
_MAIN: Final = "main"

_RUNNING: Final = Stage(
    fields={"phase": "Running"},
    conditions={"PodScheduled": "True", "Initialized": "True", "ContainersReady": "True", "Ready": "True"},
    times=("startTime",),
)
_STARTING: Final = Stage(
    fields={"phase": "Pending"}, conditions={"PodScheduled": "True", "Ready": "False"}, times=("startTime",)
)
_BATCH: Final = Stages(
    starting=_STARTING,
    running=_RUNNING,
    succeeded=Stage(
        fields={"phase": "Succeeded"}, conditions={"ContainersReady": "False", "Ready": "False"}, reason="PodCompleted"
    ),
    failed=Stage(
        fields={"phase": "Failed"}, conditions={"ContainersReady": "False", "Ready": "False"}, reason="PodFailed"
    ),
)
_SERVING: Final = Stages(starting=_STARTING, running=_RUNNING)
_LATE: Final = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_OVERDUE: Final = Stages(
    running=Stage(
        fields={"phase": "Failed", "reason": _LATE[0], "message": _LATE[1]},
        conditions={"ContainersReady": "False", "Ready": "False"},
        reason="PodFailed",
    )
)


class PodCourse:
    """A pod runs and ends; one that is always restarted serves. Implements `Course`."""

    ends = True

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """See `Course`."""
        if moment.suspended:
            return Turn()
        stages = _SERVING if _is_restarted(job) else _BATCH
        began = None if dig(job, "metadata", "ownerReferences") else dig(job, "status", "startTime")
        left = seconds_left(job, "activeDeadlineSeconds", began, moment.now)
        if left is not None and left <= 0 and self.ending(job) is None:
            stages = _OVERDUE
        turn = by_then(stages.turn(job, run, moment), left, moment)
        return turn if turn.status is None else attrs.evolve(turn, status=_with_containers(job, turn.status, moment))

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        return _BATCH.ending(job)

    def is_active(self, job: Json) -> bool:
        """See `Course`."""
        return bool(dig(job, "status", "phase") == "Running")

    def pods_ready(self, job: Json) -> bool:
        """See `Course`."""
        return _RUNNING.shown(job)


def _is_restarted(pod: Json) -> bool:
    """Whether its containers run again and again: as API servers fill in where nothing is said."""
    return bool(dig(pod, "spec", "restartPolicy") == "Always")


def _with_containers(pod: Json, status: Json, moment: Moment) -> Json:
    """The status with its containers, which go as the pod goes."""
    phase, now = status["phase"], timestamp(moment.now)
    if phase == "Pending":
        state: Json = {"waiting": {"reason": "ContainerCreating"}}
    elif phase == "Running":
        state = {"running": {"startedAt": now}}
    else:
        state = {"terminated": {"exitCode": int(phase == "Failed"), "reason": "Completed", "finishedAt": now}}
    return {**status, "containerStatuses": container_statuses(pod, state)}


def container_statuses(pod: Json, state: Json) -> list[Json]:
    """The statuses of a pod's containers, all in one state. What has begun has an ID, which it keeps."""
    running, before = "running" in state, dig(pod, "status", "containerStatuses") or [{}]
    shared = {"ready": running, "started": running, "restartCount": 0, "imageID": ""}
    result = []
    for container in dig(pod, "spec", "containers") or []:
        status = {"name": container["name"], "image": container["image"], **shared, "state": state}
        if "waiting" not in state:
            status["containerID"] = _container_id(pod, container["name"])
        if ended := state.get("terminated"):
            started = dig(before[0], "state", "running", "startedAt") or ended["finishedAt"]
            status["state"] = {"terminated": {"startedAt": started, "containerID": status["containerID"], **ended}}
        result.append(status)
    return result


def _container_id(pod: Json, name: str) -> str:
    known = f"{dig(pod, 'metadata', 'uid')}/{name}"
    return f"containerd://{hashlib.sha256(known.encode()).hexdigest()}"


class OnePod(PodSets):
    """The pod is its own template. One that was started is never stopped but deleted."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        metadata = {key: value for key, value in job["metadata"].items() if key in ("labels", "annotations")}
        return [pod_set(_MAIN, 1, clone({"metadata": metadata, "spec": job["spec"]}))]

    def inject(self, job: Json, injections: Mapping[str, Injection]) -> None:
        """See `PodSets`. The gate goes at the same time: afterwards no node could be chosen any more."""
        inject(job, injections.get(_MAIN, Injection()))
        gates = [gate for gate in dig(job, "spec", "schedulingGates") or [] if gate.get("name") != ADMISSION_GATE]
        job["spec"]["schedulingGates"] = gates

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        return not is_gated(job)

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        filled = clone(template)
        for field in ("labels", "annotations"):
            texts = dig(filled, "metadata", field)
            if texts:
                job["metadata"][field] = {**texts, **(job["metadata"].get(field) or {})}
        job["spec"] = {**filled["spec"], **job["spec"]}


@attrs.frozen(kw_only=True, eq=False)
class PodKind(SandboxKind):
    """The row of pods on their own."""

    def is_held(self, job: Json) -> bool:
        """See `SandboxKind`. No node takes a pod with a scheduling gate, whoever put it there."""
        return bool(dig(job, "spec", "schedulingGates"))

    def with_suspend(self, job: Json, suspended: bool) -> Json:
        """See `SandboxKind`. A gate cannot be put back, so this is for pods that are yet to be created."""
        made: Json = clone(job)
        if suspended:
            gate(made["metadata"], made["spec"])
        return made

    def serves(self, job: Json) -> bool:
        """See `SandboxKind`."""
        return _is_restarted(job)

    def job_name(self, obj: Json) -> str:
        """See `SandboxKind`: a group's pods are one job."""
        return group_of(obj) or str(obj["metadata"]["name"])


class PodGroupKind(PodKind):
    """Pods that are admitted together."""

    @property
    def name(self) -> str:
        """See `SandboxKind`."""
        return "podgroup"

    def examples(self, name: str, template: Json, *, queue: str) -> list[Json]:
        """See `SandboxKind`."""
        pods = []
        for number in range(_GROUP_SIZE):
            pod = self.example(f"{name}-{number}", template, queue=queue)
            pod["metadata"]["labels"][POD_GROUP_NAME] = name
            pod["metadata"]["finalizers"] = [MANAGED_LABEL]
            noted = {POD_GROUP_TOTAL_ANNOTATION: str(_GROUP_SIZE), RETRIABLE_ANNOTATION: "false"}
            pod["metadata"]["annotations"] = {**annotations_of(pod), **noted}
            pods.append(pod)
        return pods


def gate(metadata: Json, spec: Json) -> None:
    """Mark a pod or a pod template as Kueue's webhook does with new pods, in place."""
    metadata.setdefault("labels", {})[MANAGED_LABEL] = "true"
    others = [other for other in spec.get("schedulingGates") or [] if other != GATE]
    spec["schedulingGates"] = [*others, dict(GATE)]


def is_gated(pod: Json) -> bool:
    """Whether Kueue has yet to start it."""
    return any(entry.get("name") == ADMISSION_GATE for entry in dig(pod, "spec", "schedulingGates") or [])


def group_of(pod: Json) -> str:
    """The group it belongs to; empty for a pod on its own."""
    return labels_of(pod).get(POD_GROUP_NAME) or annotations_of(pod).get(POD_GROUP_NAME) or ""


POD: Final = PodKind(
    resource=POD_RESOURCE, integration="pod", managed_by=None, pods=OnePod(), course=PodCourse(), gated=True
)
POD_GROUP: Final = PodGroupKind(
    resource=POD_RESOURCE, integration="pod", managed_by=None, pods=OnePod(), course=PodCourse(), gated=True
)
KINDS: Final = (POD, POD_GROUP)
