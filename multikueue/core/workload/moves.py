"""Moves: Workloads that shall leave the worker that has them.

A move is an annotation on the manager's Workload that names its worker. Our check becomes Retry, the manager's Kueue
evicts the Workload, and everything that keeps a job from running twice after an eviction holds here, too. Beyond that,
nobody else is recorded while the worker it leaves shows anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multikueue.core.model.labels import MOVE_FROM_ANNOTATION, POD_GROUP_SERVING_ANNOTATION
from multikueue.core.model.names import Json
from multikueue.core.model.objects import annotations_of, uid
from multikueue.core.model.workloads import CheckState
from multikueue.core.workload.check_updates import retry
from multikueue.core.workload.effects import MANAGER, AnnounceWorkload, Effect, PatchWorkload, Plan
from multikueue.core.workload.facts.snapshot import Worker

if TYPE_CHECKING:
    from multikueue.core.workload.facts.situation import Situation


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
