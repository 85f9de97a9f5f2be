"""What is special about each job kind, said again in its users' words: one entry per row."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import attrs

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.names import Json
from multikueue.core.model.objects import with_value

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = "2026-01-01T00:00:00Z"
STAMP = Stamp("multikueue", "wl", "attempt")
OURS = "kueue.x-k8s.io/multikueue"
NAMED = ("wl", "uid-1")

TEMPLATE: Json = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    },
}
SERVING = with_value(TEMPLATE, ("spec", "restartPolicy"), "Always")
COUNTS: Json = {"name": "w", "failed": 0, "succeeded": 0, "suspended": 0}
GATED: Json = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
READY: Json = {"type": "Ready", "status": "True", "lastTransitionTime": AT}
SCHEDULED: Json = {"type": "PodScheduled", "status": "True", "lastTransitionTime": AT}


def said(kind: str, status: str = "True", message: str = "") -> Json:
    """A status with one condition."""
    entry = {"type": kind, "status": status, "reason": "Said", "message": message, "lastTransitionTime": AT}
    return {"conditions": [entry]}


@attrs.frozen
class Case:
    """One kind."""

    spec: Json
    """The user's part of a spec, as the manager's API server has it."""
    succeeded: Json | None
    """A status of one that ended well; None for kinds that do not end."""
    failed: Json | None
    running: Json
    """A status with something running."""
    stopped: Json
    """The same with nothing running."""
    copied: Json | None = None
    """The spec of the copy, where it is another one."""
    metadata: Json = attrs.field(factory=dict)
    """What else the manager's object has: labels and annotations."""
    labels: Json = attrs.field(factory=dict)
    """What the copy's labels differ in; None: not there."""
    annotations: Json = attrs.field(factory=lambda: {"kueue.x-k8s.io/prebuilt-workload-name": "wl"})
    """What the copy's annotations have that the job's have not."""
    ending: Json | None = None
    """A status of a copy that has been stopped, and says that its pods still end; None: the kind does not tell."""
    held: Json | None = None
    """What the manager's shows of that, if it is another: its Kueue keeps the quota by it."""
    gone: tuple[Json, ...] = ()
    """Statuses of a copy that is still there and says that it has no pod left; empty: the kind does not tell."""
    shown: bool = True
    """Whether the manager's object shows the status of its copy."""


def kubeflow(replicas: str, role: str = "Worker") -> Case:
    """The training operator's kinds."""
    return Case(
        {replicas: {role: {"replicas": 2, "restartPolicy": "OnFailure", "template": TEMPLATE}}},
        said("Succeeded"),
        said("Failed"),
        {"replicaStatuses": {role: {"active": 2, "failed": 1}}},
        {"replicaStatuses": {role: {"active": 0, "failed": 1}}},
    )


def ray_cluster(**group: Any) -> Json:
    """A cluster of Ray with one group of workers."""
    return {
        "rayVersion": "2.9",
        "headGroupSpec": {"rayStartParams": {}, "template": TEMPLATE},
        "workerGroupSpecs": [
            {"groupName": "Small", "replicas": 1, "rayStartParams": {}, "template": TEMPLATE, **group},
        ],
    }


UID_NOTED: Json = {"kueue.x-k8s.io/multikueue-origin-uid": "uid-1"}
PREBUILT: Json = {"kueue.x-k8s.io/prebuilt-workload-name": "wl"}
TOLERATIONS = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
ACCESS: Json = {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
POD: Json = {
    "restartPolicy": "Never",
    "serviceAccountName": "default",
    "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
    "tolerations": TOLERATIONS,
    "priorityClassName": "urgent",
    "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/t"}]}],
    "volumes": [ACCESS],
}

