"""Groups: several Workloads of one job, and several jobs of one Workload.

A LeaderWorkerSet has one Workload per replica, and all of them go to the same worker: the first is dispatched as any
Workload, the others are nominated for exactly that worker, so that Kueue's webhook accepts it as their `clusterName`.

A pod group is one Workload with several jobs, its pods. The copies on the worker follow the manager's: one that is new
gets a copy, one that is gone takes its copy along. What has ended, or is being deleted, is not run again; what the
manager's Kueue has started on the manager itself is not copied.

The slices of an elastic job are several Workloads of one job, too. All of them, as the parts of a group, lead to the
same job copy, and the copy names at most one. One of them carries it and may remove it; the others share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.conditions import is_true
from multikueue.core.model.copies import is_copy_of, prebuilt_workload
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, name_of
from multikueue.core.model.started import runs_here
from multikueue.core.model.workload_facts import WORKLOADS, may_have_siblings
from multikueue.core.model.workloads import CheckState, cluster_name, component_index
from multikueue.core.workload.effects import AnnounceWorkload, CreateJob, Effect, Plan
from multikueue.core.workload.facts.situation import Situation
from multikueue.core.workload.facts.snapshot import JobCopy, Snapshot, Worker
from multikueue.core.workload.facts.worker_states import NAME_TAKEN, Unusable
from multikueue.core.workload.removal import delete_job


def with_carried_jobs(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which `Worker.jobs` are the copies this Workload carries, and `Worker.shared` the others'."""
    if not snapshot.siblings and not any(worker.shared for worker in snapshot.workers):
        return snapshot
    return snapshot.with_workers(partial(_worker_with_carried_jobs, snapshot))


def _worker_with_carried_jobs(snapshot: Snapshot, worker: Worker) -> Worker:
    own: list[JobCopy] = []
    shared: list[JobCopy] = []
    for copy in worker.all_jobs:
        (own if carrier_of(snapshot, worker, copy.object) == snapshot.key.name else shared).append(copy)
    taken = any(has_its_name(snapshot, copy.object) for copy in shared)
    refusal = worker.refusal or (NAME_TAKEN if taken else None)
    return attrs.evolve(worker, jobs=tuple(own), shared=tuple(shared), refusal=refusal)


def has_its_name(snapshot: Snapshot, shared: Json) -> bool:
    """Whether a job of another Workload has the name of this one's: of a job that was deleted, and made again here."""
    workload = snapshot.workload
    return workload is not None and (not may_have_siblings(workload) or _is_anothers(snapshot, shared))


def _is_anothers(snapshot: Snapshot, copy: Json) -> bool:
    """Whether a copy was made of an earlier job of the same name."""
    local = snapshot.jobs.get(name_of(copy))
    return local is not None and not is_copy_of(copy, local)


def carrier_of(snapshot: Snapshot, worker: Worker, job: Json) -> str:
    """The name of the Workload that carries a job copy on a worker."""
    name = name_of(job)
    named = prebuilt_workload(job)
    known = [] if _is_anothers(snapshot, job) else [*snapshot.siblings, *filter(None, [snapshot.workload])]
    members = [part for part in known if (owner := workloads.owner(part)) is not None and owner.name == name]
    if any(workloads.component_index(member) is not None for member in members):
        return _of_group(members, worker, named)
    if any(workloads.is_elastic(member) for member in members):
        return _of_slices(members, named)
    if not members and worker.workload is not None and workloads.component_index(worker.workload) is not None:
        return snapshot.key.name  # the last of a deleted group, as its copy tells: no other one removes the job
    return named or snapshot.key.name


def _of_group(members: list[Json], worker: Worker, named: str) -> str:
    """The member it names, while that one is on the worker; else the first one there; if none is, the first one.

    A member that has quota again after its own eviction joins the job that the others run, and does not replace it.
    """
    held = [member for member in members if workloads.holds(member, worker.name)]
    pool = [member for member in held if workloads.cluster_name(member) == worker.name] or held or members
    if any(name_of(member) == named for member in pool):
        return named
    return name_of(min(pool, key=lambda member: (workloads.component_index(member) or 0, name_of(member))))


