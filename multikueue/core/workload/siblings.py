"""Several Workloads of one job: which one carries the job copy, and which are reconciled after a change of another.

An elastic job has one Workload per size, its slices; a group (LeaderWorkerSet) has one per replica. All of them lead
to the same job copy, and the copy names at most one. One of them carries it and may remove it; the others share it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, name_of
from multikueue.core.workload.snapshot import JobCopy, Snapshot, Worker


def with_carried_jobs(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which `Worker.jobs` are the copies this Workload carries, and `Worker.shared` the others'."""
    if not snapshot.siblings and not any(worker.shared for worker in snapshot.workers):
        return snapshot
    workers = tuple(_worker_with_carried_jobs(snapshot, worker) for worker in snapshot.workers)
    return attrs.evolve(snapshot, workers=workers)


def _worker_with_carried_jobs(snapshot: Snapshot, worker: Worker) -> Worker:
    own: list[JobCopy] = []
    shared: list[JobCopy] = []
    for copy in (*worker.jobs, *worker.shared):
        (own if carrier_of(snapshot, worker, copy.object) == snapshot.key.name else shared).append(copy)
    return attrs.evolve(worker, jobs=tuple(own), shared=tuple(shared))


def carrier_of(snapshot: Snapshot, worker: Worker, job: Json) -> str:
    """The name of the Workload that carries a job copy on a worker."""
    name = name_of(job)
    named = prebuilt_workload(job)
    known = [*snapshot.siblings, *([snapshot.workload] if snapshot.workload is not None else [])]
    members = [one for one in known if (found := workloads.owner(one)) is not None and found.name == name]
    if any(workloads.component_index(one) is not None for one in members):
        return _of_group(members, worker, named)
    if any(workloads.is_elastic(one) for one in members):
        return _of_slices(members, named)
    if not members and worker.workload is not None and workloads.component_index(worker.workload) is not None:
        return snapshot.key.name  # the last of a deleted group, as its copy tells: no other one removes the job
    return named or snapshot.key.name


def _of_group(members: list[Json], worker: Worker, named: str) -> str:
    """The member it names, while that one is on the worker; else the first one there; if none is, the first one.

    A member that has quota again after its own eviction joins the job that the others run, and does not replace it.
    """
    held = [one for one in members if holds(one, worker.name)]
    pool = [one for one in held if workloads.cluster_name(one) == worker.name] or held or members
    if any(name_of(one) == named for one in pool):
        return named
    return name_of(min(pool, key=lambda one: (workloads.component_index(one) or 0, name_of(one))))


def holds(workload: Json, cluster: str) -> bool:
    """Whether a Workload is on a worker, or about to be: while it is, the job of its group stays there."""
    return workloads.is_live(workload) and cluster in (workloads.cluster_name(workload), *workloads.nominated(workload))


def _of_slices(members: list[Json], named: str) -> str:
    """The slice it names, until that is replaced or gone; then the slice that took its place.

    Kueue finishes the old slice a moment before the new one has quota. In between the job stays with the old one:
    a slice that has not yet had quota takes nothing, or the running job would go with what it lacks.
    """
    present = [one for one in members if not workloads.is_replaced(one) and not is_terminating(one)]
    successors = [
        one for one in present if workloads.has_quota(one) or workloads.is_finished(one) or is_true(one, "Evicted")
    ]
    if any(name_of(one) == named for one in present) or not successors:
        return named
    return name_of(max(successors, key=lambda one: (dig(one, "metadata", "creationTimestamp") or "", name_of(one))))


def may_have_siblings(workload: Json) -> bool:
    """Whether other Workloads may stand for the same job: slices of an elastic job, parts of a group."""
    return workloads.is_elastic(workload) or workloads.component_index(workload) is not None


def affected(old: Json | None, new: Json | None, siblings: Sequence[Json]) -> list[Json]:
    """The siblings to reconcile after this change: as few as possible, since a group may have thousands.

    Args:
        old: the Workload before; None if it is new.
        new: the Workload now; None if it is gone.
        siblings: the other Workloads of its job.
    """
    changed = new or old
    if changed is None or not may_have_siblings(changed) or _shown(old) == _shown(new):
        return []
    if workloads.is_elastic(changed):
        return list(siblings)
    place = workloads.cluster_name(changed) or (workloads.cluster_name(old) if old is not None else None)
    if place is None:  # it was created or deleted without a worker: the group may be complete now
        return sorted(siblings, key=lambda one: workloads.component_index(one) or 0)[:1]
    if any(workloads.cluster_name(one) == place for one in siblings):
        return []  # the group was on that worker before, and still is
    return list(siblings)


def _shown(workload: Json | None) -> tuple[object, ...]:
    return (workloads.cluster_name(workload), workloads.is_replaced(workload)) if workload is not None else ()
