"""What the API shows, made of the same reports as the commands print. Pure.

Times, never durations: an object that has not changed is the same a minute later.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from multikueue.core.dispatchers.scored.score import COST
from multikueue.core.model import workloads
from multikueue.core.model.conditions import changed_at, timestamp
from multikueue.core.model.cordon import cordon_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of, uid
from multikueue.core.workload.check_message import without_addresses
from multikueued.commands.structured import plain
from multikueued.logserver.answers import GROUP, REMOTE_JOB, VERSION
from multikueued.reports.answers import placements
from multikueued.reports.jobs import WAITING_STATES, JobReport, job_report
from multikueued.reports.next_steps import next_steps
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.queues import QueueReport, queue_reports
from multikueued.reports.status import about
from multikueued.reports.typenames import type_name
from multikueued.reports.worker_answers import ask_workers
from multikueued.reports.workers import WorkerReport, worker_reports

API_VERSION: Final = f"{GROUP}/{VERSION}"
HOUR: Final = timedelta(hours=1)
COLUMNS: Final = (
    ("Name", "string", 0, "TYPE.NAME of the job."),
    ("State", "string", 0, "Where it is on its way."),
    ("Cluster", "string", 0, "The worker that has it."),
    ("Since", "date", 0, "Since when it is in this state."),
    ("Queue", "string", 1, "Its LocalQueue."),
    ("Reason", "string", 1, "Why it is in this state."),
)
"""Of a Table: name, type, priority (1: only with -o wide), description."""


def api_name(workload: Json) -> str:
    """`TYPE.NAME`; a TYPE that needs its group has it behind a dash, dashed: `job-batch-volcano-sh.train`."""
    kind, _, name = type_name(workload).partition("/")
    return f"{kind.replace('.', '-')}.{name}"


def one_for_each_job(found: Iterable[Json]) -> dict[ObjectKey, Json]:
    """Of the Workloads of one job the one that counts: not ended, then newest. By namespace and API name."""
    chosen: dict[ObjectKey, Json] = {}
    for workload in sorted(found, key=_counts):
        chosen[ObjectKey(ObjectKey.of(workload).namespace, api_name(workload))] = workload
    return chosen


def _counts(workload: Json) -> tuple[bool, str, str]:
    created = str(dig(workload, "metadata", "creationTimestamp") or "")
    return not workloads.is_finished(workload), created, name_of(workload)


def remote_job(workload: Json, objects: ManagerObjects, version: str, now: datetime) -> Json:
    """A job as the API has it.

    Args:
        workload: the one that counts of the job's.
        objects: of the manager; without Workloads.
        version: the manager's resourceVersion of the event that changed it.
        now: the wall clock; no time that passes is in the object.
    """
    job = job_report(workload, objects)
    # Of these alone a change makes the job anew.
    about = {job.worker, *job.offered_to}
    answers = [one for one in ask_workers(workload, job, objects, (), now) if one.worker in about]
    metadata = {
        "name": api_name(workload),
        "namespace": job.namespace,
        "uid": uid(workload),
        "resourceVersion": version,
    }
    if job.created is not None:
        metadata["creationTimestamp"] = timestamp(job.created)
    status = {
        "job": job.job,
        "state": job.state.value,
        "cluster": job.worker,
        "offeredTo": list(job.offered_to),
        "queue": job.queue,
        "clusterQueue": job.cluster_queue,
        "workload": job.workload,
        "since": _time(job.since),
        "reason": job.reason,
        "next": plain(next_steps(workload, job, answers, (), objects)),
        "placements": [
            {"cluster": one.worker, "since": _time(one.since), "until": _time(one.until), "reason": one.why}
            for one in placements(workload)
        ],
    }
    kept = {field: value for field, value in status.items() if value not in (None, "", [])}
    told = for_tenants(kept)
    return {"apiVersion": API_VERSION, "kind": REMOTE_JOB.gvk.kind, "metadata": metadata, "status": told}


def for_tenants(told: Any) -> Any:
    """A report without the addresses of workers, which conditions of MultiKueueClusters may quote."""
    match told:
        case str():
            return without_addresses(told)
        case dict():
            return {field: for_tenants(value) for field, value in told.items()}
        case list():
            return [for_tenants(value) for value in told]
    return told


def _time(at: datetime | None) -> str | None:
    return timestamp(at) if at is not None else None


def table(items: Iterable[Json], metadata: Json) -> Json:
    """Jobs as kubectl prints them."""
    columns = [
        {"name": name, "type": kind, "format": "name" * (name == "Name"), "priority": priority, "description": about}
        for name, kind, priority, about in COLUMNS
    ]
    rows = [{"cells": _cells(one), "object": _metadata_only(one)} for one in items]
    named = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return {**named, "columnDefinitions": columns, "rows": rows}


def _cells(one: Json) -> list[Any]:
    status = one["status"]
    values = (
        status.get("state"),
        status.get("cluster"),
        status.get("since"),
        status.get("queue"),
        status.get("reason"),
    )
    return [one["metadata"]["name"], *(value or "" for value in values)]


def _metadata_only(one: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": one["metadata"]}


def fleet(objects: ManagerObjects, now: datetime, daemon_namespace: str) -> Json:
    """The workers, the queues, and the moves that Workloads still note; no address.

    Args:
        objects: of the manager.
        now: the wall clock.
        daemon_namespace: where the daemon has its Secrets, for remedies.
    """
    jobs = tuple(job_report(one, objects) for one in objects.dispatched)
    status = {
        "workers": [_worker(one, objects, daemon_namespace) for one in worker_reports(objects, jobs)],
        "queues": [_queue(one, objects, jobs, now) for one in queue_reports(objects, jobs)],
        "moves": list(_moves(objects)),
    }
    told = for_tenants(status)
    return {"apiVersion": API_VERSION, "kind": "Fleet", "metadata": {"name": "fleet"}, "status": told}


def _worker(report: WorkerReport, objects: ManagerObjects, daemon_namespace: str) -> Json:
    cluster = objects.clusters_by_name.get(report.name) or {}
    published = objects.published.get(report.name)
    kueue = published.facts.kueue if published is not None else None
    queues = published.facts.queues if published is not None else None
    pending = (
        sum(int(dig(one, "status", "pendingWorkloads") or 0) for one in queues.cluster.values()) if queues else None
    )
    found = {
        "name": report.name,
        "state": report.state,
        "reachable": report.state in ("Connected", "Degraded"),
        "since": _time(report.since),
        "cordoned": report.cordoned,
        "reason": cordon_of(annotations_of(cluster)) if report.cordoned else "",
        "running": report.running,
        "ownBacklog": report.waiting,
        "othersBacklog": max(0, pending - report.waiting) if pending is not None else None,
        "quota": [
            {
                "resource": name,
                "used": report.quota.used.get(name, "0"),
                "nominal": total,
                "flavors": [
                    {"name": one.flavor, "used": one.used, "nominal": one.total}
                    for one in report.quota.flavors
                    if one.resource == name
                ],
            }
            for name, total in sorted(report.quota.total.items())
        ],
        "readAt": _time(report.quota.at),
        "notChecked": report.quota.not_checked,
        "findings": [
            {"id": one.id, "why": one.why, "remedy": one.remedy, "blocking": one.blocking}
            for one in about(report, objects, daemon_namespace)
        ],
        "kueueVersion": str(kueue.version) if kueue is not None and kueue.version is not None else "",
        "cost": annotations_of(cluster).get(COST, ""),
    }
    return {field: value for field, value in found.items() if value not in (None, "", [])}


def _queue(report: QueueReport, objects: ManagerObjects, jobs: Sequence[JobReport], now: datetime) -> Json:
    waiting = [job.created for job in jobs if job.cluster_queue == report.name and job.state in WAITING_STATES]
    oldest = min((one for one in waiting if one is not None), default=None)
    ended = (one for one in objects.dispatched if workloads.cluster_queue(one) == report.name)
    times = (changed_at(one, "Finished") for one in ended)
    found = {
        "name": report.name,
        "waiting": report.queued + report.waiting,
        "running": report.running,
        "oldestWaiting": _time(oldest),
        "endedLastHour": sum(at is not None and now - at <= HOUR for at in times),
        "used": dict(report.used),
        "nominal": dict(report.total),
    }
    return {field: value for field, value in found.items() if value is not None}


def _moves(objects: ManagerObjects) -> Iterator[Json]:
    for workload in objects.dispatched:
        places = placements(workload)
        for one, after in itertools.zip_longest(places, places[1:]):
            if one.until is not None and not (after is None and workloads.is_finished(workload)):
                at = {"namespace": ObjectKey.of(workload).namespace, "job": type_name(workload), "from": one.worker}
                to = after.worker if after is not None else ""
                yield at | {"to": to, "at": _time(one.until), "reason": one.why}
