"""What the workers' queues have room for: read from their informers into the ledger of the scored dispatcher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.dispatchers.dispatcher import Dispatcher
from multikueue.core.dispatchers.scored import job_annotations, kueue_objects
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import (
    SILENT_AFTER,
    Flavored,
    JobFacts,
    Known,
    QueueFacts,
    Room,
    Running,
)
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION, Failures
from multikueue.core.dispatchers.scored.profile import PROFILE_ANNOTATION
from multikueue.core.dispatchers.scored.reasons import Reason, Why
from multikueue.core.dispatchers.scored.scored import Scored
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, name_of
from multikueue.core.model.worker_names import WorkerNames
from multikueue.core.model.workloads import cluster_name, has_quota
from multikueue.core.workload.snapshot import Snapshot, Worker
from multikueue.kube.informer import Informer
from multikueue.runtime.loop import loop_time
from multikueue.runtime.manager_cluster import ManagerCluster
from multikueue.runtime.queue_informers import QueueInformers
from multikueue.runtime.worker_informers import WorkerInformers
from multikueue.runtime.worker_pool import WorkerPool
from multikueue.runtime.workload_indexes import HOLDING, PENDING

BATCH: Final = 0.2
"""Seconds for which changes of figures are collected: Kueue itself writes a queue's status once a second at most."""
ROUND: Final = 5.0
"""Seconds between two looks without a change: a queue of others counts for a while only."""
SHOWN_AFTER: Final = 3.0
"""Seconds until what a copy got is certain to stand in the status of its queue."""


@attrs.define(eq=False)
class WorkerRooms:
    """Keeps the ledger up to date, and enqueues held Workloads that have room now."""

    manager: ManagerCluster
    workers: WorkerPool
    enqueue: Callable[[ObjectKey], object]
    clock: Callable[[], datetime]
    ledger: Ledger = attrs.field(factory=Ledger, init=False)
    _facts: dict[ClusterName, dict[str, QueueFacts]] = attrs.field(factory=dict, init=False)
    _changed: dict[ClusterName, None] = attrs.field(factory=dict, init=False)
    _leaving: dict[ObjectKey, float] = attrs.field(factory=dict, init=False)
    """Workloads that wait no more, and when the ledger forgets them, on the loop's clock."""
    _news: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def changed(self, worker: ClusterName) -> None:
        """A queue of a worker changed, or whether it can be read."""
        self._changed[worker] = None
        self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with anyio.move_on_after(ROUND):
                await self._news.wait()
                await anyio.sleep(BATCH)
            self._news = anyio.Event()
            self.look()

    def look(self) -> None:
        """Read what has changed; enqueue those that this makes room for."""
        names = {worker.name for worker in self.workers}
        for name in [*self._changed, *(name for name in self._facts if name not in names)]:
            self._read(name)
        self._changed.clear()
        now = loop_time()
        for key in [key for key, at in self._leaving.items() if at <= now]:
            del self._leaving[key]
            self.ledger.drop(key)
        for key in self.ledger.woken(self.clock()):
            self.enqueue(key)

    def planned(self, key: ObjectKey, claim: Entry | None) -> None:
        """A Workload has been planned.

        Args:
            key: of the Workload.
            claim: what it waits for; None: it does not. What it got is counted until the figures show it.
        """
        if claim is not None:
            self._leaving.pop(key, None)
            self.ledger.put(claim)
        elif key not in self._leaving and key in self.ledger:
            self._leaving[key] = loop_time() + SHOWN_AFTER
            self._news.set()

    def shown(self, seen: Snapshot, config: Json | None) -> Snapshot:
        """A snapshot with what a dispatcher needs of a Workload that waits for a worker."""
        workload = seen.workload
        if workload is None or seen.check is None or not has_quota(workload) or cluster_name(workload) is not None:
            return seen
        workers = tuple(attrs.evolve(one, room=self._room(one, seen.key, workload)) for one in seen.workers)
        return attrs.evolve(seen, workers=workers, job_facts=self._job(workload, seen, config))

    def _room(self, seen: Worker, key: ObjectKey, workload: Json) -> Room:
        """What is known of the queue on a worker that a Workload goes to."""
        worker, names = seen.name, WorkerNames.of(seen.annotations)
        informers = self._informers(worker)
        if informers is None or not informers.queues.known:
            return Room()
        here = ObjectKey(key.namespace, dig(workload, "spec", "queueName") or "")
        queue = informers.queues.local_queues.get(names.local_queue(here))
        if queue is None:
            return Room(obstacle=Reason(Why.NO_LOCAL_QUEUE))
        name = dig(queue, "spec", "clusterQueue") or ""
        facts = self._facts.get(worker, {}).get(name)
        if facts is None:
            return Room(obstacle=Reason(Why.QUEUE_INACTIVE) if worker in self._facts else None)
        place, now = (worker, name), self.clock()
        return Room(facts, self.ledger.net(key, place, now), self.ledger.leads(key, place))

    def _job(self, workload: Json, seen: Snapshot, config: Json | None) -> JobFacts:
        """What is known of a Workload beside its own object."""
        annotations = next((annotations_of(job) for job in seen.jobs.values()), {})
        together = job_annotations.read({**annotations, **annotations_of(workload)}).together
        return JobFacts(
            request=kueue_objects.request(workload),
            annotations=annotations,
            profile=annotations_of(config or {}).get(PROFILE_ANNOTATION) or "default",
            check=seen.check or "",
            company=self._company(seen.key.namespace, together) if together else None,
        )

    def _company(self, namespace: str, job: str) -> ClusterName | None:
        """The worker of a job, as `job/train` or `rayjob.ray.io/train` names it."""
        kind, _, name = job.partition("/")
        for gvk in self.manager.jobs:
            if kind in (gvk.kind.lower(), f"{gvk.kind.lower()}.{gvk.group}"):
                for key in self.manager.owned(gvk, ObjectKey(namespace, name)):
                    worker = cluster_name(self.manager.workloads.get(key) or {})
                    if worker is not None:
                        return ClusterName(worker)
        return None

    def _informers(self, worker: ClusterName) -> WorkerInformers | None:
        found = self.workers.get(worker)
        return found.known if found is not None else None

    def _read(self, worker: ClusterName) -> None:
        """Compute the facts of all queues of a worker."""
        informers, before = self._informers(worker), self._facts.pop(worker, {})
        found: dict[str, QueueFacts] = {}
        if informers is not None and informers.queues.known:
            found = self._facts[worker] = dict(self._queues(worker, informers, before))
        for name in {**before, **found}:
            self.ledger.set_queue((worker, name), found.get(name))

    def _queues(
        self, worker: ClusterName, informers: WorkerInformers, before: Mapping[str, QueueFacts]
    ) -> Iterator[tuple[str, QueueFacts]]:
        queues, copies = informers.queues, informers.workloads.informer
        known, until = _known(queues), self._penalized_until(worker)
        tree = kueue_objects.tree(queues.cluster_queues.values(), _readable(queues.cohorts))
        local: dict[str, list[str]] = {}
        for key, target in queues.targets():
            local.setdefault(target, []).append(str(key))
        for queue in queues.cluster_queues.values():
            name = name_of(queue)
            yield (
                name,
                kueue_objects.queue_facts(
                    tree,
                    queue,
                    self.clock(),
                    known=known,
                    ours_pending=sum(len(copies.keys_by(PENDING, key)) for key in local.get(name, ())),
                    running=_running(copy for key in local.get(name, ()) for copy in copies.by(HOLDING, key)),
                    before=before.get(name),
                    penalized_until=until,
                ),
            )

    def _penalized_until(self, worker: ClusterName) -> datetime | None:
        cluster = self.manager.clusters.get(ObjectKey("", worker))
        return Failures.parse(annotations_of(cluster or {}).get(FAILURES_ANNOTATION)).until


