"""The Workloads of the manager that a worker has, and which of them may be moved.

`multikueue worker cordon` and `uncordon`: nothing new for a worker, and what it has stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from multikueue import AVAILABLE, GVK, JobKind
from multikueue.adapters.pod import PODS
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, message
from multikueue.core.model.kinds import ADMISSION_CHECK, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.labels import CORDON_ANNOTATION, MOVE_FROM_ANNOTATION, POD_PARENT_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, controller_of, dig, is_terminating, uid
from multikueue.core.model.worker_names import cordon_of
from multikueue.core.model.workloads import CheckState, is_serving_pod
from multikueue.protocols import read
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.typenames import title
from multikueued.settings.config import Settings
from multikueued.settings.kinds import chosen_kinds
from multikueued.workers.places import ManagerAccess

_MAKERS: Final = ("ReplicaSet", "Deployment", "StatefulSet", "LeaderWorkerSet")
"""Kinds that make a pod anew when it ends."""


def known_kinds(settings: Settings) -> dict[GVK, JobKind]:
    """The rows of all kinds that may run somewhere: those of the settings, and what comes with the library."""
    kinds = {kind.resource.gvk: kind for kind in AVAILABLE}
    return kinds | {kind.resource.gvk: kind for kind in chosen_kinds(settings)}


async def running_on(manager: ManagerAccess, worker: str) -> list[Json]:
    """The Workloads that are recorded for a worker and have not ended."""
    listed = (await manager.client.list(WORKLOAD)).items
    running = [
        workload
        for workload in listed
        if workloads.cluster_name(workload) == worker and not workloads.is_finished(workload)
    ]
    return sorted(running, key=title)


async def own_checks(manager: ManagerAccess) -> ManagerObjects:
    """The AdmissionChecks of the daemon of these settings alone, and the configs: which worker may get what."""
    configs = (await manager.client.list(MULTIKUEUE_CONFIG)).items
    checks = (await manager.client.list(ADMISSION_CHECK)).items
    ours = (check for check in checks if dig(check, "spec", "controllerName") == manager.settings.controller_name)
    return ManagerObjects(checks=tuple(ours), configs=tuple(configs))


async def pods_of(manager: ManagerAccess, workload: Json) -> list[Json]:
    """The manager's pods behind a Workload of pods; empty for other kinds."""
    namespace, names = ObjectKey.of(workload).namespace, workloads.owner_names(workload, PODS.gvk)
    pods = [await read(manager.client, PODS, ObjectKey(namespace, name)) for name in names]
    return [pod for pod in pods if pod is not None]


def never_ends(workload: Json, kind: JobKind | None, pods: Iterable[Json]) -> str:
    """Why a job does not end by itself; empty if it does, as far as can be told."""
    if kind is not None and kind.traits.serves:
        return f"a {kind.resource.gvk.kind} runs until somebody stops it"
    if workloads.component_index(workload) is not None:
        return "it is a part of a group that runs until somebody stops it"
    for pod in pods:
        if is_serving_pod(pod):
            return "its pods serve until somebody stops them"
        maker = str((controller_of(pod) or {}).get("kind") or "")
        if maker in _MAKERS or annotations_of(pod).get(POD_PARENT_ANNOTATION):
            return (
                f"a {'Deployment' if maker in ('', 'ReplicaSet') else maker} makes its pods, which run until it is gone"
            )
    return ""


def why_not_moved(workload: Json, kind: JobKind | None, check: str | None) -> str:
    """Why a job that ends is not moved, wherever it could go; empty: it may be. The daemon decides alike."""
    if check is None:
        return "its queue does not have our AdmissionCheck any more, so nobody would dispatch it again"
    if is_terminating(workload):
        return "it is being deleted"
    if kind is None:
        return "its kind is not known here: name the daemon's settings with --config-file"
    if kind.workload_only:
        return "another controller moves jobs of its kind"
    if kind.keeps_check_pending and workloads.check_state(workload, check) is CheckState.READY:
        return "Kueue deletes pods that it evicts once their check is Ready, and nobody makes them again"
    return ""


def obstacle(workload: Json) -> str:
    """What a Workload waits for, in the words of its checks or of Kueue; empty: nothing says that. One that is switched
    off, as after a rejection, waits for a person: the checks of it are reset, and tell no more."""
    rejected = message(workload, workloads.VERDICT) if workloads.verdict(workload) is not None else ""
    if not workloads.is_active(workload) and (why := rejected or message(workload, "Evicted")):
        return why
    for check in workloads.checks(workload):
        if check.get("state") != CheckState.READY and check.get("message"):
            return str(check["message"])
    reserved = condition(workload, "QuotaReserved")
    return "" if reserved is None or reserved["status"] == "True" else str(reserved.get("message") or "")


IGNORED: Final = "Kueue's built-in MultiKueue controller ignores a cordon: it takes multikueue's daemon."
"""Told with every cordon."""


async def cordon(manager: ManagerAccess, worker: str, reason: str = "") -> list[Json]:
    """Offer nothing new to a worker; return the Workloads that stay there. Without a reason one that was told stays.

    Raises:
        CommandError: there is no such worker.
    """
    cluster = await manager.cluster(worker)
    if reason or not cordon_of(annotations_of(cluster)):
        await _annotate(manager, MULTIKUEUE_CLUSTER, cluster, CORDON_ANNOTATION, reason or "true")
    running = await running_on(manager, worker)
    manager.say(f"{worker} is cordoned: it gets nothing new, and keeps {_count(len(running))} that it has. {IGNORED}")
    return running


async def uncordon(manager: ManagerAccess, worker: str) -> None:
    """Offer to a worker again; jobs that were asked to leave it and have not left stay.

    Raises:
        CommandError: there is no such worker.
    """
    await _annotate(manager, MULTIKUEUE_CLUSTER, await manager.cluster(worker), CORDON_ANNOTATION, None)
    asked = [
        workload
        for workload in (await manager.client.list(WORKLOAD)).items
        if annotations_of(workload).get(MOVE_FROM_ANNOTATION) == worker
    ]
    for workload in asked:
        await ask_to_leave(manager, workload, None)
    back = f"; {_count(len(asked))} that should leave it may go there again" if asked else ""
    manager.say(f"{worker} is offered jobs again{back}")


async def ask_to_leave(manager: ManagerAccess, workload: Json, worker: str | None) -> None:
    """Ask the daemon to move a Workload away from a worker, or not any more."""
    await _annotate(manager, WORKLOAD, workload, MOVE_FROM_ANNOTATION, worker)


async def _annotate(manager: ManagerAccess, resource: Resource, obj: Json, name: str, value: str | None) -> None:
    patch = {"metadata": {"uid": uid(obj), "annotations": {name: value}}}
    await manager.client.merge_patch(resource, ObjectKey.of(obj), patch)


def _count(jobs: int) -> str:
    return "1 job" if jobs == 1 else f"{jobs} jobs"
