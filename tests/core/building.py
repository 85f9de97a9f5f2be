"""Builders for the objects a decision looks at, so that a test reads as one row of a table.

The objects have the shape of those in a real manager and worker; what a test does not name has the value that makes
it the plain case: quota reserved, our check Pending, one pod set, a suspended Job delegated to us.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from multikueue.adapters import BUILTIN
from multikueue.core.adapter import JobAdapter, Stamp
from multikueue.core.conditions import timestamp
from multikueue.core.copies import workload_copy
from multikueue.core.dispatch import AllAtOnce, Dispatcher
from multikueue.core.effects import Plan
from multikueue.core.kinds import JOB
from multikueue.core.labels import ATTEMPT_ANNOTATION, CONTROLLER_NAME, JOB_UID_LABEL, WORKLOAD_FINALIZER
from multikueue.core.names import ClusterName, Json, ObjectKey
from multikueue.core.plan import plan
from multikueue.core.snapshot import JobCopy, PlanSettings, Snapshot, Worker
from multikueue.core.workloads import attempt as attempt_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RESERVED_AT = timestamp(NOW - timedelta(minutes=30))
NAMESPACE, NAME, JOB_NAME, CHECK = "team", "job-train-1a2b3", "train", "mk"
KEY = ObjectKey(NAMESPACE, NAME)
SETTINGS = PlanSettings()
ADAPTER = next(kind for kind in BUILTIN if kind.resource == JOB)
EARLIER = "of an earlier attempt"
"""For `attempt=`: a copy that was made before the last eviction."""
UNMARKED = "unmarked"
"""For `attempt=`: a copy made by Kueue's own controller, which does not note attempts."""


def condition(
    kind: str, reason: str = "Test", *, status: bool = True, message: str = "", at: str = RESERVED_AT
) -> Json:
    """A condition as Kueue writes it."""
    return {
        "type": kind,
        "status": "True" if status else "False",
        "reason": reason,
        "message": message or f"{kind} {reason}",
        "lastTransitionTime": at,
        "observedGeneration": 1,
    }


def workload(
    *,
    quota: bool = True,
    reserved_at: str = RESERVED_AT,
    check: str | None = "Pending",
    other_checks: dict[str, str] | None = None,
    cluster: str | None = None,
    nominated: tuple[str, ...] = (),
    finished: str | None = None,
    evicted: str | None = None,
    evictions: int = 0,
    deleting: bool = False,
    owner: tuple[str, str] | None = ("batch/v1", "Job"),
    spec: Json | None = None,
) -> Json:
    """The manager's Workload.

    Args:
        quota: whether quota is reserved, at `reserved_at`.
        check: state of our check; None for a Workload without it.
        other_checks: states of other checks by name.
        cluster: `status.clusterName`.
        nominated: `status.nominatedClusterNames`.
        finished: reason of a true Finished condition.
        evicted: message of a true Evicted condition.
        evictions: how often it has been evicted so far.
        deleting: whether somebody has deleted it.
        owner: apiVersion and kind of the job; None for no owner.
        spec: fields of the spec in place of the plain ones.
    """
    status: Json = {"conditions": [], "admissionChecks": []}
    if quota:
        status["conditions"].append(condition("QuotaReserved", "QuotaReserved", at=reserved_at))
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": 1}]}
    if check is not None:
        status["admissionChecks"].append(_check(CHECK, check))
    status["admissionChecks"] += [_check(name, state) for name, state in (other_checks or {}).items()]
    if finished:
        status["conditions"].append(condition("Finished", finished))
    if evicted:
        status["conditions"].append(condition("Evicted", "Preempted", message=evicted))
    if evictions:
        status["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": evictions}]}
    if cluster:
        status["clusterName"] = cluster
    if nominated:
        status["nominatedClusterNames"] = list(nominated)
    metadata = _metadata(NAME, uid="uid-local", deleting=deleting, held=deleting)
    metadata["labels"] = {JOB_UID_LABEL: "uid-of-job"}
    if owner:
        reference = {
            "apiVersion": owner[0],
            "kind": owner[1],
            "name": JOB_NAME,
            "uid": "uid-of-job",
            "controller": True,
        }
        metadata["ownerReferences"] = [reference]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {**_plain_spec(), **(spec or {})},
        "status": status,
    }