def followed_rooms(
    dispatcher: Dispatcher,
    manager: ManagerCluster,
    workers: WorkerPool,
    enqueue: Callable[[ObjectKey], object],
    clock: Callable[[], datetime],
) -> WorkerRooms | None:
    """Rooms that follow the workers' queues, if the dispatcher looks at them; before anything runs."""
    if not isinstance(dispatcher, Scored):
        return None
    rooms = WorkerRooms(manager, workers, enqueue, clock)
    workers.follow_figures(rooms.changed)
    manager.clusters.subscribe(lambda key, _old, _new: rooms.changed(ClusterName(key.name)))
    return rooms


def _known(queues: QueueInformers) -> Known:
    """Whether the figures that are there can be used."""
    for informer in queues.both:
        status = informer.status
        if status.refused:
            return Known.FORBIDDEN
        if status.failing_since is not None and loop_time() - status.failing_since > SILENT_AFTER.total_seconds():
            return Known.SILENT
    return Known.YES


def _readable(cohorts: Informer | None) -> list[Json] | None:
    """The cohorts; None if they cannot be read. A cluster whose Kueue serves none answers so, too."""
    if cohorts is None or not cohorts.status.synced or cohorts.status.refused:
        return None
    return list(cohorts.values())


def _running(copies: Iterator[Json]) -> tuple[Running, ...]:
    """Copies with quota, those of one priority as one."""
    found: dict[int, Counter[Flavored]] = {}
    for copy in copies:
        priority = int(dig(copy, "spec", "priority") or 0)
        found.setdefault(priority, Counter()).update(kueue_objects.usage(copy))
    return tuple(Running(priority, dict(amounts)) for priority, amounts in sorted(found.items()))
