"""One line about each worker: whether it is connected, what runs and waits there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

import attrs

from multikueue.core.machinery.connection import CREDENTIALS, FROM_KUBECONFIG
from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueued.reports.cluster_answers import WorkerState
from multikueued.reports.jobs import RUNNING_STATES, JobReport, job_report
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.quotas import WorkerQuota, amounts, held, quota_of


@attrs.frozen
class WorkerReport:
    """One worker."""

    name: str
    state: WorkerState
    """`Connected`, `Degraded` (a kind cannot be used there), `Lost`, `NotConnected` (never was, or its kubeconfig is
    refused), `Missing` (a MultiKueueConfig lists it, and there is no such MultiKueueCluster)."""
    cordoned: bool = False
    since: datetime | None = None
    """Since when it is connected, or not."""
    running: int = 0
    """Jobs that have it recorded."""
    waiting: int = 0
    """Jobs that are offered to it."""
    used: Mapping[str, str] = attrs.field(factory=dict)
    """What the jobs that run there have reserved on the manager, by resource."""
    quota: WorkerQuota = attrs.field(factory=WorkerQuota)
    """What the worker has for jobs from here, as the daemon saw it."""
    error: str = ""
    """Why it is not connected, or not usable for some kind."""
    cause: str = ""
    """What is wrong, as `SecretMissing` or `NoAnswer`; empty: nothing, or the words alone tell."""
    attempts: int = 0
    next_attempt: datetime | None = None
    checks: tuple[str, ...] = ()
    """The AdmissionChecks that lead to it; empty: no MultiKueueConfig lists it."""
    cordon: str = ""
    """Why it is cordoned, or held as another name of a cluster; empty: it is not."""
    same_as: tuple[str, ...] = ()
    """The other workers that lead to the same cluster: the first of them gets what is new."""


def worker_reports(objects: ManagerObjects, jobs: Iterable[JobReport] | None = None) -> tuple[WorkerReport, ...]:
    """All workers: MultiKueueClusters, and those that a config lists without there being one.

    Args:
        objects: of the manager.
        jobs: the jobs, if they are known already.
    """
    known = tuple(map(job_report, objects.chains)) if jobs is None else tuple(jobs)
    running = Counter(job.worker for job in known if job.state in RUNNING_STATES)
    waiting = Counter(name for job in known if not job.worker for name in job.offered_to)
    used = _used(objects)
    checks = {check: objects.workers_of(check) for check in sorted(objects.our_checks)}
    names = {*objects.clusters_by_name, *(name for listed in checks.values() for name in listed)}
    return tuple(
        attrs.evolve(
            _connection(name, objects),
            running=running[name],
            waiting=waiting[name],
            used=used.get(name, {}),
            quota=quota_of(
                objects.published.get(name),
                map(objects.names_on(name).local_queue, objects.local_queues_for.get(name, ())),
            ),
            checks=tuple(check for check, listed in checks.items() if name in listed),
        )
        for name in sorted(names)
    )


def _connection(name: str, objects: ManagerObjects) -> WorkerReport:
    """What its MultiKueueCluster says of a worker."""
    said = objects.said_of(name)
    if said.state is WorkerState.MISSING:
        error = f'a MultiKueueConfig lists "{name}", and there is no MultiKueueCluster of that name'
        return WorkerReport(name, WorkerState.MISSING, error=error)
    flaws = "; ".join(f"{kind}: {why}" for kind, why in said.unusable.items())
    return WorkerReport(
        name=name,
        state=said.state,
        cordoned=bool(said.hold),
        since=said.since,
        error=said.error or flaws,
        cause=said.cause or next(filter(None, said.causes.values()), ""),
        attempts=said.failures,
        next_attempt=said.next_attempt,
        cordon=said.hold,
        same_as=said.same_as,
    )


def _used(objects: ManagerObjects) -> dict[str, dict[str, str]]:
    """What the Workloads with a recorded worker hold of the manager's quota, by worker and resource."""
    used: dict[str, Counter[str]] = {}
    for workload in objects.dispatched:
        worker = workloads.cluster_name(workload)
        if worker is not None and workloads.is_live(workload):
            used.setdefault(worker, Counter()).update(reserved(workload))
    return {worker: amounts(counted) for worker, counted in used.items()}


def reserved(workload: Json) -> Counter[str]:
    """What a Workload holds of the manager's quota, in thousandths by resource."""
    return held(dig(workload, "status", "admission", "podSetAssignments"), "resourceUsage")


def digest_in_use(cluster: Json) -> str:
    """The digest of the kubeconfig that the daemon uses; empty if it does not say."""
    credentials = condition(cluster, CREDENTIALS) or {}
    return str(credentials.get("message") or "") if credentials.get("reason") == FROM_KUBECONFIG else ""
