"""Builders for the objects a decision looks at, so that a test reads as one row of a table.

The objects have the shape of those in a real manager and worker; what a test does not name has the value that makes
it the plain case: quota reserved, our check Pending, one pod set, a suspended Job delegated to us.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from multikueue.adapters import BUILTIN, JobKind, SafeAdapter
from multikueue.core.dispatchers.dispatcher import Candidate, Candidates
from multikueue.core.model.adapter import JobAdapter, Stamp
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.copies import workload_copy
from multikueue.core.model.kinds import JOB
from multikueue.core.model.labels import (
    ATTEMPT_ANNOTATION,
    COMPONENT_INDEX_ANNOTATION,
    CONTROLLER_NAME,
    COPY_OF_ANNOTATION,
    ELASTIC_ANNOTATION,
    FOREGROUND_FINALIZER,
    JOB_MARK_ANNOTATION,
    JOB_UID_LABEL,
    PREEMPTION_GATE,
    SLICE_REPLACEMENT_ANNOTATION,
    WORKLOAD_FINALIZER,
)
from multikueue.core.model.marks import Marks, mark_of
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import clone
from multikueue.core.model.workloads import attempt as attempt_of
from tests.core.door import NOW, SETTINGS, JobCopy, Snapshot, Worker

RESERVED_AT = timestamp(NOW - timedelta(minutes=30))
SUSPENDED: Json = {"type": "Suspended", "status": "True", "reason": "JobSuspended"}
LATELY = timestamp(NOW - timedelta(seconds=2))
"""When evictions and requests to stop were written: neither bound of a removal has passed."""
PLACED: list[Json] = [{"name": "main", "count": 1}]
NAMESPACE, NAME, JOB_NAME, CHECK = "team", "job-train-1a2b3", "train", "mk"
KEY = ObjectKey(NAMESPACE, NAME)
ADAPTER = next(kind for kind in BUILTIN if kind.resource == JOB)
EARLIER = "of an earlier attempt"
"""For `attempt=`: a copy that was made before the last eviction."""
SAID = "said before"
"""What our check says already: a Workload that waits without a word is told why; see `test_waiting.py`."""
MARKS_OF_JOBS = [("metadata", "annotations", name) for name in (JOB_MARK_ANNOTATION, COPY_OF_ANNOTATION)]
"""Where job copies have marks that Workload copies have not."""
_TO_BE_MARKED = "marked-for-its-worker"
"""How the mark of a copy begins until `marked_on` knows the worker."""
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


class WorkloadFacts(TypedDict, total=False):
    """What a test may say about the manager's Workload; see `workload`."""

    quota: bool
    """Whether quota is reserved."""
    reserved_at: str
    check: str | None
    """State of our check; None for a Workload without it."""
    other_checks: dict[str, str]
    """States of other checks by name."""
    cluster: str | None
    """`status.clusterName`."""
    nominated: tuple[str, ...]
    finished: str | None
    """Reason of a true Finished condition."""
    evicted: str | None
    """Message of a true Evicted condition."""
    admitted: bool
    """Whether all its checks were Ready, so that Kueue has started its job here."""
    evictions: int
    """How often it has been evicted so far."""
    deleting: bool
    """Whether somebody has deleted it."""
    owner: tuple[str, str] | None
    """apiVersion and kind of the job; None for no owner."""
    spec: Json
    """Fields of the spec in place of the plain ones."""
    name: str
    """Its name, if it is not the plain one's."""
    elastic: bool
    """Whether its job may change its size."""
    replaces: str | None
    """The name of the slice it replaces."""
    index: str | None
    """Its index in a group, as it is noted."""
    said: str
    """What our check says."""
    assignments: list[Json]
    """`status.admission.podSetAssignments`."""


