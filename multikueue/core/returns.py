"""What must not run any more on a worker that was lost, and is stopped there before its caches are read.

A job may have moved away, or be gone, while its worker was lost; there it is admitted again as soon as that worker is
back. So what was there last is read by name, first, and what is of an attempt that is over is stopped. All else is left
to the plan, which looks at everything: what has ended, what somebody else has made, and jobs of several Workloads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from multikueue.core.model.adapter import JobAdapter
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import POD
from multikueue.core.model.marks import Marks, Proof, Whose
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import controller_of, is_terminating, uid
from multikueue.core.model.placements import placements
from multikueue.core.model.workload_facts import COPIES, NO_COPY, WORKLOADS
from multikueue.core.model.workloads import CheckState, check_state, component_index, is_elastic
from multikueue.core.workload.check_updates import deactivation
from multikueue.core.workload.effects import ApplyStatus, DeleteJob
from multikueue.core.workload.seen.snapshot import JobCopy

BEFORE_LOSS: Final = timedelta(seconds=60)
"""How long before a loss a placement may have ended whose copies are looked for: what goes takes a while."""


def whose_there(copy: Json, workload: Json | None, marks: Marks, workers: Collection[str]) -> Whose:
    """Whose a copy is, as `Situation.whose` says it of one on a worker that is read.

    Args:
        copy: of the Workload or of its job, on any worker.
        workload: the manager's; None: it is gone.
        marks: by which copies are marked.
        workers: all that are known: one of them may lead to the same cluster, as may one that is gone and has it.
    """
    if not marks.are_on(copy):
        return Whose.UNPROVEN
    if workload is None or is_terminating(workload):
        return Whose.EARLIER
    facts = WORKLOADS.of(workload)
    names = filter(None, {*workers, facts.cluster_name, facts.noted_worker})
    is_this = any(marks.proof(copy, workload, name) is Proof.EXACT for name in names)
    return Whose.THIS if is_this else Whose.EARLIER


def may_be_over(workload: Json | None, check: str, worker: ClusterName) -> bool:
    """Whether a worker may have what is of no attempt that goes on, and of which a mark alone tells that.

    Args:
        workload: the manager's; None: it is gone.
        check: our check on it.
        worker: a lost one.
    """
    if workload is None:
        return True
    facts = WORKLOADS.of(workload)
    if facts.is_elastic or facts.component_index is not None:
        return False  # another slice, or another part of the group, may have the job
    if facts.is_terminating:
        return True
    if facts.cluster_name == worker:
        return facts.is_evicted and not facts.is_finished
    return facts.cluster_name is not None or check_state(workload, check) is not CheckState.READY


def has_left(workload: Json, worker: ClusterName, lost_since: datetime | None) -> bool:
    """Whether the Workload says of itself that it was taken from a worker that was lost, or just before that.

    Args:
        workload: the manager's.
        worker: a lost one.
        lost_since: when it was seen last; None: an earlier process has seen that, and any placement there counts.
    """
    if WORKLOADS.of(workload).noted_worker == worker:
        return True
    ends = [
        parse_timestamp(placement.get("until"))
        for placement in placements(workload)
        if placement.get("worker") == worker
    ]
    if lost_since is None:
        return bool(ends)
    return any(end is not None and end >= lost_since - BEFORE_LOSS for end in ends)


def stop_over(
    worker: ClusterName,
    workload: Json | None,
    copy: Json | None,
    jobs: Sequence[tuple[JobAdapter, JobCopy]],
    *,
    marks: Marks,
    workers: Collection[str],
    now: datetime,
) -> Iterator[ApplyStatus | DeleteJob]:
    """What stops a Workload's job on a worker, if it is of an attempt that is over, and runs.

    Its Workload copy is deactivated, so that the Kueue there does not start it again, and stays until the job is gone.
    One of an attempt that ends is not deleted: its status is to be synced.

    Args:
        worker: where.
        workload: the manager's; None: it is gone. `may_be_over` holds for it.
        copy: the Workload copy there; None: there is none, or it cannot be read.
        jobs: the copies of its jobs there, with how to handle each.
        marks: see `whose_there`.
        workers: likewise.
        now: the manager's wall clock.
    """
    facts = COPIES.of(copy) if copy is not None else NO_COPY
    if copy is not None and (is_elastic(copy) or component_index(copy) is not None or facts.is_finished):
        return
    if any(is_elastic(job.object) for _, job in jobs) or _have_ended(jobs):
        return
    of = {uid(obj): whose_there(obj, workload, marks, workers) for obj in filter(None, (copy, *_objects(jobs)))}
    goes_on = workload is not None and not WORKLOADS.of(workload).gives_quota_back
    if goes_on and Whose.THIS in of.values():
        return
    may_run = facts.can_be_asked and (bool(jobs) or facts.has_had_owner)
    if copy is not None and may_run and of[uid(copy)] is not Whose.UNPROVEN:
        yield deactivation(workload, worker, copy, now)
    for adapter, job in jobs:
        runs = not is_terminating(job.object) and adapter.outcome(job.object) is None
        may_go = runs and controller_of(job.object) is None
        if may_go and of[uid(job.object)] is Whose.EARLIER:
            how: Literal["Background", "Foreground"] = "Background" if job.resource == POD else "Foreground"
            yield DeleteJob(worker, job.resource, ObjectKey.of(job.object), uid(job.object), how)


def _have_ended(jobs: Sequence[tuple[JobAdapter, JobCopy]]) -> bool:
    """Whether one of the jobs has ended by itself; of pods, whether all of their group have: one may be replaced."""
    pods = [(adapter, job.object) for adapter, job in jobs if job.resource == POD]
    alone = any(adapter.outcome(job.object) is not None for adapter, job in jobs if job.resource != POD)
    return alone or (bool(pods) and pods[0][0].outcome_of([pod for _, pod in pods]) is not None)


def _objects(jobs: Sequence[tuple[JobAdapter, JobCopy]]) -> Iterator[Json]:
    return (job.object for _, job in jobs)
