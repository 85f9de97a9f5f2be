"""Removing copies: only our own, only those seen, each by its UID."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.labels import WORKLOAD_FINALIZER
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.core.model.workloads import is_elastic
from multikueue.core.workload.effects import DeleteJob, DeleteWorkload, Effect
from multikueue.core.workload.snapshot import JobCopy, Worker


def delete_job(cluster: ClusterName, copy: JobCopy) -> Iterator[Effect]:
    """Delete one job copy, unless that is under way."""
    if not is_terminating(copy.object):
        yield DeleteJob(cluster, copy.resource, ObjectKey.of(copy.object), uid(copy.object))


def delete_workload(cluster: ClusterName, workload: Json) -> Iterator[Effect]:
    """Delete one Workload copy and take Kueue's finalizer off it, whichever of the two is not done yet."""
    finalizers = dig(workload, "metadata", "finalizers") or []
    held = WORKLOAD_FINALIZER in finalizers
    if held or not is_terminating(workload):
        remaining = tuple(entry for entry in finalizers if entry != WORKLOAD_FINALIZER)
        yield DeleteWorkload(cluster, ObjectKey.of(workload), uid(workload), remaining, held)


def clean(worker: Worker, unless: Callable[[Json], bool] = lambda _: False) -> Iterator[Effect]:
    """Remove what lies on one worker: jobs first, so that none is left without the Workload that leads to it.

    A job that belongs to another Workload stays, and so does what it needs; see `keeps_job_alive`.

    Args:
        worker: where; nothing can be done there while it is out of reach, its caches bring us back.
        unless: copies to keep.
    """
    if not worker.reachable:
        return
    for copy in worker.jobs:
        if not unless(copy.object):
            yield from delete_job(worker.name, copy)
    if worker.workload is not None and not unless(worker.workload) and not keeps_job_alive(worker):
        yield from delete_workload(worker.name, worker.workload)


def keeps_job_alive(worker: Worker) -> bool:
    """Whether the Workload copy there is one that an elastic job names which has passed on to a newer slice.

    The worker's Kueue would stop the job without it. The newer slice soon gives the job its own name.
    """
    name = worker.workload["metadata"]["name"] if worker.workload is not None else None
    return any(prebuilt_workload(copy.object) == name and is_elastic(copy.object) for copy in worker.shared)


def clean_all(workers: Iterable[Worker], keep: str | None = None) -> Iterator[Effect]:
    """Remove everything everywhere, but on the worker named `keep`."""
    for worker in workers:
        if worker.name != keep:
            yield from clean(worker)