def workload(**facts: Unpack[WorkloadFacts]) -> Json:
    """The manager's Workload: with quota, our check Pending, and the plain Job as owner unless told otherwise."""
    check, owner = facts.get("check", "Pending"), facts.get("owner", ("batch/v1", "Job"))
    deleting = facts.get("deleting", False)
    name = facts.get("name", NAME)
    metadata = _metadata(
        name, uid=f"uid-of-{name}" if "name" in facts else "uid-local", deleting=deleting, held=deleting
    )
    if annotations := dict(_annotations(facts)):
        metadata["annotations"] = annotations
    metadata["labels"] = {JOB_UID_LABEL: "uid-of-job"}
    if owner:
        reference = {"apiVersion": owner[0], "kind": owner[1], "name": JOB_NAME, "uid": "uid-of-job"}
        metadata["ownerReferences"] = [reference | {"controller": True}]
    checks = ({} if check is None else {CHECK: check}) | facts.get("other_checks", {})
    said = _said(facts)
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata,
        "spec": _plain_spec() | facts.get("spec", {}),
        "status": _status(facts) | {"admissionChecks": [_check(name, state, said) for name, state in checks.items()]},
    }


def _said(facts: WorkloadFacts) -> str:
    """What a check says: to whom it is offered, as after the write of that, or something that nobody asks about."""
    if "said" in facts:
        return facts["said"]
    waits = not any(facts.get(fact) for fact in ("cluster", "evicted", "finished")) and facts.get("check") != "Ready"
    return f"Offered to {', '.join(facts['nominated'])}" if waits and facts.get("nominated") else SAID


def _annotations(facts: WorkloadFacts) -> Iterator[tuple[str, str]]:
    if facts.get("elastic"):
        yield ELASTIC_ANNOTATION, "true"
    if replaced := facts.get("replaces"):
        yield SLICE_REPLACEMENT_ANNOTATION, f"{NAMESPACE}/{replaced}"
    if (index := facts.get("index")) is not None:
        yield COMPONENT_INDEX_ANNOTATION, index


def _status(facts: WorkloadFacts) -> Json:
    status: Json = {"conditions": []}
    if facts.get("quota", True):
        reserved = condition("QuotaReserved", "QuotaReserved", at=facts.get("reserved_at", RESERVED_AT))
        status["conditions"].append(reserved)
        status["admission"] = {"clusterQueue": "cq", "podSetAssignments": facts.get("assignments", PLACED)}
    if facts.get("admitted"):
        status["conditions"].append(condition("Admitted", "Admitted"))
    if reason := facts.get("finished"):
        status["conditions"].append(condition("Finished", reason))
    if message := facts.get("evicted"):
        status["conditions"].append(condition("Evicted", "Preempted", message=message, at=LATELY))
    if count := facts.get("evictions"):
        status["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": count}]}
    if cluster := facts.get("cluster"):
        status["clusterName"] = cluster
    if nominated := facts.get("nominated"):
        status["nominatedClusterNames"] = list(nominated)
    return status


class CopyFacts(TypedDict, total=False):
    """What a test may say about a Workload copy; see `copy_of`."""

    admitted: bool
    finished: str | None
    """Reason of a true Finished condition."""
    evicted: bool
    stopping: bool
    """Whether it carries DeactivationTarget."""
    attempt: str | None
    """EARLIER, UNMARKED, or None for the attempt of what it is a copy of."""
    deleting: bool
    held: bool
    """Whether Kueue's finalizer is on it."""
    spec: Json
    """What the worker changed in the spec."""
    said: str
    """What our check says."""
    assignments: list[Json]
    """`status.admission.podSetAssignments`."""
    owned: bool
    """Whether the worker's Kueue has found the job that belongs to it."""
    gate: str | None
    """Position of the gate it was made with; None for a copy without."""
    opened_at: str
    blocked: bool
    """Whether only preemption would let it in there."""
    uid: str


