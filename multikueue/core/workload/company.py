"""Company: the rest of a job that runs on a worker, as other parts of a group or other slices of an elastic job.

A job cannot be split, so what belongs to a running one goes to its worker, whatever is decided about workers meanwhile:
a cordon, or that the worker has left the config, as it does at once when a Placement does not select it any more.
"""

from __future__ import annotations

import attrs

from multikueue.core.model import workloads
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import Worker


def has_company(situation: Situation, worker: Worker) -> bool:
    """Whether what a Workload belongs to runs on a worker."""
    if worker.name in situation.group_workers:
        return True
    if not workloads.is_elastic(situation.workload):
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
    if not workloads.is_live(situation.workload) or workloads.is_evicted(situation.workload):
        return situation
    joined = tuple(
        attrs.evolve(one, configured=True) if _may_join(situation, one) else one for one in situation.workers
    )
    if joined == situation.workers:
        return situation
    return attrs.evolve(situation, snapshot=attrs.evolve(situation.snapshot, workers=joined))


def _may_join(situation: Situation, worker: Worker) -> bool:
    return not worker.configured and not worker.removed and has_company(situation, worker)
