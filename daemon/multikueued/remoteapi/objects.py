"""What the API shows, made of the same reports as the commands print. Pure.

Times, never durations: an object that has not changed is the same a minute later.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from multikueue.core.dispatchers.scored.score import COST
from multikueue.core.model import workloads
from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, dig, name_of, uid
from multikueue.core.model.outside_text import without_addresses
from multikueued.api_answers import GROUP, REMOTE_JOB, VERSION
from multikueued.diagnosis.fleet import fleet_findings
from multikueued.reading.structured import plain
from multikueued.reading.through_api import report_of
from multikueued.remoteapi.discovery import JOB_STATUS
from multikueued.remoteapi.shares import Share, Shares, holdings, shares_of
from multikueued.reports.cluster_answers import WorkerState
from multikueued.reports.explanation import next_steps
from multikueued.reports.jobs import ENDED_STATES, WAITING_STATES, job_report, placements
from multikueued.reports.objects import ManagerObjects
from multikueued.reports.queues import QueueReport, queue_reports
from multikueued.reports.remedies.remedy import Finding
from multikueued.reports.remedies.trouble import taken_away
from multikueued.reports.typenames import type_name
from multikueued.reports.worker_answers import ask_workers
from multikueued.reports.workers import WorkerReport, worker_reports

API_VERSION: Final = f"{GROUP}/{VERSION}"
HOUR: Final = timedelta(hours=1)
COLUMNS: Final = {"state": 0, "cluster": 0, "since": 0, "queue": 1, "reason": 1}
"""Of a Table, beside the name: fields of the status, and their priority (1: only with -o wide)."""


def api_name(workload: Json) -> str:
    """`TYPE.NAME`; a TYPE that needs its group has it behind a dash, dashed: `job-batch-volcano-sh.train`."""
    kind, _, name = type_name(workload).partition("/")
    return f"{kind.replace('.', '-')}.{name}"


def counts(workload: Json) -> tuple[bool, str, str]:
    """Of the Workloads of one job the greatest counts: not ended, then newest."""
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
    chain = objects.chain(workload)
    job = job_report(chain)
    # Of these alone a change makes the job anew.
    about = {job.worker, *job.offered_to}
    answers = [answer for answer in ask_workers(chain, job, (), now) if answer.worker in about]
    metadata = {"name": api_name(workload), "namespace": job.namespace, "uid": uid(workload)}
    if job.created is not None:
        metadata["creationTimestamp"] = timestamp(job.created)
    status = _known(
        {
            "job": job.job,
            "state": job.state,
            "cluster": job.worker,
            "offeredTo": job.offered_to,
            "queue": job.queue,
            "clusterQueue": job.cluster_queue,
            "workload": job.workload,
            "since": job.since,
            "reason": job.reason,
            "next": tuple(next_steps(chain, job, answers)),
            "placements": [
                {
                    "cluster": placement.worker,
                    "since": placement.since,
                    "until": placement.until,
                    "reason": placement.why,
                }
                for placement in placements(workload)
            ],
        }
    )
    metadata["resourceVersion"] = version
    return {"apiVersion": API_VERSION, "kind": REMOTE_JOB.gvk.kind, "metadata": metadata, "status": status}


def _known(fields: Json) -> Json:
    """As tenants are told it: what is empty is left out."""
    return {field: value for field, value in for_tenants(plain(fields)).items() if value not in (None, "", [])}


def for_tenants(value: Any) -> Any:
    """A report without the addresses of workers, which conditions of MultiKueueClusters may quote."""
    match value:
        case str():
            return without_addresses(value)
        case dict():
            return {field: for_tenants(item) for field, item in value.items()}
        case list():
            return [for_tenants(item) for item in value]
    return value


def table(items: Iterable[Json], metadata: Json) -> Json:
    """Jobs as kubectl prints them."""
    name = {"name": "Name", "type": "string", "format": "name", "priority": 0, "description": "TYPE.NAME of the job."}
    columns = [name]
    for field, priority in COLUMNS.items():
        about = {"description": JOB_STATUS[field]["description"], "format": "", "priority": priority}
        columns.append({"name": field.capitalize(), "type": "date" if field == "since" else "string", **about})
    rows = [
        {
            "cells": [job["metadata"]["name"], *(job["status"].get(field, "") for field in COLUMNS)],
            "object": {**_META, "kind": "PartialObjectMetadata", "metadata": job["metadata"]},
        }
        for job in items
    ]
    return {**_META, "kind": "Table", "metadata": metadata, "columnDefinitions": columns, "rows": rows}


_META: Final[Json] = {"apiVersion": "meta.k8s.io/v1"}


def fleet(
    objects: ManagerObjects,
    jobs: Collection[Json],
    now: datetime,
    not_checked: Sequence[str] = (),
) -> Json:
    """The workers, the queues, and the moves that jobs still note; no address.

    Args:
        objects: of the manager.
        jobs: as the API has them: to read Workloads again would take ten times as long.
        now: the wall clock.
        not_checked: what may not be read.
    """
    reports, context = list(map(report_of, jobs)), without_workloads(objects)
    workers, findings = worker_reports(context, reports), fleet_findings(context, now)
    shares = shares_of(workers, objects.workloads)
    status: Json = {
        "workers": [_worker(worker, shares.get(worker.name, {}), context, findings) for worker in workers],
        "queues": [_queue(queue, jobs, now) for queue in queue_reports(context, reports)],
        "moves": list(_moves(jobs)),
    }
    status |= {"notChecked": "; ".join(not_checked)} if not_checked else {}
    return {"apiVersion": API_VERSION, "kind": "Fleet", "metadata": {"name": "fleet"}, "status": for_tenants(status)}


def without_workloads(objects: ManagerObjects) -> ManagerObjects:
    """For what needs none: they are many. Where something may not be read, they name it."""
    return objects if objects.unread else attrs.evolve(objects, workloads=())


def with_jobs_taken_away(objects: ManagerObjects) -> ManagerObjects:
    """With the Workloads alone whose worker somebody takes away: what else is wrong with a fleet needs none."""
    if objects.unread:
        return objects
    taken = (name for name in objects.jobs_by_worker if taken_away(name, objects) is not None)
    return attrs.evolve(
        objects, workloads=tuple(workload for name in taken for workload in objects.jobs_by_worker[name])
    )


def _worker(report: WorkerReport, shares: Shares, objects: ManagerObjects, findings: Iterable[Finding]) -> Json:
    published, quota = objects.published.get(report.name), report.quota
    kueue, queues = (published.facts.kueue, published.facts.queues) if published is not None else (None, None)
    others, read = None, MULTIKUEUE_CLUSTER not in objects.unread
    if queues is not None:
        pending = sum(int(dig(queue, "status", "pendingWorkloads") or 0) for queue in queues.cluster.values())
        others = max(0, pending - report.waiting)
    flavors: dict[str, list[Json]] = {}
    for flavor in quota.flavors:
        whose = holdings(flavor.resource, shares.get((flavor.resource, flavor.flavor), Share()))
        line = {"name": flavor.flavor, "used": flavor.used, "nominal": flavor.total, **whose}
        flavors.setdefault(flavor.resource, []).append(line)
    return _known(
        {
            "name": report.name,
            "state": report.state if read else "Unknown",
            "reachable": report.state in (WorkerState.CONNECTED, WorkerState.DEGRADED) if read else None,
            "since": report.since,
            "cordoned": report.cordoned,
            "reason": report.cordon,
            "running": report.running,
            "ownBacklog": report.waiting,
            "othersBacklog": others,
            "quota": [
                {"resource": name, "used": quota.used.get(name, "0"), "nominal": total, "flavors": flavors[name]}
                for name, total in sorted(quota.total.items())
            ],
            "readAt": quota.at,
            "notChecked": quota.not_checked,
            "findings": [finding for finding in findings if report.name in finding.workers],
            "kueueVersion": str(kueue.version or "") if kueue is not None else "",
            "cost": annotations_of(objects.clusters_by_name.get(report.name) or {}).get(COST, ""),
        }
    )


def _queue(report: QueueReport, jobs: Iterable[Json], now: datetime) -> Json:
    recent = timestamp(now - HOUR)
    own = [job for job in jobs if job["status"].get("clusterQueue") == report.name]
    waiting = (job["metadata"].get("creationTimestamp") for job in own if job["status"]["state"] in WAITING_STATES)
    return _known(
        {
            "name": report.name,
            "waiting": report.queued + report.waiting,
            "running": report.running,
            "oldestWaiting": min(filter(None, waiting), default=None),
            "endedLastHour": sum(
                job["status"]["state"] in ENDED_STATES and job["status"].get("since", "") >= recent for job in own
            ),
            "used": report.used,
            "nominal": report.total,
        }
    )


def _moves(jobs: Iterable[Json]) -> Iterator[Json]:
    for job in jobs:
        status = job["status"]
        places = status.get("placements") or ()
        for place, after in itertools.zip_longest(places, places[1:]):
            if place.get("until") and not (after is None and status["state"] in ENDED_STATES):
                at = {"namespace": job["metadata"]["namespace"], "job": status["job"], "from": place.get("cluster", "")}
                to = after.get("cluster", "") if after is not None else ""
                yield at | {"to": to, "at": place["until"], "reason": place.get("reason", "")}