def copy_of(local: Json, **facts: Unpack[CopyFacts]) -> Json:
    """A worker's copy of the Workload `local`, as its Kueue has gone on with it: untouched unless told otherwise."""
    attempt = facts.get("attempt")
    made: Json = clone(workload_copy(local, stamp_of(local, attempt)))
    if attempt == UNMARKED:
        made["metadata"]["annotations"] = {}
    made["metadata"] |= _metadata(
        local["metadata"]["name"],
        uid=facts.get("uid", "uid-copy"),
        deleting=facts.get("deleting", False),
        held=facts.get("held", False),
    )
    if facts.get("owned"):
        made["metadata"]["labels"][JOB_UID_LABEL] = "uid-job-copy"
    made["spec"] |= facts.get("spec", {})
    made["status"] = {"conditions": list(_copy_conditions(facts))}
    if facts.get("admitted"):
        made["status"]["admission"] = {"clusterQueue": "cq-of-worker"}
        if assignments := facts.get("assignments"):
            made["status"]["admission"]["podSetAssignments"] = assignments
    if position := facts.get("gate"):
        made["spec"]["preemptionGates"] = [{"name": PREEMPTION_GATE}]
        entry = {
            "name": PREEMPTION_GATE,
            "position": position,
            "lastTransitionTime": facts.get("opened_at", RESERVED_AT),
        }
        made["status"]["preemptionGates"] = [entry]
    return made


def _copy_conditions(facts: CopyFacts) -> Iterator[Json]:
    if facts.get("admitted"):
        yield condition("QuotaReserved", "QuotaReserved")
        yield condition("Admitted", "Admitted")
    if reason := facts.get("finished"):
        yield condition("Finished", reason, message=f"Finished: {reason}")
    if facts.get("evicted"):
        yield condition("Evicted", "Preempted")
    if facts.get("blocked"):
        yield condition("BlockedOnPreemptionGates", "PreemptionGated")
    if facts.get("stopping"):
        yield condition("DeactivationTarget", "EvictedOnManagerCluster", at=LATELY)


def job(
    *,
    suspended: bool = True,
    managed_by: str | None = CONTROLLER_NAME,
    status: Json | None = None,
    elastic: bool = False,
    parallelism: int = 1,
    generation: int = 1,
) -> Json:
    """The manager's Job, as its API server has filled it in."""
    labels = {"app": "train", "job-name": JOB_NAME, "controller-uid": "uid-of-job"}
    labels["batch.kubernetes.io/controller-uid"] = "uid-of-job"
    spec: Json = {
        "suspend": suspended,
        "parallelism": parallelism,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-of-job"}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    if managed_by is not None:
        spec["managedBy"] = managed_by
    metadata = _metadata(JOB_NAME, uid="uid-of-job") | {"labels": {"kueue.x-k8s.io/queue-name": "lq"}}
    metadata["generation"] = generation
    if elastic:
        metadata["annotations"] = {ELASTIC_ANNOTATION: "true"}
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
    of: Json | None = None,
) -> Json:
    """A worker's copy of the Job `of` for the Workload `local`; `attempt` as for `copy_of`."""
    made = ADAPTER.copy(of or job(), stamp_of(local, attempt, of or job()))
    if attempt == UNMARKED:
        for mark in (ATTEMPT_ANNOTATION, JOB_MARK_ANNOTATION, COPY_OF_ANNOTATION):
            made["metadata"]["annotations"].pop(mark)
    made["metadata"] |= _metadata(name, uid=uid, deleting=deleting)
    if deleting:
        made["metadata"]["finalizers"].append(FOREGROUND_FINALIZER)
    made["spec"]["suspend"] = suspended
    made["status"] = {"active": 1} if status is None else status
    return made


def worker(name: str, workload: Json | None = None, *jobs: Json, shared: Json | None = None, **facts: Any) -> Worker:
    """One worker and what lies there: `shared` is a job of the same owner; `facts` are fields of `Worker`."""
    others = () if shared is None else (JobCopy(JOB, marked_on(name, shared)),)
    own = tuple(JobCopy(JOB, marked_on(name, job)) for job in jobs)
    copied = None if workload is None else marked_on(name, workload)
    return Worker(ClusterName(name), copy=copied, jobs=own, shared=others, **facts)


def mark_on(cluster: str, local: Json) -> str:
    """The mark of the copies of `local` on a worker."""
    return Marks(SETTINGS.mark_key).of(local, attempt_of(local), cluster)


