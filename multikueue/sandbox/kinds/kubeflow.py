"""`kubeflow.org`: the training operator's kinds and MPIJob."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from multikueue.core.model.conditions import conditions, find
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds.course import Moment
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, Roles
from multikueue.sandbox.kinds.stages import Counters, Stage, Stages


@attrs.frozen(kw_only=True)
class TrainingStages(Stages):
    """Stages of a training operator's job."""

    controller: str
    """What the labels of its pods call the kind's controller."""
    selectors: bool = True

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        """Counters that are 0 are left out; most kinds say of each role how its pods are found."""
        status = super()._status(job, stage, moment)
        if stage is self.suspended and find(conditions(job), "Running") is None:  # it has never run
            status["conditions"] = [condition for condition in status["conditions"] if condition["type"] != "Running"]
        counts: dict[str, Json] = {
            role: {name: count for name, count in entry.items() if count}
            for role, entry in status["replicaStatuses"].items()
        }
        for role, entry in counts.items() if self.selectors else ():
            labels = {
                "job-name": job["metadata"]["name"],
                "operator-name": self.controller,
                "replica-type": role.lower(),
            }
            entry["selector"] = ",".join(f"training.kubeflow.org/{key}={value}" for key, value in labels.items())
        return {**status, "replicaStatuses": counts}


def _course(kind: str, running: str, succeeded: str, failed: str) -> Stages:
    """How a kind of the training operator goes; the words of its conditions differ from kind to kind.

    The operator loses the condition `Created` at times, so nothing is told by it.
    """
    created = (f"{kind}Created", f"{kind} {{name}} is created.")
    resumed = (f"{kind}Resumed", f"{kind} {{name}} is resumed.")
    runs = (f"{kind}Running", f"{kind} {running}")
    return TrainingStages(
        controller=f"{kind.lower()}-controller",
        selectors=kind not in ("TFJob", "XGBoostJob"),
        suspended=Stage(
            conditions={"Created": "True", "Running": "False", "Suspended": "True"},
            reason=f"{kind}Suspended",
            message=f"{kind} {{name}} is suspended.",
            words={"Created": created},
        ),
        starting=Stage(
            conditions={"Suspended": "False", "Created": "True"},
            times=("startTime",),
            reason=created[0],
            message=created[1],
            words={"Suspended": resumed},
        ),
        running=Stage(
            conditions={"Suspended": "False", "Running": "True"},
            counted=("active",),
            reason=runs[0],
            message=runs[1],
            words={"Suspended": resumed},
        ),
        succeeded=Stage(
            conditions={"Running": "False", "Succeeded": "True"},
            times=("completionTime",),
            counted=("succeeded",),
            reason=f"{kind}Succeeded",
            message=f"{kind} {succeeded}",
            words={"Running": runs},
        ),
        failed=Stage(
            conditions={"Running": "False", "Failed": "True"},
            times=("completionTime",),
            counted=("failed",),
            reason=f"{kind}Failed",
            message=f"{kind} {failed}",
            words={"Running": runs},
        ),
        counters=Counters("replicaStatuses", ("active", "succeeded", "failed"), listed=False),
    )


_NAMED: Final = (
    "{name} is running.",
    "{name} is successfully completed.",
    "{name} is failed because 1 Worker replica(s) failed.",
)
_WORDS: Final = {
    "JAXJob": ("{job} is running.", "{job} successfully completed.", _NAMED[2]),
    "TFJob": (
        "{job} is running.",
        "{job} successfully completed.",
        "{job} has failed because 1 Worker replica(s) failed.",
    ),
}
"""What the conditions of a kind say, where that is not as for the others: the operator's words follow no rule."""


class MPIStages(Stages):
    """Stages of an MPIJob: the launcher's end is the job's, and its workers go with it."""

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        status = super()._status(job, stage, moment)
        roles = {role: spec.get("replicas", 1) for role, spec in (dig(job, "spec", "mpiReplicaSpecs") or {}).items()}
        there = roles if stage is self.running else {**roles, _LAUNCHER: 0} if stage is self.starting else {}
        counts = {role: {"active": there[role]} if there.get(role) else {} for role in roles}
        if stage in (self.succeeded, self.failed):
            counts[_LAUNCHER] = {"succeeded" if stage is self.succeeded else "failed": 1}
        return {**status, "replicaStatuses": counts}


