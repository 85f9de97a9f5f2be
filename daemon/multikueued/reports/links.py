"""The chain from a job to the list of workers: what each object of the manager says."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import dig, name_of
from multikueued.reports.jobs import JobReport, check_message
from multikueued.reports.objects import ManagerObjects, queue_name


@attrs.frozen
class ChainLink:
    """One object on the way."""

    kind: str
    name: str
    state: str
    """`Active`, `Inactive`, `Missing`, the state of a Workload or of a check."""
    ok: bool
    told: str
    """What it says."""


def chain_of(workload: Json, job: Json | None, report: JobReport, objects: ManagerObjects) -> tuple[ChainLink, ...]:
    """The links in order, up to the first that is missing."""
    return tuple(_links(workload, job, report, objects))


def _links(workload: Json, job: Json | None, report: JobReport, objects: ManagerObjects) -> Iterator[ChainLink]:
    yield ChainLink("Job", report.job, str(report.state), report.state != "Rejected", managed_by(job))
    local = objects.local_queue_of(workload)
    yield _queue(LOCAL_QUEUE, f"{report.namespace}/{queue_name(workload)}", local, objects)
    if local is None and not report.cluster_queue and LOCAL_QUEUE not in objects.unread:
        return
    yield _queue(CLUSTER_QUEUE, report.cluster_queue, objects.cluster_queue_of(workload), objects)
    yield _workload(workload, report)
    name = objects.check_of(workload) or objects.queue_check(workload)
    if name is None:
        return
    state = str(workloads.check_state(workload, name)) if objects.check_of(workload) else "not on it yet"
    message = check_message(workload, objects)
    yield ChainLink("AdmissionCheck", name, state, state not in ("Rejected", "Retry"), message)
    config = objects.config_of(name)
    if config is None and MULTIKUEUE_CONFIG in objects.unread:
        return
    if config is None:
        problem = str((condition(objects.our_checks[name], "Active") or {}).get("message") or "")
        yield ChainLink("MultiKueueConfig", "", "Missing", False, problem)
        return
    listed = objects.workers_of(name)
    read = MULTIKUEUE_CLUSTER not in objects.unread
    missing = [worker for worker in listed if read and worker not in objects.clusters_by_name]
    state = "Active" if is_true(objects.our_checks[name], "Active") else "Inactive"
    yield ChainLink("MultiKueueConfig", name_of(config), state, not missing, f"lists {', '.join(listed) or 'nobody'}")


def managed_by(job: Json | None) -> str:
    """What a job says of who runs it."""
    managed = dig(job or {}, "spec", "managedBy")
    return f"managedBy {managed}" if managed else ""


def _queue(resource: Resource, name: str, queue: Json | None, objects: ManagerObjects) -> ChainLink:
    kind = resource.gvk.kind
    if queue is None and resource in objects.unread:
        return ChainLink(kind, name, "Unknown", True, "you may not read it")
    if queue is None:
        return ChainLink(kind, name, "Missing", False, "it does not exist")
    active = condition(queue, "Active")
    if active is None:
        return ChainLink(kind, name, "Unknown", True, "it says nothing yet")
    ok = active.get("status") == "True"
    return ChainLink(kind, name, "Active" if ok else "Inactive", ok, "" if ok else str(active.get("message") or ""))


def _workload(workload: Json, report: JobReport) -> ChainLink:
    reserved = condition(workload, "QuotaReserved") or {}
    state = "QuotaReserved" if workloads.has_quota(workload) else "Pending"
    if workloads.is_finished(workload):
        state = "Finished"
    elif workloads.is_admitted(workload):
        state = "Admitted"
    ok = state != "Pending" or not reserved
    return ChainLink("Workload", report.workload, state, ok, str(reserved.get("message") or "") if not ok else "")
