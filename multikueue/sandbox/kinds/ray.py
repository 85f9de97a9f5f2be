"""`ray.io`: RayJob, RayCluster and RayService.

A RayCluster follows its sizes while it runs. The cluster of a RayJob or a RayService is made once: KubeRay passes no
changed size on to it.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig, with_value, without
from multikueue.sandbox.kinds.course import Ending, Moment, Run, Turn
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.roles import EACH, InTemplates, Roles
from multikueue.sandbox.kinds.stages import Stage, Stages

_OPERATOR: Final = "ray.io/kuberay-operator"
_GROUP: Final = {"groupName": "small", "replicas": 1, "minReplicas": 0, "maxReplicas": 3, "rayStartParams": {}}
_CLUSTER: Final[dict[str, Any]] = {
    "rayVersion": "2.46.0",
    "headGroupSpec": {"rayStartParams": {}},
    "workerGroupSpecs": [_GROUP],
}

_HEAD: Final = "head"
_REFUSED: Final = "ValidationFailed"
_INVALID: Final = "The RayJob spec is invalid:"
WORKERS: Final = "desiredWorkerReplicas"


@attrs.frozen(kw_only=True)
class RayStages(Stages):
    """Stages of a kind whose status tells how many workers its cluster has."""

    cluster: tuple[str, ...] = ()
    """Where the status of the cluster is, in the kind's status."""
    follows: bool = False
    """Whether a cluster that is there gets another size when its spec says so."""

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        status, path = super()._status(job, stage, moment), (*self.cluster, WORKERS)
        if stage is self.suspended:
            return without(status, [self.cluster or path])
        if not self.follows and dig(status, *path) is not None:
            return status
        return with_value(status, path, sum(count for role, count in moment.pods.items() if role != _HEAD))


class RayJobStages(RayStages):
    """Stages of a RayJob, which has ended however its controller says why."""

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """See `Course`. KubeRay looks at the spec first, each time."""
        why, status = _refusal(job), job.get("status") or {}
        if not why or self.ending(job) is not None:
            return super().turn(job, run, moment)
        refused = {**status, "jobDeploymentStatus": _REFUSED, "reason": _REFUSED, "message": why}
        return Turn(None if refused == status else refused, event=(_REFUSED, why))

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        status = job.get("status") or {}
        if status.get("jobDeploymentStatus") not in ("Complete", "Failed"):
            return None
        reason = "Succeeded" if status.get("jobStatus") == "SUCCEEDED" else "Failed"
        return Ending(reason, str(status.get("message") or ""))

    def is_active(self, job: Json) -> bool:
        """See `Course`."""
        return dig(job, "status", "jobDeploymentStatus") in ("Initializing", "Running", "Retrying", "Suspending")


def _refusal(job: Json) -> str:
    """Why KubeRay does not run a RayJob as it is; two of its reasons."""
    if dig(job, "spec", "suspend") and not dig(job, "spec", "shutdownAfterJobFinishes"):
        return f"{_INVALID} a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended"
    return f"{_INVALID} backoffLimit must be a positive integer" if (dig(job, "spec", "backoffLimit") or 0) < 0 else ""


def _is_refused(job: Json) -> bool:
    return bool(dig(job, "status", "jobDeploymentStatus") == _REFUSED)


class RayClusterStages(RayStages):
    """Stages of a RayCluster, which is ready until the last of its pods has gone."""

    def is_active(self, job: Json) -> bool:
        """See `Course`."""
        return bool(dig(job, "status", "state") == "ready")


class RayServiceStages(RayStages):
    """Stages of a RayService, which serves with however many pods."""

    def pods_ready(self, job: Json) -> bool:
        """See `Course`."""
        return is_true(job, "Ready")

    def is_active(self, job: Json) -> bool:
        """See `Course`. Kueue asks for the same."""
        return is_true(job, "Ready")

    def _status(self, job: Json, stage: Stage, moment: Moment) -> Json:
        status = super()._status(job, stage, moment)
        return {**status, "numServeEndpoints": sum(moment.pods.values()) if stage is self.running else 0}


