"""The jobs of one Workload: one for most kinds; for a pod group, each of its pods.

The copies on a worker follow the manager's members: one that is new there gets a copy, one that is gone takes its copy
along. What has ended, or is being deleted, is not run again; what the manager's Kueue has started is not copied.
"""

from __future__ import annotations

from collections.abc import Iterator

from multikueue.core.model.copies import is_copy_of, is_started
from multikueue.core.model.names import Json
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.workloads import is_elastic
from multikueue.core.workload.cleaning import delete_job
from multikueue.core.workload.effects import CreateJob, Effect
from multikueue.core.workload.situation import Situation
from multikueue.core.workload.snapshot import JobCopy, Worker


def missing_on(situation: Situation, worker: Worker) -> list[Json]:
    """The manager's jobs that should have a copy there and have none, in the order of their names."""
    taken = {_name(copy.object) for copy in (*worker.jobs, *worker.shared) if _is_of_kind(situation, copy)}
    return [job for name, job in sorted(situation.jobs.items()) if name not in taken and _should_run(situation, job)]


def create_missing(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Make the copies that are missing."""
    if situation.adapter.workload_only:
        return
    for job in missing_on(situation, worker):
        copy = situation.adapter.copy(job, situation.stamp)
        yield CreateJob(worker.name, situation.adapter.resource, copy)


def remove_left(situation: Situation, worker: Worker) -> Iterator[Effect]:
    """Remove the copies of members that are gone, or about to go, or another of the same name by now."""
    if not situation.has_members:
        return
    for copy in worker.jobs:
        local = situation.jobs.get(_name(copy.object))
        left = local is None or is_terminating(local) or not is_copy_of(copy.object, local)
        if left and _is_of_kind(situation, copy):
            yield from delete_job(worker.name, copy)


def _should_run(situation: Situation, job: Json) -> bool:
    kept_marks = situation.adapter.resizable and is_elastic(job)  # Kueue does not put such a job back
    if is_terminating(job) or (is_started(job) and not kept_marks):
        return False
    return not situation.has_members or situation.adapter.outcome(job) is None


def _is_of_kind(situation: Situation, copy: JobCopy) -> bool:
    return copy.resource == situation.adapter.resource


def _name(job: Json) -> str:
    return str(job["metadata"]["name"])
