"""To which workers a Workload may go, whoever nominates.

A cordon is an annotation on a MultiKueueCluster: that worker gets nothing new. It is applied after nomination, so
whoever nominates: copies that no worker was recorded for are withdrawn there. What runs there stays: a recorded worker
keeps its job. A job cannot be split, so what belongs to a running one, as another part of a group or another slice of
an elastic job, goes to its worker all the same: cordoned, or not in the config any more, as at once when a Placement
does not select it.

Several MultiKueueClusters may lead to one cluster. All but the first get nothing new, as if they were cordoned. All of
them show the same objects there, and a mark is made for one worker's name: so each copy counts on one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.labels import MAX_LABEL_VALUE
from multikueue.core.model.marks import Proof
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import uid
from multikueue.core.model.worker_names import may_run
from multikueue.core.workload.facts.places import holders, with_copies
from multikueue.core.workload.facts.situation import Situation, once
from multikueue.core.workload.facts.snapshot import Worker

LEAVING = "the job is being moved away from it"
"""Why a worker is not offered a Workload that shall leave it."""


@once
def withheld(situation: Situation) -> Mapping[ClusterName, str]:
    """Of each worker: why it is not offered the Workload although it was nominated; empty: it may be."""
    return {worker.name: _why_withheld(situation, worker) for worker in situation.workers}


def _why_withheld(situation: Situation, worker: Worker) -> str:
    why = LEAVING if situation.facts.leaves == worker.name else worker.hold
    nowhere = worker.names.why_none(situation.snapshot.key.namespace)  # there is no namespace for it
    why = why or nowhere or _why_not_found(situation, worker)
    return "" if not why or _has_its_job(situation, worker) else why  # its job is recorded first, and may leave it then


def _why_not_found(situation: Situation, worker: Worker) -> str:
    """Why a job there would not find its Workload, and run without it; empty: it would. Groups look for none."""
    if not worker.kueue.loses_long_names or len(situation.snapshot.key.name) <= MAX_LABEL_VALUE:
        return ""
    if situation.facts.has_members or situation.facts.component_index is not None:
        return ""
    return f"{worker.kueue.name} there has no room for the name of its Workload: upgrade it, or shorten the job's name"


def _has_its_job(situation: Situation, worker: Worker) -> bool:
    """Whether this attempt's job is there without being recorded, or what it belongs to runs there."""
    shared = situation.shared_job_on(worker)
    shares = shared is not None and situation.whose(worker, shared).runs_for_it
    return situation.has_job(worker) or shares or has_company(situation, worker)


def has_company(situation: Situation, worker: Worker) -> bool:
    """Whether what a Workload belongs to runs on a worker."""
    if worker.name in situation.group_workers:
        return True
    if not situation.facts.is_elastic or situation.any_job_on(worker) is None:
        return False
    return any(workloads.cluster_name(other) == worker.name for other in filter(may_run, situation.snapshot.siblings))


def with_company(situation: Situation) -> Situation:
    """The situation in which a worker that has left the config counts as configured where the rest of the job runs.

    One whose MultiKueueCluster is gone does not: it is kept for what it runs, and gets nothing more.
    """
    alone = situation.snapshot.workload is None or not situation.snapshot.siblings
    if alone or not situation.facts.is_live or situation.facts.is_evicted:
        return situation
    return situation.with_workers(_joined)


def _joined(situation: Situation, worker: Worker) -> Worker:
    joins = not worker.configured and not worker.removed and has_company(situation, worker)
    return attrs.evolve(worker, configured=True) if joins else worker


def with_own_copies(situation: Situation) -> Situation:
    """The situation in which each copy shows on one worker only, though several lead to its cluster, or may.

    It is the one that a copy of this attempt was made for: nothing is removed through another one while the Workload
    goes on there, or that may lead there. What else there is shows on the one that has the Workload, else on the first.

    A name that cannot be reached shows nothing that another one of the cluster does, but for a Workload that it has.
    """
    return situation.with_workers(_without_others)


def _without_others(situation: Situation, worker: Worker) -> Worker:
    """The worker without what shows on others. It gets nothing of the Workload while that is there."""
    elsewhere = {
        id(copy): on for copy in worker.copies if (on := _shown_elsewhere(situation, worker, copy)) is not None
    }
    if not elsewhere:
        return worker
    seen = with_copies(worker, lambda copy: id(copy) not in elsewhere)
    return attrs.evolve(seen, second_of=next(iter(elsewhere.values())).name)


def _shown_elsewhere(situation: Situation, worker: Worker, copy: Json) -> Worker | None:
    """On which other worker a copy shows; None: on this one."""
    if _was_made_for(situation, worker, copy):
        return None
    having, sharing = {*_having(situation)}, (situation.snapshot.workload or {}, *situation.snapshot.siblings)
    recorded = {workloads.cluster_name(sibling) for sibling in sharing if workloads.is_live(sibling)}
    made_for = next((worker for worker in situation.workers if _was_made_for(situation, worker, copy)), None)
    lost = made_for is not None and not made_for.reachable and made_for.name not in recorded and worker.reachable
    if made_for is not None and not (lost and are_one(worker, made_for)):
        unknown = not (made_for.removed or (worker.identified and made_for.identified))
        goes_on = made_for.name in having and situation.snapshot.workload is not None and situation.facts.is_live
        return made_for if unknown or goes_on or are_one(worker, made_for) else None

    def rank(other: Worker) -> tuple[bool, ...]:
        return (other.name not in recorded, not other.reachable, other.name not in having, bool(other.second_of))

    first = min((other for other in situation.workers if are_one(other, worker)), key=rank)
    shows = first.name in having or any(uid(shown) == uid(copy) for shown in first.copies)
    return first if shows and first is not worker else None


def _was_made_for(situation: Situation, worker: Worker, copy: Json) -> bool:
    """Whether we have made a copy on that worker, for this attempt or for another slice that shares the job."""
    of = (situation.snapshot.workload, *situation.snapshot.siblings)
    return any(situation.marks.proof(copy, owner, worker.name) is Proof.EXACT for owner in filter(None, of))


def names_of(situation: Situation, worker: Worker) -> set[ClusterName]:
    """All names of a worker's cluster: what was made through any of them shows on it."""
    return {worker.name, *(other.name for other in situation.workers if are_one(other, worker))}


def are_one(worker: Worker, other: Worker) -> bool:
    """Whether two workers are known to lead to one cluster, or are one."""
    return (worker.second_of or worker.name) == (other.second_of or other.name)


def _having(situation: Situation) -> Iterator[str | None]:
    """The workers that have the Workload, or others of its job, or had it last, unless it is offered anew."""
    yield from holders(situation.snapshot)
    if situation.snapshot.workload is not None:
        ready = situation.snapshot.check is not None and situation.state is workloads.CheckState.READY
        if ready or situation.facts.is_evicted or not situation.facts.has_quota:
            yield from (situation.snapshot.last_worker, situation.facts.noted_worker)
