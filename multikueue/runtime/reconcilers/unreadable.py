"""Which objects of one Workload cannot be read, on the manager and on a worker: as far as can be told."""

from __future__ import annotations

from collections.abc import Collection

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import Owner, has_members, owner_names
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.workers.children import is_child
from multikueue.runtime.workers.informers import WorkerInformers


def unreadable_workload(manager: ManagerCluster, key: ObjectKey, owned_by: Owner | None) -> str:
    """Which Workload of the manager cannot be read that decisions about one need: itself, or another of its job.

    Args:
        manager: its caches.
        key: the Workload to decide about.
        owned_by: the job behind it.
    """
    if not manager.workloads.informer.unreadable:
        return ""
    job = ObjectKey(key.namespace, owned_by.name) if owned_by is not None else None
    names = [key, *(manager.owned(owned_by.gvk, job) if owned_by is not None and job is not None else ())]
    return next(filter(None, map(manager.workloads.unreadable_note, names)), "")


def unreadable_job(manager: ManagerCluster, key: ObjectKey, workload: Json, owned_by: Owner) -> str:
    """Which of the manager's jobs behind a Workload cannot be read, and why; empty: all can be."""
    cache = manager.cache_of(owned_by.gvk)
    if cache is None or not cache.informer.unreadable:
        return ""
    names = [ObjectKey(key.namespace, owned_by.name)]
    if has_members(workload):
        names = [ObjectKey(key.namespace, name) for name in owner_names(workload, owned_by.gvk)]
        names += sorted(cache.unreadable_of(key))
    return next(filter(None, map(cache.unreadable_note, names)), "")


def unreadable_copies(
    informers: WorkerInformers, key: ObjectKey, owned_by: Owner | None, namespace: str, names: Collection[str] | None
) -> tuple[str, bool]:
    """Which object of a Workload cannot be read on a worker, and why; empty: all can be.

    Args:
        informers: the worker's caches.
        key: the Workload.
        owned_by: the job behind it.
        namespace: where its copies are there.
        names: of its jobs on the manager: it may be all that can be told of a copy; None: they need not be seen.

    Returns:
        The reason, and whether that is a job, so that the Workload copy can be read.
    """
    if all(not cache.informer.unreadable for cache in (informers.workloads, *informers.jobs.values())):
        return "", False  # the rest need not be looked at, of every worker for every decision
    if why := informers.workloads.unreadable_note(ObjectKey(namespace, key.name)):
        return why, False
    if names is None:
        return "", False
    jobs = [ObjectKey(namespace, name) for name in (owned_by.name, *names)] if owned_by is not None else []
    return _unreadable_copy(informers, key, owned_by, jobs), True


def _unreadable_copy(
    informers: WorkerInformers, key: ObjectKey, owned_by: Owner | None, jobs: Collection[ObjectKey]
) -> str:
    for gvk, cache in informers.jobs.items():
        if not cache.informer.unreadable:
            continue
        unreadable = set(cache.unreadable_of(key))
        if owned_by is not None and gvk == owned_by.gvk:
            unreadable.update(jobs)
        for job in sorted(unreadable):
            outline = cache.informer.unreadable.outlines.get(job)
            if outline is not None and not is_child(outline, informers.jobs):
                return cache.unreadable_note(job)
    return ""
