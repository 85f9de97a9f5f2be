"""What the leader does beside dispatching: tasks of their own, whose requests have deadlines.

An unexpected exception in one of them is logged, and it begins again: none of them may end the dispatching.
"""

from __future__ import annotations

import functools
import random
import socket
from collections.abc import Callable, Iterator

import anyio
import attrs

from multikueue import KubeClient, ObjectKey
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.marks import Marks
from multikueue.core.model.names import Json, Resource
from multikueue.core.model.objects import is_terminating
from multikueue.core.model.worker_names import origin_namespace
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.queue_informers import QueueInformers
from multikueue.runtime.events import EventRecorder
from multikueue.runtime.loop import unending, utc_now
from multikueue.runtime.manager import Manager
from multikueue.runtime.workers.informers import WorkerInformers
from multikueued.doctor.publisher import Reached
from multikueued.metrics.hooks import Metrics
from multikueued.reports.worker_facts import ShownPods
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.run.memory import give_back
from multikueued.run.use_count import UseCount
from multikueued.settings.config import Settings
from multikueued.settings.kinds import chosen_kinds
from multikueued.workers.renewal import Renewer


async def run_beside(settings: Settings, client: KubeClient, metrics: Metrics, manager: Manager) -> None:
    """Work until cancelled, with the caches of a manager that runs."""
    from multikueued.doctor.publisher import (
        FindingsPublisher,  # imports what reads certificates, which only a leader needs
    )

    events = EventRecorder(client, "multikueue-cluster", socket.gethostname(), utc_now)
    cluster = manager.cluster
    renewer = Renewer(
        cluster.clusters.values,
        cluster.secrets.get,
        client,
        str(settings.namespace),
        settings.bound_tokens.enabled,
        events.emit,
        utc_now,
        metrics.tokens,
        random.random,
    )
    kinds = tuple(chosen_kinds(settings))
    reach = functools.partial(reached, manager, metrics.mirrors.of if settings.mirror_pods.logs else None)
    watcher = FindingsPublisher(settings, kinds, client, client.config, reach, cluster.secrets.get, utc_now)
    use = UseCount(cluster.workloads.informer.values, cluster.clusters.values, metrics.used, utc_now)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(unending, "use", use.run)
        tasks.start_soon(unending, "memory", give_back)
        tasks.start_soon(unending, "events", events.run)
        tasks.start_soon(unending, "tokens", renewer.run)
        if settings.findings.enabled:
            tasks.start_soon(unending, "findings", watcher.run)


def reached(manager: Manager, shown: Callable[[str], ShownPods] | None = None) -> Iterator[Reached]:
    """The workers that a manager is connected to; `shown` counts the pods of each, None: they are not shown."""
    for worker in list(manager.workers):
        link, known = worker.state.known, worker.usable
        cluster = manager.cluster.clusters.get(ObjectKey("", worker.name))
        if worker.connection.connected and link is not None and known is not None and cluster is not None:
            watched = functools.partial(watched_queues, known.queues)
            deleted = functools.partial(deleted_copies, known, manager.cluster, Marks(manager.settings.plan.mark_key))
            seen = Reached(worker.name, link.config, known.client, cluster, watched, deleted, known.shares.used_up)
            yield seen if shown is None else attrs.evolve(seen, mirrors=functools.partial(shown, worker.name))


def deleted_copies(known: WorkerInformers, manager: ManagerCluster, marks: Marks) -> list[tuple[Resource, Json]]:
    """The job copies on a worker that somebody has deleted, or that we made for a Workload that is gone."""
    workloads, caches = manager.workloads.informer, [cache.informer for cache in known.jobs.values()]

    def goes(job: Json) -> bool:
        named = prebuilt_workload(job)
        gone = bool(named) and ObjectKey(origin_namespace(job), named) not in workloads
        return is_terminating(job) or (gone and marks.are_on(job))

    return [(cache.resource, job) for cache in caches for job in cache.values() if goes(job)]


def watched_queues(queues: QueueInformers) -> QueuesOnWorker | None:
    """A worker's queues with their figures, while those are watched: only a dispatcher has them watched."""
    if queues.cohorts is None or any(
        not informer.status.synced or informer.status.failures for informer in queues.both
    ):
        return None
    return QueuesOnWorker.of(queues.local_queues.values(), queues.cluster_queues.values())
