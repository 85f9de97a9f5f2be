"""Cordons and moves: workers that get nothing new, and Workloads that shall leave the worker that has them.

A cordon is an annotation on a MultiKueueCluster. It is applied after nomination, so whoever nominates: copies that no
worker was recorded for are withdrawn there. What runs there stays: a recorded worker keeps its job. A job cannot be
split, so what belongs to a running one, as another part of a group or another slice of an elastic job, goes to its
worker all the same: cordoned, or not in the config any more, as at once when a Placement does not select it.

A move is an annotation on the manager's Workload that names its worker. Our check becomes Retry, the manager's Kueue
evicts the Workload, and everything that keeps a job from running twice after an eviction holds here, too. Beyond that,
nobody else is recorded while the worker it leaves shows anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.labels import MAX_LABEL_VALUE, MOVE_FROM_ANNOTATION, POD_GROUP_SERVING_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, uid
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import retry
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.places import why_nowhere
from multikueue.core.workload.snapshot import Worker

if TYPE_CHECKING:
    from multikueue.core.workload.situation import Situation


LEAVING = "the job is being moved away from it"
"""Why a worker is not offered a Workload that shall leave it."""


def why_withheld(situation: Situation, worker: Worker) -> str:
    """Why a worker is not offered the Workload although it was nominated; empty: it may be. `Situation.withheld` keeps
    it for one decision."""
    why = LEAVING if situation.facts.leaves == worker.name else worker.cordon
    why = why or why_nowhere(situation.snapshot, worker) or _why_not_found(situation, worker)
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
    if situation.has_job(worker) or (shared is not None and situation.is_current(worker, shared)):
        return True
    return has_company(situation, worker)


def has_company(situation: Situation, worker: Worker) -> bool:
    """Whether what a Workload belongs to runs on a worker."""
    if worker.name in situation.group_workers:
        return True
    if not situation.facts.is_elastic:
        return False
    if not situation.jobs_on(worker) and situation.shared_job_on(worker) is None:
        return False
    slices = [one for one in situation.snapshot.siblings if workloads.is_replaced(one) or workloads.is_live(one)]
    return any(workloads.cluster_name(one) == worker.name for one in slices)


def with_company(situation: Situation) -> Situation:
    """The situation in which a worker that has left the config counts as configured where the rest of the job runs.

    One whose MultiKueueCluster is gone does not: it is kept for what it runs, and gets nothing more.
    """
    if situation.snapshot.workload is None or not situation.snapshot.siblings:
        return situation
    if not situation.facts.is_live or situation.facts.is_evicted:
        return situation
    joined = tuple(
        attrs.evolve(one, configured=True) if _may_join(situation, one) else one for one in situation.workers
    )
    if joined == situation.workers:
        return situation
    return attrs.evolve(situation, snapshot=attrs.evolve(situation.snapshot, workers=joined))


def _may_join(situation: Situation, worker: Worker) -> bool:
    return not worker.configured and not worker.removed and has_company(situation, worker)


def move(situation: Situation, worker: Worker) -> Plan | None:
    """Send it back so that it runs elsewhere, if that was asked and is possible; None: it goes on here.

    Args:
        situation: the Workload, recorded, whose copy goes on.
        worker: the recorded one, in sight.
    """
    if situation.facts.leaves != worker.name or _why_stays(situation):
        return None
    text = f'Moving away from worker cluster "{worker.name}", as the annotation {MOVE_FROM_ANNOTATION} asks'
    return Plan((retry(situation, text), AnnounceWorkload("Normal", text)))


def tell_unmoved(situation: Situation) -> Iterator[Effect]:
    """Tell why a Workload stays that somebody asked to move."""
    asked = situation.facts.leaves
    if asked is not None and asked == situation.assigned_to and (why := _why_stays(situation)):
        yield AnnounceWorkload("Warning", f'It is not moved away from worker cluster "{asked}": {why}')


def _why_stays(situation: Situation) -> str:
    return why_not_movable(situation) or _nowhere_to_go(situation)


def why_not_movable(situation: Situation) -> str:
    """Why the job is not moved at all; empty: an eviction costs it nothing but what it has computed so far."""
    if situation.traits.workload_only:
        return "another controller moves jobs of this kind"
    if situation.traits.serves or any(map(is_serving_pod, situation.snapshot.jobs.values())):
        return "it serves and does not end"
    if situation.facts.component_index is not None:
        return "it is a part of a group"
    if situation.traits.keeps_check_pending and situation.state is CheckState.READY:
        return "Kueue deletes pods that it evicts once their check is Ready, and nobody makes them again"
    return ""


def is_serving_pod(job: Json) -> bool:
    """Whether a job is a pod of a group that runs until somebody stops it."""
    return annotations_of(job).get(POD_GROUP_SERVING_ANNOTATION) == "true"


def _nowhere_to_go(situation: Situation) -> str:
    asked = [one for one in situation.workers if one.can_run and one.name != situation.facts.leaves]
    others = [one for one in asked if not situation.withheld[one.name]]
    return "" if others else "no other worker can be offered it now"


def end_move(situation: Situation) -> Iterator[Effect]:
    """Take the request off a Workload that another worker has: it is done, or named a worker that never had it."""
    asked = situation.facts.leaves
    if asked is not None and asked != situation.assigned_to:
        metadata = {"uid": uid(situation.workload), "annotations": {MOVE_FROM_ANNOTATION: None}}
        yield PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata})