CASES: dict[str, Case] = {
    "Job": Case(
        {
            "parallelism": 2,
            "completions": 2,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}},
            "template": with_value(
                TEMPLATE,
                ("metadata", "labels"),
                {
                    "app": "x",
                    "job-name": "mine",
                    "batch.kubernetes.io/job-name": "mine",
                    "controller-uid": "uid-1",
                    "batch.kubernetes.io/controller-uid": "uid-1",
                },
            ),
        },
        said("Complete"),
        said("Failed"),
        {"active": 2, "ready": 1, "startTime": AT},
        {"active": 0, "ready": 0, "startTime": AT},
        ending={"ready": 0, "terminating": 2},
        held={"active": 2, "ready": 0, "terminating": 2},
        copied={
            "parallelism": 2,
            "completions": 2,
            "template": with_value(
                TEMPLATE, ("metadata", "labels"), {"app": "x", "batch.kubernetes.io/job-name": "mine"}
            ),
        },
    ),
    "JobSet": Case(
        {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}}]},
        said("Completed"),
        said("Failed"),
        {"replicatedJobsStatus": [{**COUNTS, "active": 1, "ready": 1}]},
        {"replicatedJobsStatus": [{**COUNTS, "active": 0, "ready": 0}]},
    ),
    "PyTorchJob": kubeflow("pytorchReplicaSpecs"),
    "TFJob": kubeflow("tfReplicaSpecs"),
    "XGBoostJob": kubeflow("xgbReplicaSpecs"),
    "PaddleJob": kubeflow("paddleReplicaSpecs"),
    "JAXJob": kubeflow("jaxReplicaSpecs"),
    "MPIJob": kubeflow("mpiReplicaSpecs", "Launcher"),
    "TrainJob": Case(
        {
            "runtimeRef": {"name": "torch"},
            "trainer": {"numNodes": 2},
            "runtimePatches": [{"manager": "kueue.x-k8s.io/manager"}, {"manager": "example.com/mine"}],
        },
        said("Complete"),
        said("Failed"),
        {"jobsStatus": [{**COUNTS, "active": 1, "ready": 1}]},
        {"jobsStatus": [{**COUNTS, "active": 0, "ready": 1}]},
        copied={
            "runtimeRef": {"name": "torch"},
            "trainer": {"numNodes": 2},
            "runtimePatches": [{"manager": "example.com/mine"}],
        },
    ),
    "RayJob": Case(
        {"entrypoint": "python main.py", "rayClusterSpec": ray_cluster()},
        {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
        {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "message": "no memory"},
        {"jobDeploymentStatus": "Running", "succeeded": 0, "failed": 0},
        {"jobDeploymentStatus": "Suspended", "succeeded": 0, "failed": 0},
        ending={"jobDeploymentStatus": "Suspending"},
    ),
    "RayCluster": Case(
        ray_cluster(),
        None,
        None,
        {"state": "ready"},
        {"state": "suspended"},
        ending=said("RayClusterSuspending"),
        held={"state": "ready", **said("RayClusterSuspending")},
        gone=({"state": "suspended", **said("RayClusterSuspended")},),
    ),
    "RayService": Case(
        {"serveConfigV2": "applications: []", "rayClusterConfig": ray_cluster()},
        None,
        None,
        said("Ready"),
        said("Ready", "False"),
    ),
    "AppWrapper": Case(
        {"components": [{"template": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}}]},
        {"phase": "Succeeded"},
        {"phase": "Failed", **said("ResourcesDeployed", "False")},
        said("QuotaReserved"),
        said("QuotaReserved", "False"),
    ),
    "Pod": Case(
        {**POD, "priority": 1000, "preemptionPolicy": "PreemptLowerPriority"},
        {"phase": "Succeeded"},
        {"phase": "Failed", "message": "out of memory"},
        {
            "phase": "Running",
            "qosClass": "BestEffort",
            "conditions": [SCHEDULED],
        },
        {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [{**GATED, "message": "Scheduling is blocked due to non-empty scheduling gates"}],
        },
        gone=({"phase": "Succeeded"}, {"phase": "Failed"}),
        copied=POD,
        metadata={
            "labels": {
                "kueue.x-k8s.io/queue-name": "q",
                "kueue.x-k8s.io/managed": "true",
                "pod-template-hash": "7d9f",
                "app": "x",
            },
            "annotations": {"kueue.x-k8s.io/pod-suspending-parent": "deployment"},
        },
        labels={"pod-template-hash": None},
        annotations={**PREBUILT, **UID_NOTED},
    ),
    "StatefulSet": Case(
        {"replicas": 2, "serviceName": "s", "selector": {"matchLabels": {"app": "x"}}, "template": SERVING},
        None,
        None,
        {"replicas": 2},
        {"replicas": 2},
        annotations={**PREBUILT, **UID_NOTED},
        shown=False,
    ),
    "LeaderWorkerSet": Case(
        {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": SERVING}},
        None,
        None,
        {"replicas": 2},
        {"replicas": 2},
        labels={"kueue.x-k8s.io/prebuilt-workload-name": None},
        annotations=UID_NOTED,
        shown=False,
    ),
}


def row(name: str) -> JobKind:
    """The row of a kind."""
    return next(kind for kind in AVAILABLE if kind.resource.gvk.kind == name)


def case_of(kind: JobKind) -> Case:
    """What its users say of a kind."""
    return CASES[kind.resource.gvk.kind]


def a_job(kind: JobKind, status: Json | None = None) -> Json:
    """A delegated job of that kind that may not run yet, as the manager's API server has it."""
    case = case_of(kind)
    job: Json = {
        "apiVersion": kind.resource.gvk.api_version,
        "kind": kind.resource.gvk.kind,
        "metadata": {
            "name": "mine",
            "namespace": "team",
            "uid": "uid-1",
            "resourceVersion": "7",
            "generation": 3,
            "labels": {"kueue.x-k8s.io/queue-name": "q"},
            "ownerReferences": [{"uid": "x"}],
            "finalizers": ["f"],
            **copy.deepcopy(case.metadata),
        },
        "spec": copy.deepcopy(case.spec),
    }
    if kind.delegation.path is not None:
        job = with_value(job, kind.delegation.path, OURS)
    if kind.copies.suspend is not None:
        job = with_value(job, kind.copies.suspend, True)
    return job if status is None else {**job, "status": copy.deepcopy(status)}


def golden(kind: JobKind) -> Json:
    """The copy of `a_job`, in full."""
    case = case_of(kind)
    labels: Json = {
        "kueue.x-k8s.io/queue-name": "q",
        **case.metadata.get("labels", {}),
        "kueue.x-k8s.io/multikueue-origin": "multikueue",
        "kueue.x-k8s.io/prebuilt-workload-name": "wl",
        **case.labels,
    }
    made = {
        "apiVersion": kind.resource.gvk.api_version,
        "kind": kind.resource.gvk.kind,
        "metadata": {
            "name": "mine",
            "namespace": "team",
            "labels": {name: value for name, value in labels.items() if value is not None},
            "annotations": {
                **case.metadata.get("annotations", {}),
                "multikueue.dev/attempt": "attempt",
                **case.annotations,
            },
        },
        "spec": copy.deepcopy(case.copied if case.copied is not None else case.spec),
    }
    if kind.delegation.path is not None and len(kind.delegation.path) > 2:
        made = with_value(made, kind.delegation.path[:-1], {})
    return made if kind.copies.suspend is None else with_value(made, kind.copies.suspend, True)
