"""Which copy counts on which worker, and for which Workload: `situation_of` makes of a snapshot what rows look at.

It takes four steps:

1. What is somebody else's does not show.
2. Several Workloads may lead to one job: the slices of an elastic job, the parts of a group. A job copy names at most
   one of them. One carries the copy and may remove it (`Worker.jobs`); the others share it (`Worker.shared`).
3. Several MultiKueueClusters may lead to one cluster. All of them show the same objects there, and a mark is made for
   one worker's name: so each copy counts on one of them.
4. A worker that has left the config counts as configured where the rest of the job runs.

Nothing changes a situation afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.model import workloads
from multikueue.core.model.copies import is_copy_of, prebuilt_workload
from multikueue.core.model.marks import Proof
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, is_terminating, name_of, uid
from multikueue.core.model.worker_names import namespaces_on_workers
from multikueue.core.model.worker_states import NAME_TAKEN
from multikueue.core.model.workload_facts import may_have_siblings
from multikueue.core.workload.seen.places import has_company
from multikueue.core.workload.seen.situation import Situation
from multikueue.core.workload.seen.snapshot import JobCopy, PlanSettings, Snapshot, Worker


def situation_of(snapshot: Snapshot, now: datetime, settings: PlanSettings, dispatcher: Dispatcher) -> Situation:
    """What rows look at: each copy is on the one worker where it counts."""
    situation = Situation(snapshot, settings, dispatcher, now)
    for step in (_without_foreign, _with_carried_jobs, with_own_copies, _with_company):
        situation = situation.with_workers(step)
    return situation


def _without_foreign(situation: Situation, worker: Worker) -> Worker:
    """The worker without copies of somebody else.

    Where namespaces are mapped, unproven copies in a namespace that is another's there do not count, unless the worker
    had the Workload before that. For a Workload that was never seen here, neither do copies with the mark of another
    key: another manager may use the same origin.
    """
    snapshot, own, names = situation.snapshot, situation.snapshot.key.namespace, worker.names
    if snapshot.workload is None:
        are_anothers = situation.marks.are_anothers
        return worker if snapshot.was_here else _with_copies(worker, lambda copy: not are_anothers(copy))
    if names.flaw or names.namespace(own) == (worker.namespace or own):
        return worker
    had = {situation.recorded_on, snapshot.last_worker, situation.facts.noted_worker}
    if worker.name in {*had, *namespaces_on_workers(snapshot.workload)}:
        return worker
    return _with_copies(worker, lambda copy: situation.proof(worker, copy) is not Proof.NONE)


def _with_copies(worker: Worker, counts: Callable[[Json], bool]) -> Worker:
    """The worker with only the copies that count."""
    kept = worker.copy if worker.copy is not None and counts(worker.copy) else None
    jobs, shared = (tuple(job for job in listed if counts(job.object)) for listed in (worker.jobs, worker.shared))
    return attrs.evolve(worker, copy=kept, jobs=jobs, shared=shared)


def _with_carried_jobs(situation: Situation, worker: Worker) -> Worker:
    """The worker whose `jobs` are the copies that this Workload carries, and whose `shared` are the others'."""
    snapshot, own, shared = situation.snapshot, list[JobCopy](), list[JobCopy]()
    if not (snapshot.siblings or worker.shared):
        return worker
    for copy in worker.all_jobs:
        (own if _carrier_of(snapshot, worker, copy.object) == snapshot.key.name else shared).append(copy)
    taken = any(has_its_name(snapshot, copy.object) for copy in shared)
    refusal = worker.refusal or (NAME_TAKEN if taken else None)
    return attrs.evolve(worker, jobs=tuple(own), shared=tuple(shared), refusal=refusal)


def has_its_name(snapshot: Snapshot, shared: Json) -> bool:
    """Whether a job copy of another Workload has the name of this one's job, which was deleted and made again here."""
    workload = snapshot.workload
    return workload is not None and (not may_have_siblings(workload) or _is_of_earlier_job(snapshot, shared))


def _is_of_earlier_job(snapshot: Snapshot, copy: Json) -> bool:
    """Whether a copy was made of an earlier job of the same name."""
    local = snapshot.jobs.get(name_of(copy))
    return local is not None and not is_copy_of(copy, local)


