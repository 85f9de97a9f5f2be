"""`ray.io`: RayJob, RayCluster and RayService. Their states are words, not conditions and counters.

An elastic RayCluster follows the sizes of the manager's worker groups; see `cluster_size`. The other two cannot:
KubeRay makes the cluster of a RayJob or RayService once, and passes no changed sizes on to it.
"""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.adapters.rules import CopyRules, Delegation, StatusRules, SyncRules, condition_at_false, ended
from multikueue.adapters.templates import EACH, PodTemplates
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.copies import renaming_patch
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig, overlaid, resource_version, with_value
from multikueue.core.model.workload_names import is_latest_slice

_ENDED = ("Complete", "Failed")
_DELEGATION = Delegation(own_controller="ray.io/kuberay-operator")


def _resource(kind: str) -> Resource:
    return Resource(GVK("ray.io", "v1", kind), f"{kind.lower()}s")


_CLUSTER = _resource("RayCluster")
_GROUPS = "workerGroupSpecs"


def _templates(*cluster: str) -> tuple[PodTemplates, ...]:
    """The head's and the worker groups' of the cluster at a path."""
    workers = ("spec", *cluster, _GROUPS, EACH, "template")
    return (
        PodTemplates(at=("spec", *cluster, "headGroupSpec", "template"), pod_set="head"),
        PodTemplates(at=workers, named_by="groupName"),
    )


def _ray_job_outcome(job: Json) -> Outcome | None:
    if dig(job, "status", "jobDeploymentStatus") not in _ENDED:
        return None
    return ended(str(dig(job, "status", "message") or ""), well=dig(job, "status", "jobStatus") == "SUCCEEDED")


def _ray_job_stopped(status: Json) -> Json:
    if status.get("jobDeploymentStatus") not in (None, "", "Suspended", *_ENDED):
        status["jobDeploymentStatus"] = "Suspended"
    return status


def _ray_cluster_stopped(status: Json) -> Json:
    if status.get("state") == "ready":
        status["state"] = "suspended"
    return status


def cluster_size(local: Json, remote: Json, stamp: Stamp) -> Json | None:
    """The patch that gives an elastic RayCluster's copy its new sizes, and the name of the slice with quota for them.

    Groups that only one of the two has are left alone, and so is all else of a group: the worker's Kueue has put
    its own node selectors there. The patch replaces the list, so it holds only for the object that was read.
    """
    wanted, found = _groups(local), _groups(remote)
    sizes, copied = (_pods(groups) for groups in (wanted, found))
    grows = sum(copied.values()) < sum(sizes.values())
    of_this_size = sizes == {name: stamp.counts.get(name) for name in sizes}
    if grows and not of_this_size and not is_latest_slice(_CLUSTER.gvk, local, stamp.workload):
        return None
    patch = renaming_patch(remote, stamp)
    if sizes == copied:
        return patch
    followed = [_resized(group, wanted) for group in found]
    if followed != found:
        patch = overlaid(patch, {"spec": {_GROUPS: followed}})
        patch = with_value(patch, ("metadata", "resourceVersion"), resource_version(remote))
    return patch


def _groups(job: Json) -> list[Json]:
    return dig(job, "spec", _GROUPS) or []


def _pods(groups: list[Json]) -> dict[str, int]:
    """How many pods each group has, in Kueue's way of counting."""
    return {str(group.get("groupName", "")).lower(): _count(group) for group in groups}


def _count(group: Json) -> int:
    replicas, hosts = group.get("replicas"), group.get("numOfHosts") or 1
    return (1 if replicas is None else int(replicas)) * max(int(hosts), 1)


def _resized(group: Json, wanted: list[Json]) -> Json:
    model = next((one for one in wanted if one.get("groupName") == group.get("groupName")), None)
    if model is None:
        return group
    sizes = {field: model[field] for field in ("replicas", "numOfHosts") if model.get(field) is not None}
    return {field: value for field, value in group.items() if field not in ("replicas", "numOfHosts")} | sizes


KINDS = (
    JobKind(
        resource=_resource("RayJob"),
        framework="ray.io/rayjob",
        delegation=_DELEGATION,
        copies=CopyRules(
            templates=(
                *_templates("rayClusterSpec"),
                PodTemplates(at=("spec", "submitterPodTemplate"), pod_set="submitter"),
            )
        ),
        status=StatusRules(finished=_ray_job_outcome, stopped=_ray_job_stopped),
    ),
    JobKind(
        resource=_CLUSTER,
        framework="ray.io/raycluster",
        delegation=_DELEGATION,
        copies=CopyRules(templates=_templates()),
        status=StatusRules(stopped=_ray_cluster_stopped),
        sync=SyncRules(resized=cluster_size),
    ),
    JobKind(
        resource=_resource("RayService"),
        framework="ray.io/rayservice",
        delegation=_DELEGATION,
        copies=CopyRules(suspend=("spec", "rayClusterConfig", "suspend"), templates=_templates("rayClusterConfig")),
        status=StatusRules(stopped=condition_at_false("Ready")),
        # The application's configuration is edited while the service runs; all else stays.
        sync=SyncRules(forwarded=(("spec", "serveConfigV2"),)),
    ),
)
