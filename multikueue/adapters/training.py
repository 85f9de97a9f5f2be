"""Kinds for training: those of `kubeflow.org`, which differ in their names only, TrainJob, and JobSet.

Each cluster's Kueue adds a runtime patch of its own when a TrainJob is created, with the node selectors of that
cluster. A copy of the manager's would collide with the worker's.
"""

from __future__ import annotations

from typing import Final

import attrs

from multikueue.adapters.kind import JobKind
from multikueue.adapters.managed_by_support import JAX, JOBSET, MPI, TRAINER, TRAINING, ManagedBySupport
from multikueue.adapters.rules import (
    TTL,
    CopyRules,
    Delegation,
    StatusRules,
    SyncRules,
    TimeToLive,
    counters_at_zero,
    finished_by,
    limits_at,
    sized_there,
)
from multikueue.adapters.templates import EACH, KEY, Path, PodTemplates
from multikueue.adapters.words import SUSPENDED, Words
from multikueue.core.model.names import GVK, Json, Resource

KUEUE_PATCHES: Final = "kueue.x-k8s.io/manager"
"""Whose runtime patches stay behind."""
_PLAIN: Final = CopyRules()
_AUTOSCALED: Final = CopyRules(
    refused=sized_there(
        ("spec", "elasticPolicy", "metrics"), "set", "an autoscaler that the worker's training operator makes of it"
    )
)
"""For PyTorchJobs alone: of a PaddleJob's `elasticPolicy` the operator makes none (v1.9.3)."""


def _without_kueues_patches(spec: Json) -> Json:
    patches = spec.pop("runtimePatches", None) or []
    kept = [patch for patch in patches if patch.get("manager") != KUEUE_PATCHES]
    return {**spec, "runtimePatches": kept} if kept else spec


def _words(kind: str) -> Words:
    """Those of the training operator; the MPI operator's differ in their messages."""
    job = "MPIJob {job}" if kind == "MPIJob" else f"{kind} {{name}}"
    suspended, resumed = (
        ("MPIJob suspended", "MPIJob resumed") if kind == "MPIJob" else (f"{job} is suspended.", f"{job} is resumed.")
    )
    return Words(
        waiting=(
            ("Created", "True", f"{kind}Created", f"{job} is created."),
            ("Running", "False", f"{kind}Suspended", f"{job} is suspended."),
            (SUSPENDED, "True", f"{kind}Suspended", suspended),
        ),
        from_the_first=kind == "MPIJob",
        resumed=(f"{kind}Resumed", resumed),
        written="lastUpdateTime",
    )


def _training(
    version: str,
    kind: str,
    replicas: str,
    operator: str = "training",
    heeding: ManagedBySupport = TRAINING,
    completed: Path = ("status", "completionTime"),
    copies: CopyRules = _PLAIN,
) -> JobKind:
    return JobKind(
        resource=Resource(GVK("kubeflow.org", version, kind), f"{kind.lower()}s"),
        framework=f"kubeflow.org/{kind.lower()}",
        delegation=Delegation(
            path=("spec", "runPolicy", "managedBy"),
            own_controller=f"kubeflow.org/{operator}-operator",
            heeding=heeding,
        ),
        copies=attrs.evolve(
            copies,
            time_to_live=TimeToLive(seconds=("spec", "runPolicy", TTL), completed=completed),
            suspend=("spec", "runPolicy", "suspend"),
            templates=(PodTemplates(at=("spec", replicas, EACH, "template"), named_by=KEY),),
        ),
        status=StatusRules(
            finished=finished_by("Succeeded", "Failed"),
            stopped=counters_at_zero(("replicaStatuses", "*", "active")),
            words=_words(kind),
        ),
        sync=SyncRules(forwarded=limits_at("spec", "runPolicy")),
    )


KINDS = (
    JobKind(
        resource=Resource(GVK("jobset.x-k8s.io", "v1alpha2", "JobSet"), "jobsets"),
        framework="jobset.x-k8s.io/jobset",
        delegation=Delegation(own_controller="jobset.sigs.k8s.io/jobset-controller", heeding=JOBSET),
        copies=CopyRules(
            time_to_live=TimeToLive(seconds=("spec", TTL), conditions=("Completed", "Failed")),
            templates=(
                PodTemplates(at=("spec", "replicatedJobs", EACH, "template", "spec", "template"), named_by="name"),
            ),
        ),
        status=StatusRules(
            finished=finished_by("Completed", "Failed"),
            stopped=counters_at_zero(("replicatedJobsStatus", "*", "active"), ("replicatedJobsStatus", "*", "ready")),
            words=Words(
                waiting=((SUSPENDED, "True", "SuspendedJobs", "jobset is suspended"),),
                resumed=("ResumeJobs", "jobset is resumed"),
            ),
        ),
    ),
    _training("v1", "JAXJob", "jaxReplicaSpecs", heeding=JAX),
    _training("v1", "PaddleJob", "paddleReplicaSpecs"),
    _training("v1", "PyTorchJob", "pytorchReplicaSpecs", copies=_AUTOSCALED),
    _training("v1", "TFJob", "tfReplicaSpecs"),
    _training("v1", "XGBoostJob", "xgbReplicaSpecs"),
    _training("v2beta1", "MPIJob", "mpiReplicaSpecs", operator="mpi", heeding=MPI, completed=()),
    JobKind(
        resource=Resource(GVK("trainer.kubeflow.org", "v1alpha1", "TrainJob"), "trainjobs"),
        framework="trainer.kubeflow.org/trainjob",
        delegation=Delegation(own_controller="trainer.kubeflow.org/trainjob-controller", heeding=TRAINER),
        copies=CopyRules(
            time_to_live=TimeToLive(seconds=("spec", TTL), conditions=("Complete", "Failed")),  # as KEP-2899 plans it
            sanitised=_without_kueues_patches,
        ),
        status=StatusRules(
            finished=finished_by("Complete", "Failed"),
            stopped=counters_at_zero(("jobsStatus", "*", "active")),
            words=Words(
                waiting=((SUSPENDED, "True", "Suspended", "TrainJob is suspended"),),
                resumed=("Resumed", "TrainJob is resumed"),
            ),
        ),
    ),
)