def _carrier_of(snapshot: Snapshot, worker: Worker, job: Json) -> str:
    """The name of the Workload that carries a job copy on a worker."""
    name = name_of(job)
    named = prebuilt_workload(job)
    known = [] if _is_of_earlier_job(snapshot, job) else [*snapshot.siblings, *filter(None, [snapshot.workload])]
    members = [part for part in known if (owner := workloads.owner(part)) is not None and owner.name == name]
    if any(workloads.component_index(member) is not None for member in members):
        return _of_group(members, worker, named)
    if any(workloads.is_elastic(member) for member in members):
        return _of_slices(members, named)
    if not members and worker.copy is not None and workloads.component_index(worker.copy) is not None:
        return snapshot.key.name  # the last of a deleted group, as its copy tells: no other one removes the job
    return named or snapshot.key.name


def _of_group(members: list[Json], worker: Worker, named: str) -> str:
    """The member it names, while that one is on the worker; else the first one there; if none is, the first one.

    A member that has quota again after its own eviction joins the job that the others run, and does not replace it.
    """
    held = [member for member in members if workloads.is_on(member, worker.name)]
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
    successors = list(filter(workloads.has_had_quota, present))
    if any(name_of(part) == named for part in present) or not successors:
        return named
    return name_of(max(successors, key=lambda part: (dig(part, "metadata", "creationTimestamp") or "", name_of(part))))


def with_own_copies(situation: Situation, worker: Worker) -> Worker:
    """The worker without the copies that show on another one, though several lead to its cluster, or may.

    A copy shows on the worker that it was made for in this attempt: nothing is removed through another one while the
    Workload goes on there, or that may lead there. What else there is shows on the one that has the Workload, else on
    the first. While any shows elsewhere, this one gets nothing of the Workload.

    A name that cannot be reached shows nothing that another one of the cluster does, but for a Workload that it has.
    """
    shown_on = {id(copy): _shown_elsewhere(situation, worker, copy) for copy in worker.copies}
    if (first := next(filter(None, shown_on.values()), None)) is None:
        return worker
    left = _with_copies(worker, lambda copy: shown_on[id(copy)] is None)
    return attrs.evolve(left, second_of=first.name)


def _shown_elsewhere(situation: Situation, worker: Worker, copy: Json) -> Worker | None:
    """On which other worker a copy shows; None: on this one."""
    if _was_made_for(situation, worker, copy):
        return None
    having, sharing = {*_recorded_or_last(situation)}, (situation.snapshot.workload or {}, *situation.snapshot.siblings)
    recorded = {workloads.cluster_name(sibling) for sibling in sharing if workloads.is_live(sibling)}
    made_for = next((worker for worker in situation.workers if _was_made_for(situation, worker, copy)), None)
    lost = made_for is not None and not made_for.reachable and made_for.name not in recorded and worker.reachable
    if made_for is not None and not (lost and worker.is_one_with(made_for)):
        unknown = not (made_for.removed or (worker.identified and made_for.identified))
        goes_on = made_for.name in having and situation.snapshot.workload is not None and situation.facts.goes_on
        return made_for if unknown or goes_on or worker.is_one_with(made_for) else None

    def rank(other: Worker) -> tuple[bool, ...]:
        return other.name not in recorded, not other.reachable, other.name not in having, bool(other.second_of)

    first = min((other for other in situation.workers if other.is_one_with(worker)), key=rank)
    shows = first.name in having or any(uid(shown) == uid(copy) for shown in first.copies)
    return first if shows and first is not worker else None


def _was_made_for(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether we have made a copy on that worker, for this attempt or for another slice that shares the job."""
    of = (situation.snapshot.workload, *situation.snapshot.siblings)
    return any(situation.marks.proof(copy, owner, worker.name) is Proof.EXACT for owner in filter(None, of))


def _recorded_or_last(situation: Situation) -> Iterator[str | None]:
    """The workers that have the Workload, or others of its job, or had it last, unless it is offered anew."""
    yield from situation.snapshot.recorded_workers
    if situation.snapshot.workload is not None:
        ready = situation.snapshot.check is not None and situation.state is workloads.CheckState.READY
        if ready or situation.facts.is_evicted or not situation.facts.has_quota:
            yield from (situation.snapshot.last_worker, situation.facts.noted_worker)


def _with_company(situation: Situation, worker: Worker) -> Worker:
    """The worker; one that has left the config counts as configured where the rest of the job runs.

    One whose MultiKueueCluster is gone does not: it is kept for what it runs, and gets nothing more.
    """
    left_config = not worker.configured and not worker.removed
    goes_on = situation.snapshot.workload is not None and situation.facts.goes_on
    joins = left_config and goes_on and has_company(situation, worker)
    return attrs.evolve(worker, configured=True) if joins else worker