def _of_slices(members: list[Json], named: str) -> str:
    """The slice it names, until that is replaced or gone; then the slice that took its place.

    Kueue finishes the old slice a moment before the new one has quota. In between the job stays with the old one:
    a slice that has not yet had quota takes nothing, or the running job would go with what it lacks.
    """
    present = [part for part in members if not workloads.is_replaced(part) and not is_terminating(part)]
    successors = [
        part for part in present if workloads.has_quota(part) or workloads.is_finished(part) or is_true(part, "Evicted")
    ]
    if any(name_of(part) == named for part in present) or not successors:
        return named
    return name_of(max(successors, key=lambda part: (dig(part, "metadata", "creationTimestamp") or "", name_of(part))))


def tell_split(situation: Situation) -> Plan | None:
    """The rest of the group is on several workers: this Workload cannot follow all. Somebody must evict one part."""
    if len(situation.group_workers) < 2:
        return None
    where = " and ".join(f'"{name}"' for name in situation.group_workers)
    return Plan((AnnounceWorkload("Warning", f"Component workloads are assigned to different clusters: {where}"),))


def must_wait(situation: Situation) -> bool:
    """Whether parts of the group are missing, or this part would follow an earlier one that has no worker yet.

    One that is off, or has finished, gets none: the others run without it.
    """
    index, job = situation.facts.component_index, situation.job
    if index is None or job is None:
        return False
    if len(situation.group) + 1 < situation.adapter.expected_workloads(job):
        return True
    coming = [facts for part in situation.group if (facts := WORKLOADS.of(part)).is_active and not facts.is_finished]
    places = (facts.component_index for facts in coming)
    is_later = index < 0 or any(place is not None and 0 <= place < index for place in places)
    return is_later and not situation.group_workers


def creates_for_group(situation: Situation) -> bool:
    """Whether this Workload is the one of its group that creates the job: the first of those on its worker."""
    index = situation.facts.component_index
    here = (part for part in situation.group if cluster_name(part) == situation.assigned_to)
    return index is None or all(index < (component_index(part) or 0) for part in here)


def missing_on(situation: Situation, worker: Worker) -> list[Json]:
    """The manager's jobs that should have a copy there and have none, in the order of their names."""
    taken = {name_of(copy.object) for copy in worker.all_jobs if copy.resource == situation.adapter.resource}
    jobs = sorted(situation.snapshot.jobs.items())
    return [job for name, job in jobs if name not in taken and _should_run(situation, job)]


def create_missing(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Make the copies that are missing, unless none may be made there."""
    if situation.traits.workload_only or isinstance(worker.kind, Unusable):
        return
    for job in missing_on(situation, worker):
        yield CreateJob(worker.name, situation.adapter.resource, situation.job_copy_for(worker, job))


def remove_obsolete(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Remove the copies of members that are gone, or about to go, or another of the same name by now."""
    for copy in worker.jobs:
        local = situation.snapshot.jobs.get(name_of(copy.object))
        obsolete = local is None or is_terminating(local) or not is_copy_of(copy.object, local)
        if obsolete and copy.resource == situation.adapter.resource:
            yield from delete_job(situation, worker, copy)


def _should_run(situation: Situation, job: Json) -> bool:
    if is_terminating(job) or (situation.traits.keeps_check_pending and _starts_here(situation, job)):
        return False
    return not situation.facts.has_members or situation.adapter.outcome(job) is None


def _starts_here(situation: Situation, job: Json) -> bool:
    """Whether the manager's Kueue has started a pod on the manager, or does so now that the check is Ready."""
    return runs_here(job) or (situation.state is CheckState.READY and bool(situation.adapter.why_free(job)))