def marked_on(cluster: str, copied: Json) -> Json:
    """What `copy_of` or `job_copy_of` has made, with the mark of this worker; anything else as it is."""
    mark = mark_of(copied) if isinstance(copied["metadata"].get("annotations"), dict) else ""
    if not mark.startswith(_TO_BE_MARKED):
        return copied
    _, uid, attempt = mark.split()
    marks, local = Marks(SETTINGS.mark_key), {"metadata": {"uid": uid}}
    annotations = {**copied["metadata"]["annotations"], ATTEMPT_ANNOTATION: marks.of(local, attempt, cluster)}
    if JOB_MARK_ANNOTATION in annotations:
        annotations[JOB_MARK_ANNOTATION] = marks.of_job(local, cluster)
    if (made_of := str(annotations.get(COPY_OF_ANNOTATION))).startswith(_TO_BE_MARKED):
        made_of = made_of.removeprefix(_TO_BE_MARKED).strip()
        annotations[COPY_OF_ANNOTATION] = marks.of_copy({"metadata": {"uid": made_of}}, cluster)
    return {**copied, "metadata": {**copied["metadata"], "annotations": annotations}}


def snapshot(
    local: Json | None,
    *workers: Worker,
    job: Json | None = None,
    check: str | None = CHECK,
    adapter: JobKind | JobAdapter | None = ADAPTER,
    **facts: Any,
) -> Snapshot:
    """What the caches show; without `job` the plain one, `job={}` for a job that cannot be seen yet."""
    seen = _PLAIN_JOB if job is None else job
    jobs = {JOB_NAME: copy.deepcopy(seen)} if seen else {}
    key = KEY if local is None else ObjectKey.of(local)
    safe = SafeAdapter(adapter) if isinstance(adapter, JobKind) else adapter
    return Snapshot(key, local, check=check, adapter=safe, jobs=jobs, workers=workers, **facts)


def stamp_of(local: Json, attempt: str | None = None, made_of: Json | None = None) -> Stamp:
    """How a copy of `local`, or of the job `made_of`, is marked that `marked_on` is to mark for its worker.

    Args:
        local: the manager's Workload.
        attempt: as for `copy_of`.
        made_of: the manager's job; None: a Workload copy.
    """
    origin, name, present = SETTINGS.origin, local["metadata"]["name"], attempt_of(local)
    if attempt == EARLIER:
        return Stamp(origin, name, "0123456789abcdef")
    mark = f"{_TO_BE_MARKED} {local['metadata']['uid']} {present}"
    of_job = "" if made_of is None else f"{_TO_BE_MARKED} {made_of['metadata']['uid']}"
    return Stamp(origin, name, mark, job_mark=_TO_BE_MARKED, copy_of=of_job)


def _metadata(name: str, *, uid: str, deleting: bool = False, held: bool = False) -> Json:
    metadata: Json = {"name": name, "namespace": NAMESPACE, "uid": uid, "resourceVersion": f"rv-{uid}"}
    if deleting:
        metadata["deletionTimestamp"] = timestamp(NOW)
        metadata["finalizers"] = ["example.com/slow"]
    if held:
        metadata["finalizers"] = [*metadata.get("finalizers", []), WORKLOAD_FINALIZER]
    return metadata


def _check(name: str, state: str, message: str) -> Json:
    return {"name": name, "state": state, "message": message, "lastTransitionTime": RESERVED_AT}


def _plain_spec() -> Json:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "active": True,
        "priority": 0,
        "queueName": "lq",
        "podSets": [{"name": "main", "count": 1, "template": template}],
    }


_PLAIN_JOB = job()


def candidates(
    configured: Sequence[str],
    available: Collection[str] | None = None,
    nominated: Sequence[str] = (),
    *,
    awaited: Collection[str] = (),
    message: str = "",
) -> Candidates:
    """What a dispatcher is shown: these workers, all of them available unless told otherwise."""
    workers = tuple(
        Candidate(
            ClusterName(name),
            available=available is None or name in available,
            nominated=name in nominated,
            awaited=name in awaited,
        )
        for name in configured
    )
    return Candidates(workers, tuple(nominated), message)
