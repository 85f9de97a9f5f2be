"""`ray.io`: RayJob, RayCluster and RayService. Their states are words, not conditions and counters.

An elastic one follows the sizes of the manager's worker groups; see `_sizes`. Kueue's own controller does that for
RayCluster alone: the others would keep the name of a slice that is gone, and stop.
"""

from __future__ import annotations

from multikueue.adapters.kind import JobKind
from multikueue.adapters.rules import CopyRules, Delegation, StatusRules, SyncRule, SyncRules, condition_at_false, ended
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.copies import renaming_patch
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig, overlaid, resource_version, with_value
from multikueue.core.model.workload_names import is_latest_slice

_ENDED = ("Complete", "Failed")


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


def _sizes(gvk: GVK, path: tuple[str, ...]) -> SyncRule:
    """How the copy of an elastic kind follows the sizes of its worker groups, which are at `path`.

    Groups that only one of the two has are left alone, and so is all else of a group: the worker's Kueue has put
    its own node selectors there. The patch replaces the list, so it holds only for the object that was read.
    """

    def resized(local: Json, remote: Json, stamp: Stamp) -> Json | None:
        wanted, found = (dig(job, *path) or [] for job in (local, remote))
        sizes, copied = (_pods(groups) for groups in (wanted, found))
        grows = sum(copied.values()) < sum(sizes.values())
        of_this_size = sizes == {name: stamp.counts.get(name) for name in sizes}
        if grows and not of_this_size and not is_latest_slice(gvk, local, stamp.workload):
            return None
        patch = renaming_patch(remote, stamp)
        if sizes == copied:
            return patch
        followed = [_resized(group, wanted) for group in found]
        if followed != found:
            patch = overlaid(patch, with_value({}, path, followed))
            patch = with_value(patch, ("metadata", "resourceVersion"), resource_version(remote))
        return patch

    return resized


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


def _ray(
    kind: str,
    cluster: tuple[str, ...],
    status: StatusRules,
    suspend: tuple[str, ...] = ("spec", "suspend"),
    forwarded: tuple[tuple[str, ...], ...] = (),
) -> JobKind:
    """A row. `cluster` is where the specification of its RayCluster is."""
    gvk = GVK("ray.io", "v1", kind)
    return JobKind(
        resource=Resource(gvk, f"{kind.lower()}s"),
        framework=f"ray.io/{kind.lower()}",
        delegation=Delegation(own_controller="ray.io/kuberay-operator"),
        copies=CopyRules(suspend=suspend),
        status=status,
        sync=SyncRules(forwarded=forwarded, resized=_sizes(gvk, (*cluster, "workerGroupSpecs"))),
    )


KINDS = (
    _ray("RayJob", ("spec", "rayClusterSpec"), StatusRules(finished=_ray_job_outcome, stopped=_ray_job_stopped)),
    _ray("RayCluster", ("spec",), StatusRules(stopped=_ray_cluster_stopped)),
    _ray(
        "RayService",
        ("spec", "rayClusterConfig"),
        StatusRules(stopped=condition_at_false("Ready")),
        suspend=("spec", "rayClusterConfig", "suspend"),
        # The application's configuration is edited while the service runs; all else but sizes stays.
        forwarded=(("spec", "serveConfigV2"),),
    ),
)
