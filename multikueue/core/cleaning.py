"""Removing copies: only our own, only those seen, each by its UID."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from multikueue.core.effects import DeleteJob, DeleteWorkload, Effect
from multikueue.core.labels import WORKLOAD_FINALIZER
from multikueue.core.names import ClusterName, Json, ObjectKey
from multikueue.core.objects import dig, is_terminating, uid
from multikueue.core.snapshot import JobCopy, Worker


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

    Args:
        worker: where; nothing can be done there while it is out of reach, its caches bring us back.
        unless: copies to keep.
    """
    if not worker.reachable:
        return
    for copy in worker.jobs:
        if not unless(copy.object):
            yield from delete_job(worker.name, copy)
    if worker.workload is not None and not unless(worker.workload):
        yield from delete_workload(worker.name, worker.workload)


def clean_all(workers: Iterable[Worker], keep: str | None = None) -> Iterator[Effect]:
    """Remove everything everywhere, but on the worker named `keep`."""
    for worker in workers:
        if worker.name != keep:
            yield from clean(worker)
