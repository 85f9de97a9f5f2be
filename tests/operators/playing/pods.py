"""What a kubelet makes of a pod next: pure."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, is_terminating, labels_of
from multikueue.sandbox.jobs import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from tests.operators.workflows import inside

NODE: Final = "node-1"
KILLED: Final = 137
"""What a container exits with that is killed."""
_ENDING: Final = {"batch.kubernetes.io/job-name", inside.TEKTONS_LABEL, inside.ARGOS_LABEL}
"""Labels of pods that end by themselves, of Tekton's and Argo's tasks, too."""
_OPERATOR_LABEL: Final = "training.kubeflow.org/operator-name"
_RUNS_TO_AN_END: Final = "job-controller"
"""As `pytorchjob-controller`. The MPI operator's workers have the label, too: they serve until the launcher ends."""
Deed = Literal["bind", "run", "end", "remove"]


@attrs.frozen
class Fate:
    """How the pods of one job do, as the job itself says; see the sandbox's job runner."""

    seconds: float = 1.0
    exit_code: int = 0

    @classmethod
    def of(cls, job: Json) -> Fate:
        """What a job's annotations say."""
        noted = annotations_of(job)
        duration = noted.get(DURATION_ANNOTATION, "1s")
        factor = {"s": 1, "m": 60, "h": 3600}[duration[-1]]
        return cls(float(duration[:-1]) * factor, int(noted.get(OUTCOME_ANNOTATION) == "fail"))


@attrs.frozen
class Step:
    """What is to be done with a pod, and when."""

    deed: Deed
    at: float
    exit_code: int = 0


def next_step(pod: Json, fate: Fate, *, now: float, ran_since: float | None, killed: bool = False) -> Step | None:
    """What a kubelet does with a pod next; None if nothing.

    Args:
        pod: as the API server shows it.
        fate: of its job.
        now: seconds.
        ran_since: when it was made to run.
        killed: whether somebody kills it.
    """
    phase = dig(pod, "status", "phase")
    over = phase in ("Succeeded", "Failed")
    if is_terminating(pod):
        return Step("remove", now, KILLED)
    if over or dig(pod, "spec", "schedulingGates"):
        return None
    if not dig(pod, "spec", "nodeName"):
        return Step("bind", now)
    if phase == "Pending":
        return Step("run", now)
    if killed:
        return Step("end", now, KILLED)
    return Step("end", (ran_since or now) + fate.seconds, fate.exit_code) if ends(pod) else None


def ends(pod: Json) -> bool:
    """Whether its containers end by themselves: those of Jobs, tasks and the training operator's kinds do."""
    labels = labels_of(pod)
    return not _ENDING.isdisjoint(labels) or labels.get(_OPERATOR_LABEL, "").endswith(_RUNS_TO_AN_END)


def running(pod: Json, time: str, address: str) -> Json:
    """The status of a pod that runs."""
    containers = [
        {**_container(container), "ready": True, "started": True, "state": {"running": {"startedAt": time}}}
        for container in pod["spec"]["containers"]
    ]
    status: Json = {
        "phase": "Running",
        "startTime": time,
        "hostIP": "192.0.2.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [_condition(kind, "True", time) for kind in ("Initialized", "ContainersReady", "Ready")],
        "containerStatuses": containers,
    }
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": time, "finishedAt": time}}
    before = [
        {**_container(container), "ready": True, "state": done} for container in pod["spec"].get("initContainers") or ()
    ]
    return {**status, "initContainerStatuses": before} if before else status


def ended(pod: Json, time: str, exit_code: int) -> Json:
    """The status of a pod whose containers have exited so."""
    containers = [
        {**_container(container), "ready": False, "state": _exited(pod, container, time, exit_code)}
        for container in pod["spec"]["containers"]
    ]
    why = "PodCompleted" if exit_code == 0 else "PodFailed"
    return {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "conditions": [
            _condition("Initialized", "True", time),
            *(_condition(kind, "False", time, why) for kind in ("ContainersReady", "Ready")),
        ],
        "containerStatuses": containers,
    }


def _exited(pod: Json, container: Json, time: str, pods_code: int) -> Json:
    code = inside.exit_code(pod, container, pods_code)
    state = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": time, "finishedAt": time}
    message = inside.message(pod, container, code, time)
    return {"terminated": {**state, "message": message} if message else state}


def _container(container: Json) -> dict[str, Any]:
    return {"name": container["name"], "image": container.get("image", ""), "imageID": "none", "restartCount": 0}


def _condition(kind: str, status: str, time: str, reason: str = "") -> Json:
    made = {"type": kind, "status": status, "lastTransitionTime": time}
    return {**made, "reason": reason} if reason else made