_JOB_COURSE: Final = RayJobStages(
    cluster=("rayClusterStatus",),
    suspended=Stage(fields={"jobDeploymentStatus": "Suspended"}, dropped=("startTime", "jobStatus")),
    stopping=Stage(fields={"jobDeploymentStatus": "Suspending"}),
    starting=Stage(fields={"jobDeploymentStatus": "Initializing", "succeeded": 0, "failed": 0}, times=("startTime",)),
    running=Stage(fields={"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}),
    succeeded=Stage(
        fields={
            "jobDeploymentStatus": "Complete",
            "jobStatus": "SUCCEEDED",
            "succeeded": 1,
            "message": "Job finished successfully.",
        },
        times=("endTime",),
        message="Job finished successfully.",
    ),
    failed=Stage(
        fields={
            "jobDeploymentStatus": "Failed",
            "jobStatus": "FAILED",
            "failed": 1,
            "reason": "AppFailed",
            "message": "Job entrypoint command failed with exit code 1",
        },
        times=("endTime",),
        message="Job entrypoint command failed",
    ),
)
_AWAKE: Final = {"RayClusterSuspending": "False", "RayClusterSuspended": "False"}
_SAID: Final = {
    "RayClusterSuspending": ("RayClusterSuspending", ""),
    "RayClusterSuspended": ("RayClusterSuspended", ""),
    "HeadPodReady": ("HeadPodRunningAndReady", ""),
}
_CLUSTER_COURSE: Final = RayClusterStages(
    follows=True,
    suspended=Stage(
        fields={"state": "suspended"},
        conditions={"RayClusterProvisioned": "False", "HeadPodReady": "False", **_AWAKE, "RayClusterSuspended": "True"},
        times=("lastUpdateTime",),
        reason="RayClusterPodsProvisioning",
        message="RayCluster has been suspended",
        words={**_SAID, "HeadPodReady": ("HeadPodNotFound", "Head Pod not found")},
    ),
    stopping=Stage(conditions={"RayClusterSuspending": "True"}, words=_SAID),
    running=Stage(
        fields={"state": "ready"},
        conditions={**_AWAKE, "HeadPodReady": "True", "RayClusterProvisioned": "True"},
        times=("lastUpdateTime",),
        reason="AllPodRunningAndReadyFirstTime",
        message="All Ray Pods are ready for the first time",
        words=_SAID,
    ),
)
_SERVICE_COURSE: Final = RayServiceStages(
    cluster=("activeServiceStatus", "rayClusterStatus"),
    suspended=Stage(
        fields={"serviceStatus": ""},
        conditions={"UpgradeInProgress": "False", "Ready": "False"},
        reason="Initializing",
        message="RayService is initializing",
    ),
    running=Stage(
        fields={"serviceStatus": "Running"},
        conditions={"UpgradeInProgress": "False", "Ready": "True"},
        reason="NonZeroServeEndpoints",
        message="Number of serve endpoints is greater than 0",
        words={"UpgradeInProgress": ("NoPendingCluster", "Active Ray cluster exists and no pending Ray cluster")},
        by_reason=True,
    ),
)


def _pods(*at: str) -> InTemplates:
    """The head and the worker groups of a cluster."""
    return InTemplates(
        (
            Roles(at=("spec", *at, "headGroupSpec"), counts=(), name=_HEAD),
            Roles(
                at=("spec", *at, "workerGroupSpecs", EACH),
                counts=(("replicas",), ("numOfHosts",)),
                named_by="groupName",
            ),
        )
    )


def _resource(kind: str) -> Resource:
    return Resource(GVK("ray.io", "v1", kind), f"{kind.lower()}s")


KINDS: Final = (
    SandboxKind(
        resource=_resource("RayJob"),
        integration="ray.io/rayjob",
        operator=_OPERATOR,
        pods=_pods("rayClusterSpec"),
        course=_JOB_COURSE,
        on_hold=_is_refused,
        to_wait={("spec", "shutdownAfterJobFinishes"): True},
        spec={
            "entrypoint": "python -c 'import ray; ray.init()'",
            "rayClusterSpec": _CLUSTER,
            "shutdownAfterJobFinishes": True,
        },
        columns=(("job status", ".status.jobStatus"), ("deployment status", ".status.jobDeploymentStatus")),
    ),
    SandboxKind(
        resource=_resource("RayCluster"),
        integration="ray.io/raycluster",
        operator=_OPERATOR,
        pods=_pods(),
        course=_CLUSTER_COURSE,
        spec=_CLUSTER,
        columns=(("status", ".status.state"),),
    ),
    SandboxKind(
        resource=_resource("RayService"),
        integration="ray.io/rayservice",
        suspend=("spec", "rayClusterConfig", "suspend"),
        operator=_OPERATOR,
        pods=_pods("rayClusterConfig"),
        course=_SERVICE_COURSE,
        spec={"serveConfigV2": "applications: []\n", "rayClusterConfig": _CLUSTER},
        columns=(
            ("service status", ".status.serviceStatus"),
            ("num serve endpoints", ".status.numServeEndpoints"),
        ),
    ),
)
