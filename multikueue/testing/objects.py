"""Objects as tests need them, in the shape real clusters give them.

Names are those of the sandbox's queues (`queues`). Statuses are made by the functions of the sandbox's Kueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

from multikueue.adapters import JobKind
from multikueue.core.model import eviction
from multikueue.core.model.adapter import Stamp
from multikueue.core.model.conditions import new_condition, timestamp
from multikueue.core.model.copies import workload_copy
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import Json
from multikueue.core.model.objects import clone, dig
from multikueue.core.model.workloads import attempt
from multikueue.sandbox.apiserver.serving.server import kubeconfig
from multikueue.sandbox.kinds import BATCH_JOB, SandboxKind
from multikueue.sandbox.kueue import statuses
from multikueue.sandbox.kueue.building import build_workload
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    KUEUE_NAMESPACE,
    LOCAL_QUEUE_NAME,
    admission_check,
    cluster_queue,
    config,
    kubeconfig_secret,
    local_queue,
    namespace,
    resource_flavor,
)
from multikueue.sandbox.setting_up import cluster as worker_cluster

CheckState: TypeAlias = Literal["Pending", "Ready", "Retry", "Rejected"]

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When what the builders tell of has happened."""
ORIGIN: Final = "multikueue"
"""The origin that copies are marked with."""
_PENDING: Final[Mapping[str, CheckState]] = {CHECK: "Pending"}


def job(
    name: str = "train",
    *,
    kind: SandboxKind = BATCH_JOB,
    namespace: str = "default",
    queue: str = LOCAL_QUEUE_NAME,
    cpu: str = "500m",
    delegated: bool = True,
) -> Json:
    """A job as a user submits it: suspended, with a queue.

    Args:
        name: of the job.
        kind: of the job.
        namespace: of the job.
        queue: the LocalQueue.
        cpu: what each pod requests.
        delegated: whether MultiKueue is to run it.
    """
    container = {"name": "main", "image": "example.com/train", "resources": {"requests": {"cpu": cpu}}}
    template: Json = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    made = kind.example(name, template, queue=queue, delegated=delegated)
    made["metadata"]["namespace"] = namespace
    return made


def stored(obj: Json, *, uid: str = "", resource_version: str = "1", **metadata: Any) -> Json:
    """A copy of an object with the metadata an API server gives it; `uid-of-<name>` unless told otherwise."""
    known = {
        "uid": uid or f"uid-of-{obj['metadata']['name']}",
        "resourceVersion": resource_version,
        "creationTimestamp": timestamp(NOW),
    }
    return {**clone(obj), "metadata": {**clone(obj["metadata"]), **known, **metadata}}


def workload(
    of: Json,
    *,
    kind: SandboxKind = BATCH_JOB,
    quota: bool = True,
    checks: Mapping[str, CheckState] = _PENDING,
    nominated: Iterable[str] = (),
    cluster: str = "",
    evicted: str = "",
    finished: str = "",
) -> Json:
    """The Workload that Kueue makes for a job, stored, and as far on its way as the arguments say.

    Args:
        of: the job. One that was not stored counts as `stored(job)`.
        kind: of the job.
        quota: whether quota is reserved. With that and all checks Ready it is admitted.
        checks: state by admission check; MultiKueue's own is Pending unless told otherwise.
        nominated: `status.nominatedClusterNames`.
        cluster: `status.clusterName`.
        evicted: the reason of a true Evicted condition, as `Preempted`.
        finished: the reason of a true Finished condition, as `Succeeded`.
    """
    made = stored(build_workload(kind, of if dig(of, "metadata", "uid") else stored(of), 0))
    entries = [
        {"name": name, "state": state, "message": "", "lastTransitionTime": timestamp(NOW)}
        for name, state in checks.items()
    ]
    made["status"] = {"admissionChecks": entries} if entries else {}
    if quota:
        placed = [{"name": pod_set["name"], "count": pod_set["count"]} for pod_set in made["spec"]["podSets"]]
        made = statuses.reserved(made, CLUSTER_QUEUE_NAME, placed, NOW)
    if evicted:
        made = eviction.evicted(made, evicted, f"Evicted: {evicted}", NOW)
    if finished:
        made = statuses.finished(made, finished, f"Job finished: {finished}", NOW)
    chosen = {"nominatedClusterNames": list(nominated), "clusterName": cluster}
    made["status"].update({field: value for field, value in chosen.items() if value})
    return made


