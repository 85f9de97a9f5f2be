"""Cordons and moves: workers that get nothing new, and Workloads that shall leave the worker that has them.

A cordon is an annotation on a MultiKueueCluster. It is applied after nomination, so whoever nominates: copies that no
worker was recorded for are withdrawn there. What runs there stays: a recorded worker keeps its job, and slices, members
and replacements of such a job go there as before.

A move is an annotation on the manager's Workload that names its worker. Our check becomes Retry, the manager's Kueue
evicts the Workload, and everything that keeps a job from running twice after an eviction holds here, too. Beyond that,
nobody else is recorded while the worker it leaves shows anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model import workloads
from multikueue.core.model.labels import MAX_LABEL_VALUE, MOVE_FROM_ANNOTATION, POD_GROUP_SERVING_ANNOTATION
from multikueue.core.model.names import ClusterName, Json
from multikueue.core.model.objects import annotations_of, uid
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import retry
from multikueue.core.workload.company import has_company
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.places import why_nowhere
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker

LEAVING = "the job is being moved away from it"
"""Why a worker is not offered a Workload that shall leave it."""


def why_withheld(situation: Situation, worker: Worker) -> str:
    """Why a worker is not offered the Workload although it was nominated; empty: it may be."""
    why = LEAVING if leaves(situation) == worker.name else worker.cordon
    why = why or why_nowhere(situation.snapshot, worker) or _why_not_found(situation, worker)
    return "" if not why or _has_its_job(situation, worker) else why  # its job is recorded first, and may leave it then


def _why_not_found(situation: Situation, worker: Worker) -> str:
    """Why a job there would not find its Workload, and run without it; empty: it would. Groups look for none."""
    if not worker.kueue.loses_long_names or len(situation.snapshot.key.name) <= MAX_LABEL_VALUE:
        return ""
    if workloads.has_members(situation.workload) or workloads.component_index(situation.workload) is not None:
        return ""
    return f"{worker.kueue.name} there has no room for the name of its Workload: upgrade it, or shorten the job's name"


def _has_its_job(situation: Situation, worker: Worker) -> bool:
    """Whether this attempt's job is there without being recorded, or what it belongs to runs there."""
    shared = situation.shared_job_on(worker)
    if situation.has_job(worker) or (shared is not None and situation.is_current(worker, shared)):
        return True
    return has_company(situation, worker)


def leaves(situation: Situation) -> ClusterName | None:
    """The worker that somebody asked to move the Workload away from; None: nobody asked."""
    return ClusterName(annotations_of(situation.workload).get(MOVE_FROM_ANNOTATION) or "") or None


def move(situation: Situation, worker: Worker) -> Plan | None:
    """Send it back so that it runs elsewhere, if that was asked and is possible; None: it goes on here.

    Args:
        situation: the Workload, recorded, whose copy goes on.
        worker: the recorded one, in sight.
    """
    if leaves(situation) != worker.name or _why_stays(situation):
        return None
    text = f'Moving away from worker cluster "{worker.name}", as the annotation {MOVE_FROM_ANNOTATION} asks'
    return Plan((retry(situation, text), AnnounceWorkload("Normal", text)))


def tell_unmoved(situation: Situation) -> Iterator[Effect]:
    """Tell why a Workload stays that somebody asked to move."""
    asked = leaves(situation)
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
    if workloads.component_index(situation.workload) is not None:
        return "it is a part of a group"
    if situation.traits.keeps_check_pending and situation.state is CheckState.READY:
        return "Kueue deletes pods that it evicts once their check is Ready, and nobody makes them again"
    return ""


def is_serving_pod(job: Json) -> bool:
    """Whether a job is a pod of a group that runs until somebody stops it."""
    return annotations_of(job).get(POD_GROUP_SERVING_ANNOTATION) == "true"


def _nowhere_to_go(situation: Situation) -> str:
    asked = [one for one in situation.workers if one.can_run and one.name != leaves(situation)]
    others = [one for one in asked if not why_withheld(situation, one)]
    return "" if others else "no other worker can be offered it now"


def end_move(situation: Situation) -> Iterator[Effect]:
    """Take the request off a Workload that another worker has: it is done, or named a worker that never had it."""
    asked = leaves(situation)
    if asked is not None and asked != situation.assigned_to:
        metadata = {"uid": uid(situation.workload), "annotations": {MOVE_FROM_ANNOTATION: None}}
        yield PatchWorkload(MANAGER, situation.snapshot.key, {"metadata": metadata})
