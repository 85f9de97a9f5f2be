"""Cordons: workers that get nothing new.

A cordon is an annotation on a MultiKueueCluster. It is applied after nomination, so whoever nominates: copies that no
worker was recorded for are withdrawn there. What runs there stays: a recorded worker keeps its job. A job cannot be
split, so what belongs to a running one, as another part of a group or another slice of an elastic job, goes to its
worker all the same: cordoned, or not in the config any more, as at once when a Placement does not select it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from multikueue.core.model import workloads
from multikueue.core.model.labels import MAX_LABEL_VALUE
from multikueue.core.workload.facts.places import why_nowhere
from multikueue.core.workload.facts.snapshot import Worker

if TYPE_CHECKING:
    from multikueue.core.workload.facts.situation import Situation


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
