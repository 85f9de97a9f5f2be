"""`ray.io`: RayJob, RayCluster and RayService. Their states are words, not conditions and counters.

An elastic RayCluster follows the sizes of the manager's worker groups; see `cluster_size`. The other two cannot:
KubeRay makes the cluster of a RayJob or RayService once, and passes no changed sizes on to it.
"""

from __future__ import annotations

from datetime import datetime

import attrs

from multikueue.adapters.kind import JobKind
from multikueue.adapters.managed_by_support import KUBERAY, RAY_SERVICE, ManagedBySupport
from multikueue.adapters.rules import (
    CopyRules,
    Delegation,
    StatusRules,
    SyncRules,
    condition_at_false,
    ended,
    limits_at,
    sized_there,
)
from multikueue.adapters.templates import EACH, PodTemplates
from multikueue.adapters.words import Words
from multikueue.core.model.adapter import Outcome, Stamp
from multikueue.core.model.conditions import is_true
from multikueue.core.model.copies import renaming_patch
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import dig, overlaid
from multikueue.core.model.workload_names import is_latest_slice

_ENDED = ("Complete", "Failed")
_REFUSED = "ValidationFailed"
"""KubeRay's word for a RayJob that it does not run as it is; its Kueue puts it on hold."""
_CLUSTER = GVK("ray.io", "v1", "RayCluster")
_PLAIN = CopyRules()
_GROUPS = "workerGroupSpecs"
_SUSPENDING = "RayClusterSuspending"
"""True from the stop until the pods of a RayCluster are gone."""
_SUSPENDED = "RayClusterSuspended"
_CLUSTER_WORDS = Words(
    waiting=(
        ("RayClusterProvisioned", "False", "RayClusterPodsProvisioning", "RayCluster has been suspended"),
        ("HeadPodReady", "False", "HeadPodNotFound", "Head Pod not found"),
        (_SUSPENDING, "False", _SUSPENDING, ""),
        (_SUSPENDED, "True", _SUSPENDED, ""),
    ),
    from_the_first=True,
    fields={"state": "suspended"},
)
_SERVICE_WORDS = Words(
    waiting=tuple(
        (kind, "False", "Initializing", "RayService is initializing") for kind in ("UpgradeInProgress", "Ready")
    ),
    from_the_first=True,
)
"""Without them programs take one that waits for one that is ready: they know no other condition of it."""


def _ray_job_outcome(job: Json) -> Outcome | None:
    if dig(job, "status", "jobDeploymentStatus") not in _ENDED:
        return None
    return ended(str(dig(job, "status", "message") or ""), well=dig(job, "status", "jobStatus") == "SUCCEEDED")


def _ray_job_status(local: Json, remote: Json, now: datetime) -> Json:
    """The copy's. What is said of a refused one is of the spec that it has."""
    status = dig(remote, "status") or {}
    if not _is_refused(remote) or "observedGeneration" in status:
        return status
    return {**status, "observedGeneration": dig(local, "metadata", "generation")}


def _is_refused(job: Json) -> bool:
    return bool(dig(job, "status", "jobDeploymentStatus") == _REFUSED)


def _ray_job_stopped(status: Json) -> Json:
    if status.get("jobDeploymentStatus") == _REFUSED:
        status = {field: value for field, value in status.items() if field not in ("reason", "message")}
    if status.get("jobDeploymentStatus") not in (None, "", "Suspended", *_ENDED):
        status["jobDeploymentStatus"] = "Suspended"
    return status


def _never_deletes_itself(spec: Json) -> Json:
    """A copy goes once the manager has seen its end, see `TTL`; its RayCluster goes as its user wants.

    These two fields are all: KubeRay lets no RayJob be suspended that has `deletionRules` in their place.
    """
    strategy = spec.get("deletionStrategy") or {}
    for end in ("onSuccess", "onFailure"):
        if dig(strategy, end, "policy") == "DeleteSelf":
            strategy[end] = {**strategy[end], "policy": "DeleteCluster"}
    return spec


def _deletes_itself(job: Json) -> list[str]:
    ends = (("spec", "deletionStrategy", end, "policy") for end in ("onSuccess", "onFailure"))
    return [f"{'.'.join(path)}: DeleteSelf" for path in ends if dig(job, *path) == "DeleteSelf"]


def _ray_cluster_status(local: Json, remote: Json, now: datetime) -> Json:
    """The copy's. While its pods end it is shown as `ready`: Kueue takes any other state for one that runs nothing."""
    status = dig(remote, "status") or {}
    return {**status, "state": "ready"} if is_true(remote, _SUSPENDING) else status


def _ray_cluster_stopped(status: Json) -> Json:
    if status.get("state") == "ready":
        status["state"] = "suspended"
    return condition_at_false(_SUSPENDING)(status)


def _ray_cluster_is_empty(cluster: Json) -> bool:
    """KubeRay says so once the pods are gone from the API. Its `state` alone outlives the next start for a while."""
    suspended = bool(dig(cluster, "spec", "suspend")) and dig(cluster, "status", "state") == "suspended"
    return suspended and is_true(cluster, _SUSPENDED) and not is_true(cluster, _SUSPENDING)


_COUNTED = ("replicas", "numOfHosts")
"""What says how many pods a group has."""
_BOUNDS = ("minReplicas", "maxReplicas")
"""KubeRay keeps to these whatever `replicas` says."""


