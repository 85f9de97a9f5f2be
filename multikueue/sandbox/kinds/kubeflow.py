"""`kubeflow.org`: the training operator's kinds and MPIJob."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig
from multikueue.sandbox.kinds.course import Moment
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, Roles
from multikueue.sandbox.kinds.stages import Counters, Stage, Stages


def _course(kind: str) -> Stages:
    return Stages(
        suspended=Stage(
            conditions={"Running": "False", "Suspended": "True"},
            dropped=("startTime",),
            reason=f"{kind}Suspended",
            message=f"{kind} is suspended.",
        ),
        starting=Stage(
            conditions={"Suspended": "False", "Created": "True"},
            times=("startTime",),
            counted=("active",),
            reason=f"{kind}Created",
            message=f"{kind} is created.",
        ),
        running=Stage(
            conditions={"Suspended": "False", "Created": "True", "Running": "True"},
            counted=("active",),
            reason=f"{kind}Running",
            message=f"{kind} is running.",
        ),
        succeeded=Stage(
            conditions={"Running": "False", "Succeeded": "True"},
            times=("completionTime",),
            counted=("succeeded",),
            reason=f"{kind}Succeeded",
            message=f"{kind} successfully completed.",
        ),
        failed=Stage(
            conditions={"Running": "False", "Failed": "True"},
            times=("completionTime",),
            counted=("failed",),
            reason=f"{kind}Failed",
            message=f"{kind} has failed.",
        ),
        counters=Counters("replicaStatuses", ("active", "succeeded", "failed"), listed=False),
    )


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


def _kind(version: str, kind: str, replicas: str, operator: str, *roles: str) -> SandboxKind:
    """A row: they differ in names only."""
    return SandboxKind(
        resource=Resource(GVK("kubeflow.org", version, kind), f"{kind.lower()}s"),
        integration=f"kubeflow.org/{kind.lower()}",
        suspend=("spec", "runPolicy", "suspend"),
        managed_by=("spec", "runPolicy", "managedBy"),
        operator=f"kubeflow.org/{operator}",
        pods=InTemplates((Roles(at=("spec", replicas, EACH), index_label="training.kubeflow.org/replica-index"),)),
        course=_MPI_COURSE if kind == "MPIJob" else _course(kind),
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