_LAUNCHER: Final = "Launcher"
_CREATED: Final = ("MPIJobCreated", "MPIJob {job} is created.")
_RESUMED: Final = ("MPIJobResumed", "MPIJob resumed")
_RUNS: Final = ("MPIJobRunning", "MPIJob {job} is running.")
_MPI_COURSE: Final = MPIStages(
    suspended=Stage(
        conditions={"Created": "True", "Running": "False", "Suspended": "True"},
        dropped=("startTime",),
        reason="MPIJobSuspended",
        message="MPIJob suspended",
        words={"Created": _CREATED, "Running": ("MPIJobSuspended", "MPIJob {job} is suspended.")},
    ),
    starting=Stage(
        conditions={"Suspended": "False", "Created": "True"},
        times=("startTime",),
        counted=("active",),
        reason=_CREATED[0],
        message=_CREATED[1],
        words={"Suspended": _RESUMED},
    ),
    running=Stage(
        conditions={"Suspended": "False", "Created": "True", "Running": "True"},
        counted=("active",),
        reason=_RUNS[0],
        message=_RUNS[1],
        words={"Suspended": _RESUMED, "Created": _CREATED},
    ),
    succeeded=Stage(
        conditions={"Running": "False", "Succeeded": "True"},
        times=("completionTime",),
        reason="MPIJobSucceeded",
        message="MPIJob {job} successfully completed.",
        words={"Running": _RUNS},
    ),
    failed=Stage(
        conditions={"Running": "False", "Failed": "True"},
        times=("completionTime",),
        reason="BackoffLimitExceeded/",  # and the reason of the last failed pod, which has none
        message="Job has reached the specified backoff limit: ",
        words={"Running": _RUNS},
    ),
    counters=Counters("replicaStatuses", ("active", "succeeded", "failed"), listed=False),
)


_CONTAINERS: Final = {
    "JAXJob": "jax",
    "PaddleJob": "paddle",
    "PyTorchJob": "pytorch",
    "TFJob": "tensorflow",
    "XGBoostJob": "xgboost",
}
"""The training operator refuses a job without a container of that name."""


def _pod_labels(kind: str, job: Json, role: str, number: int) -> dict[str, str]:
    """What the operator labels pods with. One of them is the master, whose log its SDK reads."""
    labels = {
        "job-name": job["metadata"]["name"],
        "operator-name": f"{kind.lower()}-controller",
        "replica-type": role,
        "replica-index": str(number),
    }
    if role in ("chief", "master") or (kind == "JAXJob" and not number):
        labels["job-role"] = "master"
    return {f"training.kubeflow.org/{name}": value for name, value in labels.items()}


def _kind(version: str, kind: str, replicas: str, operator: str, *roles: str) -> SandboxKind:
    """A row: they differ in names only."""
    return SandboxKind(
        resource=Resource(GVK("kubeflow.org", version, kind), f"{kind.lower()}s"),
        integration=f"kubeflow.org/{kind.lower()}",
        suspend=("spec", "runPolicy", "suspend"),
        managed_by=("spec", "runPolicy", "managedBy"),
        operator=f"kubeflow.org/{operator}",
        pods=InTemplates(
            (
                Roles(
                    at=("spec", replicas, EACH),
                    index_label="training.kubeflow.org/replica-index",
                    container=_CONTAINERS.get(kind, ""),
                ),
            )
        ),
        pod_labels=partial(_pod_labels, kind),
        course=_MPI_COURSE if kind == "MPIJob" else _course(kind, *_WORDS.get(kind, _NAMED)),
        spec={replicas: {role: {"replicas": 1} for role in roles}},
        columns=(("State", ".status.conditions[-1:].type"),),
    )


KINDS: Final = (
    _kind("v1", "JAXJob", "jaxReplicaSpecs", "training-operator", "Worker"),
    _kind("v1", "PaddleJob", "paddleReplicaSpecs", "training-operator", "Master", "Worker"),
    _kind("v1", "PyTorchJob", "pytorchReplicaSpecs", "training-operator", "Master", "Worker"),
    _kind("v1", "TFJob", "tfReplicaSpecs", "training-operator", "Chief", "Worker"),
    _kind("v1", "XGBoostJob", "xgbReplicaSpecs", "training-operator", "Master", "Worker"),
    _kind("v2beta1", "MPIJob", "mpiReplicaSpecs", "mpi-operator", "Launcher", "Worker"),
)
