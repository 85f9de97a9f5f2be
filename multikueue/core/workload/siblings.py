"""Whose a job copy is when several Workloads stand for one job.

An elastic job has one Workload per size, its slices; a group (LeaderWorkerSet) has one per replica. All of them lead
to the same job copy, and the copy names at most one. Whoever owns it may remove it; for the others it is only there.
"""

from __future__ import annotations

import attrs

from multikueue.core.model.conditions import is_true
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating
from multikueue.core.model.workloads import (
    cluster_name,
    component_index,
    has_quota,
    is_elastic,
    is_finished,
    is_replaced,
    nominated,
    owner,
)
from multikueue.core.workload.snapshot import JobCopy, Snapshot, Worker


def settled(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which `Worker.jobs` are the copies this Workload owns, and `Worker.shared` the others'."""
    if not snapshot.siblings and not any(worker.shared for worker in snapshot.workers):
        return snapshot
    return attrs.evolve(snapshot, workers=tuple(_settled(snapshot, worker) for worker in snapshot.workers))


def _settled(snapshot: Snapshot, worker: Worker) -> Worker:
    own: list[JobCopy] = []
    shared: list[JobCopy] = []
    for copy in (*worker.jobs, *worker.shared):
        (own if owner_of(snapshot, worker, copy.object) == snapshot.key.name else shared).append(copy)
    return attrs.evolve(worker, jobs=tuple(own), shared=tuple(shared))


def owner_of(snapshot: Snapshot, worker: Worker, job: Json) -> str:
    """The name of the Workload that owns a job copy on a worker."""
    named = prebuilt_workload(job)
    known = [*snapshot.siblings, *([snapshot.workload] if snapshot.workload is not None else [])]
    members = [one for one in known if (found := owner(one)) is not None and found.name == job["metadata"]["name"]]
    if any(component_index(one) is not None for one in members):
        return _of_group(members, worker, named)
    if any(is_elastic(one) for one in members):
        return _of_slices(members, named)
    if not members and worker.workload is not None and component_index(worker.workload) is not None:
        return snapshot.key.name  # the last of a group that is gone, as its copy tells: nobody else will remove it
    return named or snapshot.key.name


def _of_group(members: list[Json], worker: Worker, named: str) -> str:
    """The member it names, while that one is on the worker; then the first one that is; last of all the first one.

    One that is about to come back, after an eviction of its own, joins what the others run: it is not its to remake.
    """
    held = [one for one in members if holds(one, worker.name)]
    pool = [one for one in held if cluster_name(one) == worker.name] or held or members
    if any(_name(one) == named for one in pool):
        return named
    return _name(min(pool, key=lambda one: (component_index(one) or 0, _name(one))))


def holds(workload: Json, cluster: str) -> bool:
    """Whether a Workload is on a worker, or about to be: while it is, the job of its group stays there."""
    if is_terminating(workload) or is_finished(workload) or not has_quota(workload):
        return False
    return cluster == cluster_name(workload) or cluster in nominated(workload)


def _of_slices(members: list[Json], named: str) -> str:
    """The slice it names, until that is replaced or gone; then the slice that took its place.

    Kueue finishes the old slice a moment before the new one has quota. In between the job stays with the old one:
    a slice that has not yet had quota takes nothing, or the running job would go with what it lacks.
    """
    present = [one for one in members if not is_replaced(one) and not is_terminating(one)]
    heirs = [one for one in present if has_quota(one) or is_finished(one) or is_true(one, "Evicted")]
    if any(_name(one) == named for one in present) or not heirs:
        return named
    return _name(max(heirs, key=lambda one: (dig(one, "metadata", "creationTimestamp") or "", _name(one))))


def _name(workload: Json) -> str:
    return str(workload["metadata"]["name"])