def cluster_size(local: Json, remote: Json, stamp: Stamp) -> Json | None:
    """The patch that gives an elastic RayCluster's copy its new sizes, and the name of the slice with quota for them.

    Groups that only one of the two has are left alone, and so is all else of a group: the worker's Kueue has put
    its own node selectors there. The patch replaces the list, so it holds only for the object that was read.
    """
    groups_here, groups_there = (dig(job, "spec", _GROUPS) or [] for job in (local, remote))
    sizes, copied = (_pods(groups) for groups in (groups_here, groups_there))
    grows = sum(copied.values()) < sum(sizes.values())
    of_this_size = sizes == {name: stamp.counts.get(name) for name in sizes}
    if grows and not of_this_size and not is_latest_slice(_CLUSTER, local, stamp.workload):
        return None
    if sum(sizes.values()) < sum(copied.values()) and any(stamp.counts.get(name, 0) > sizes[name] for name in sizes):
        return None  # it shrinks with its Workload, as a Job does
    patch = renaming_patch(remote, stamp)
    fields = _BOUNDS if sizes == copied else (*_COUNTED, *_BOUNDS)
    followed = [_resized(group, groups_here, fields) for group in groups_there]
    if followed != groups_there:
        patch = overlaid(patch, {"spec": {_GROUPS: followed}})
    return patch


def _pods(groups: list[Json]) -> dict[str, int]:
    """How many pods each group has, in Kueue's way of counting."""
    return {str(group.get("groupName", "")).lower(): _count(group) for group in groups}


def _count(group: Json) -> int:
    replicas, hosts = group.get("replicas"), group.get("numOfHosts") or 1
    return (1 if replicas is None else int(replicas)) * max(int(hosts), 1)


def _resized(group: Json, wanted: list[Json], fields: tuple[str, ...]) -> Json:
    """The group with these fields as the group of its name has them. What bounds its replicas is never taken away."""
    model = next((candidate for candidate in wanted if candidate.get("groupName") == group.get("groupName")), None)
    if model is None:
        return group
    sizes = {field: model[field] for field in fields if model.get(field) is not None}
    gone = [field for field in _COUNTED if field in fields]
    return {field: value for field, value in group.items() if field not in gone} | sizes


def _head_addresses(*cluster: str) -> tuple[tuple[str, ...], ...]:
    """Of the head in the status of a cluster. Its names, and the dashboard's, which is one, lead nowhere and stay."""
    return (*cluster, "head", "podIP"), (*cluster, "head", "serviceIP")


def _ray(
    kind: str,
    cluster: tuple[str, ...],
    status: StatusRules,
    sync: SyncRules,
    suspend: tuple[str, ...] = ("spec", "suspend"),
    others: tuple[PodTemplates, ...] = (),
    heeding: ManagedBySupport = KUBERAY,
    copies: CopyRules = _PLAIN,
) -> JobKind:
    """A row. `cluster` is where the specification of its RayCluster is, `others` are templates beside that."""
    templates = (
        PodTemplates(at=(*cluster, "headGroupSpec", "template"), pod_set="head"),
        PodTemplates(at=(*cluster, _GROUPS, EACH, "template"), named_by="groupName"),
        *others,
    )
    refused = sized_there((*cluster, "enableInTreeAutoscaling"), "true", "the worker's KubeRay")
    return JobKind(
        resource=Resource(GVK("ray.io", "v1", kind), f"{kind.lower()}s"),
        framework=f"ray.io/{kind.lower()}",
        delegation=Delegation(own_controller="ray.io/kuberay-operator", heeding=heeding),
        copies=attrs.evolve(copies, suspend=suspend, templates=templates, refused=refused),
        status=status,
        sync=sync,
    )


KINDS = (
    _ray(
        "RayJob",
        ("spec", "rayClusterSpec"),
        StatusRules(
            rule=_ray_job_status,
            finished=_ray_job_outcome,
            stopped=_ray_job_stopped,
            words=Words(fields={"jobDeploymentStatus": "Suspended"}),
            on_hold=_is_refused,
            addresses=_head_addresses("rayClusterStatus"),
        ),
        SyncRules(forwarded=limits_at("spec")),
        others=(PodTemplates(at=("spec", "submitterPodTemplate"), pod_set="submitter"),),
        copies=CopyRules(sanitised=_never_deletes_itself, unheeded=_deletes_itself),
    ),
    _ray(
        "RayCluster",
        ("spec",),
        StatusRules(
            rule=_ray_cluster_status,
            addresses=_head_addresses(),
            stopped=_ray_cluster_stopped,
            words=_CLUSTER_WORDS,
            pods_are_gone=_ray_cluster_is_empty,
        ),
        SyncRules(resized=cluster_size),
    ),
    _ray(
        "RayService",
        ("spec", "rayClusterConfig"),
        StatusRules(
            stopped=condition_at_false("Ready"),
            words=_SERVICE_WORDS,
            addresses=(
                *_head_addresses("activeServiceStatus", "rayClusterStatus"),
                *_head_addresses("pendingServiceStatus", "rayClusterStatus"),
            ),
        ),
        # The application's configuration is edited while the service runs; all else stays.
        SyncRules(forwarded=(("spec", "serveConfigV2"),)),
        suspend=("spec", "rayClusterConfig", "suspend"),
        heeding=RAY_SERVICE,
    ),
)