def copy_of(local: Json, *, cluster: str = "worker1", origin: str = ORIGIN, mark_key: bytes = b"") -> Json:
    """A worker's copy of a stored Workload, as the dispatcher has just created it.

    Args:
        local: the manager's Workload.
        cluster: the worker: a copy has a mark that counts on no other.
        origin: `PlanSettings.origin`.
        mark_key: `PlanSettings.mark_key`.
    """
    made = workload_copy(local, _stamp(local, cluster, origin, mark_key))
    return stored(made, uid=f"uid-of-copy-of-{local['metadata']['name']}")


def job_copy_of(
    kind: JobKind, of: Json, local: Json, *, cluster: str = "worker1", origin: str = ORIGIN, mark_key: bytes = b""
) -> Json:
    """A worker's copy of a job, as the dispatcher has just created it for the stored Workload `local`.

    Args:
        kind: of the job.
        of: the manager's job.
        local: the manager's Workload.
        cluster: the worker, as for `copy_of`.
        origin: `PlanSettings.origin`.
        mark_key: `PlanSettings.mark_key`.
    """
    made = kind.copy(of, _stamp(local, cluster, origin, mark_key))
    return stored(made, uid=f"uid-of-copy-of-{of['metadata']['name']}")


def _stamp(local: Json, cluster: str, origin: str, mark_key: bytes) -> Stamp:
    pod_sets = tuple(dig(local, "spec", "podSets") or ())
    mark = Marks(mark_key).of(local, attempt(local), cluster)
    return Stamp(origin, local["metadata"]["name"], mark, pod_sets=pod_sets)


def queues(cpu: str = "4", *, checked: bool = False) -> list[Json]:
    """A flavor, a ClusterQueue with so much CPU, and its LocalQueue; as users of the sandbox have them.

    Args:
        cpu: the quota.
        checked: whether MultiKueue's check guards the ClusterQueue, as on a manager; it comes along, active.
    """
    active = new_condition("Active", True, "Active", "The admission check is active", now=NOW)
    checks = [{**admission_check(), "status": {"conditions": [active]}}] if checked else []
    names = [check["metadata"]["name"] for check in checks]
    return [resource_flavor(), *checks, cluster_queue({"cpu": cpu}, names), local_queue()]


def workers(*names: str) -> list[Json]:
    """What tells a manager with `queues(checked=True)` of its workers: for each a MultiKueueCluster and its Secret, and
    the MultiKueueConfig that lists them. The kubeconfigs lead nowhere, so the manager must connect by name."""
    secrets = [kubeconfig_secret(name, _leading_nowhere(name)) for name in names]
    return [namespace(KUEUE_NAMESPACE), *secrets, *map(worker_cluster, names), config(names)]


def _leading_nowhere(name: str) -> Json:
    return kubeconfig(name=name, url=f"https://{name}.example.com", ca_pem=None, user=ORIGIN, token=f"{name}-token")


def contains(value: object, part: object) -> bool:
    """Whether everything in `part` is in `value`, where a server may have filled in more fields."""
    if isinstance(part, dict) and isinstance(value, dict):
        return all(key in value and contains(value[key], item) for key, item in part.items())
    if isinstance(part, list) and isinstance(value, list):
        return len(part) == len(value) and all(contains(*pair) for pair in zip(value, part, strict=True))
    return value == part
