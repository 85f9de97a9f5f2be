"""`ray.io`: RayJob, RayCluster and RayService. Their states are words, not conditions and counters."""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.core.adapter import Outcome
from multikueue.core.names import GVK, Json, Resource
from multikueue.core.objects import dig

_OPERATOR = "ray.io/kuberay-operator"


def _resource(kind: str) -> Resource:
    return Resource(GVK("ray.io", "v1", kind), f"{kind.lower()}s")


def _ray_job_outcome(job: Json) -> Outcome | None:
    if dig(job, "status", "jobDeploymentStatus") not in ("Complete", "Failed"):
        return None
    message = str(dig(job, "status", "message") or "")
    if dig(job, "status", "jobStatus") == "SUCCEEDED":
        return Outcome("Succeeded", message or "Job finished successfully")
    return Outcome("Failed", message or "Job failed")


def _ray_job_stopped(status: Json) -> Json:
    if status.get("jobDeploymentStatus") not in (None, "", "Suspended"):
        status["jobDeploymentStatus"] = "Suspended"
    return status


def _ray_cluster_stopped(status: Json) -> Json:
    if status.get("state") == "ready":
        status["state"] = "suspended"
    return status


def _ray_service_stopped(status: Json) -> Json:
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Ready":
            condition["status"] = "False"
    return status


KINDS = (
    JobKind(
        resource=_resource("RayJob"),
        framework="ray.io/rayjob",
        own_controller=_OPERATOR,
        finished=_ray_job_outcome,
        stopped=_ray_job_stopped,
    ),
    JobKind(
        resource=_resource("RayCluster"),
        framework="ray.io/raycluster",
        own_controller=_OPERATOR,
        stopped=_ray_cluster_stopped,
    ),
    JobKind(
        resource=_resource("RayService"),
        framework="ray.io/rayservice",
        own_controller=_OPERATOR,
        suspend=("spec", "rayClusterConfig", "suspend"),
        # The application's configuration is edited while the service runs; nothing else may follow.
        forwarded=(("spec", "serveConfigV2"),),
        stopped=_ray_service_stopped,
    ),
)
