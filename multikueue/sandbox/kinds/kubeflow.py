"""`kubeflow.org`: the training operator's kinds and MPIJob."""

from __future__ import annotations

from typing import Final

from multikueue.core.model.names import GVK, Resource
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


def _kind(version: str, kind: str, replicas: str, operator: str, *roles: str) -> SandboxKind:
    """A row: they differ in names only."""
    return SandboxKind(
        resource=Resource(GVK("kubeflow.org", version, kind), f"{kind.lower()}s"),
        integration=f"kubeflow.org/{kind.lower()}",
        suspend=("spec", "runPolicy", "suspend"),
        managed_by=("spec", "runPolicy", "managedBy"),
        operator=f"kubeflow.org/{operator}",
        pods=InTemplates((Roles(at=("spec", replicas, EACH), index_label="training.kubeflow.org/replica-index"),)),
        course=_course(kind),
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