def copy_of(
    local: Json,
    *,
    admitted: bool = False,
    finished: str | None = None,
    evicted: bool = False,
    stopping: bool = False,
    attempt: str | None = None,
    deleting: bool = False,
    held: bool = False,
    spec: Json | None = None,
    uid: str = "uid-copy",
) -> Json:
    """A worker's copy of a Workload, as its Kueue has gone on with it.

    Args:
        local: what it is a copy of; it is of that one's attempt unless `attempt` says otherwise.
        admitted: whether the worker admitted it.
        finished: reason of a true Finished condition.
        evicted: whether the worker evicted it.
        stopping: whether it carries DeactivationTarget.
        attempt: EARLIER, UNMARKED or None.
        deleting: whether it is being deleted.
        held: whether Kueue's finalizer is on it.
        spec: what the worker changed in the spec.
        uid: its UID on the worker.
    """
    made = workload_copy(local, _stamp(local, attempt))
    if attempt == UNMARKED:
        made["metadata"]["annotations"] = {}
    made["metadata"] |= _metadata(NAME, uid=uid, deleting=deleting, held=held)
    made["spec"] |= spec or {}
    told = [condition("QuotaReserved", "QuotaReserved")] if admitted else []
    told += [condition("Admitted", "Admitted")] if admitted else []
    told += [condition("Finished", finished, message=f"Finished: {finished}")] if finished else []
    told += [condition("Evicted", "Preempted")] if evicted else []
    told += [condition("DeactivationTarget", "EvictedOnManagerCluster")] if stopping else []
    made["status"] = {"conditions": told}
    if admitted:
        made["status"]["admission"] = {"clusterQueue": "cq-of-worker"}
    return made


def job(*, suspended: bool = True, managed_by: str | None = CONTROLLER_NAME, status: Json | None = None) -> Json:
    """The manager's Job, as its API server has filled it in."""
    labels = {"app": "train", "job-name": JOB_NAME, "controller-uid": "uid-of-job"}
    labels["batch.kubernetes.io/controller-uid"] = "uid-of-job"
    spec: Json = {
        "suspend": suspended,
        "parallelism": 1,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-of-job"}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    if managed_by is not None:
        spec["managedBy"] = managed_by
    metadata = _metadata(JOB_NAME, uid="uid-of-job") | {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status or {}}


def job_copy_of(
    local: Json,
    *,
    suspended: bool = False,
    status: Json | None = None,
    attempt: str | None = None,
    deleting: bool = False,
    name: str = JOB_NAME,
    uid: str = "uid-job-copy",
) -> Json:
    """A worker's copy of the Job for the Workload `local`; arguments as for `copy_of`."""
    made = ADAPTER.copy(job(), _stamp(local, attempt))
    if attempt == UNMARKED:
        made["metadata"]["annotations"].pop(ATTEMPT_ANNOTATION)
    made["metadata"] |= _metadata(name, uid=uid, deleting=deleting)
    made["spec"]["suspend"] = suspended
    made["status"] = {"active": 1} if status is None else status
    return made


def worker(name: str, workload: Json | None = None, *jobs: Json, **facts: Any) -> Worker:
    """One worker and what lies there; `facts` are fields of `Worker`."""
    return Worker(ClusterName(name), workload=workload, jobs=tuple(JobCopy(JOB, one) for one in jobs), **facts)


def snapshot(
    local: Json | None,
    *workers: Worker,
    job: Json | None = None,
    check: str | None = CHECK,
    adapter: JobAdapter | None = ADAPTER,
    **facts: Any,
) -> Snapshot:
    """What the caches show; without `job` the plain one, `job={}` for a job that cannot be seen yet."""
    seen = _PLAIN_JOB if job is None else job
    jobs = {JOB_NAME: copy.deepcopy(seen)} if seen else {}
    return Snapshot(KEY, local, check=check, adapter=adapter, jobs=jobs, workers=workers, **facts)


def decide(seen: Snapshot, dispatcher: Dispatcher | None = None, settings: PlanSettings = SETTINGS) -> Plan:
    """`plan()` with the plain settings at `NOW`."""
    return plan(seen, NOW, settings, dispatcher or AllAtOnce())


def _stamp(local: Json, attempt: str | None) -> Stamp:
    return Stamp(SETTINGS.origin, NAME, "0123456789abcdef" if attempt == EARLIER else attempt_of(local))


def _metadata(name: str, *, uid: str, deleting: bool = False, held: bool = False) -> Json:
    metadata: Json = {"name": name, "namespace": NAMESPACE, "uid": uid, "resourceVersion": f"rv-{uid}"}
    if deleting:
        metadata["deletionTimestamp"] = timestamp(NOW)
        metadata["finalizers"] = ["example.com/slow"]
    if held:
        metadata["finalizers"] = [*metadata.get("finalizers", []), WORKLOAD_FINALIZER]
    return metadata


def _check(name: str, state: str) -> Json:
    return {"name": name, "state": state, "message": "", "lastTransitionTime": RESERVED_AT}


def _plain_spec() -> Json:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "active": True,
        "priority": 0,
        "queueName": "lq",
        "podSets": [{"name": "main", "count": 1, "template": template}],
    }


_PLAIN_JOB = job()
