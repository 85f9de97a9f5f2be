"""What the workers' queues have room for: read from their informers into the ledger of the scored dispatcher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import anyio
import attrs

from multikueue.core.config.own_queues import unfit
from multikueue.core.config.quota import check_names
from multikueue.core.dispatchers.dispatcher import Facts, Known, Waiting
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.dispatchers.scored import job_annotations, kueue_objects
from multikueue.core.dispatchers.scored.copies import got_nodes, has_no_node
from multikueue.core.dispatchers.scored.entries import Entry
from multikueue.core.dispatchers.scored.facts import JobFacts, Place, QueueFacts, ResourceRequest, Room, Shape
from multikueue.core.dispatchers.scored.ledger import Ledger
from multikueue.core.dispatchers.scored.penalties import FAILURES_ANNOTATION, Failures
from multikueue.core.dispatchers.scored.starts import starves
from multikueue.core.model.labels import PROFILE_ANNOTATION
from multikueue.core.model.names import ClusterName, Json, ObjectKey
from multikueue.core.model.objects import annotations_of, name_of
from multikueue.core.model.workloads import cluster_name, cluster_queue, is_finished, reserved_at
from multikueue.errors import Cause
from multikueue.logs import get_logger
from multikueue.runtime.caches.manager_cluster import ManagerCluster
from multikueue.runtime.caches.workload_indexes import HOLDING, PENDING
from multikueue.runtime.loop import loop_time
from multikueue.runtime.parts import PartHost
from multikueue.runtime.workers.informers import WorkerInformers

log = get_logger(__name__)

BATCH: Final = 0.2
"""Seconds for which changes of figures are collected: Kueue itself writes a queue's status once a second at most."""
ROUND: Final = 5.0
"""Seconds between two looks without a change: a queue of others counts for a while only."""
FIGURES: Final = 50_000
"""Figures of one worker's queues that are looked at; one that has more is offered jobs as one that shows none."""
RATE: Final = 20_000
"""Of a worker with many figures or copies: so many a second are looked at, on average, which takes a quarter of the
loop's time. Whoever makes them there decides how often they change."""
SHOWN_AFTER: Final = 3.0
"""Seconds until what a copy got is certain to stand in the status of its queue."""


@attrs.frozen
class Company:
    """A job that others go together with."""

    namespace: str
    job: str
    """As `job/train`."""
    worker: ClusterName | None = None
    """Where it is; None: nowhere yet."""


@attrs.define(eq=False)
class WorkerFigures:
    """What was read last of the queues of one worker."""

    facts: Mapping[str, QueueFacts] | None = None
    """Of each ClusterQueue; None: its figures cannot be used."""
    targets: Mapping[ObjectKey, str] = attrs.field(factory=dict)
    """The ClusterQueue of each LocalQueue."""
    state: Known | None = None
    """As of the last look; None before the first one."""
    unused: Known | None = None
    """Why its figures are not used although they could be read."""
    due: float = 0.0
    """When they may be read again, on the loop's clock."""
    changed: bool = False


@attrs.define(eq=False)
class WorkerRooms:
    """Keeps the ledger up to date, and enqueues held Workloads that have room now."""

    host: PartHost
    ledger: Ledger = attrs.field(factory=Ledger, init=False)
    _latest: dict[str, datetime] = attrs.field(factory=dict, init=False)
    """By ClusterQueue of the manager: when the last job got its quota that has started."""
    _figures: dict[ClusterName, WorkerFigures] = attrs.field(factory=lambda: defaultdict(WorkerFigures), init=False)
    _followers: dict[ObjectKey, Company] = attrs.field(factory=dict, init=False)
    """Workloads that wait for another job, or for room where it runs."""
    _leaving: dict[ObjectKey, float] = attrs.field(factory=dict, init=False)
    """Workloads that wait no more, and when the ledger forgets them, on the loop's clock."""
    _news: anyio.Event = attrs.field(factory=anyio.Event, init=False)

    def changed(self, worker: ClusterName) -> None:
        """A queue of a worker changed, or whether it can be read."""
        self._figures[worker].changed = True
        self._news.set()

    def job_changed(self, _key: ObjectKey, _old: Json | None, new: Json | None) -> None:
        """A Workload of the manager changed: it may have started."""
        if new is not None and cluster_name(new) is not None and (reserved := reserved_at(new)) is not None:
            queue = cluster_queue(new)
            self._latest[queue] = max(reserved, self._latest.get(queue, reserved))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with anyio.move_on_after(self._until_due()):
                await self._news.wait()
                await anyio.sleep(BATCH)
            self._news = anyio.Event()
            self.look()

    def _until_due(self) -> float:
        left = (figures.due - loop_time() for figures in self._figures.values() if figures.changed)
        return max(BATCH, min((ROUND, *left)))

    def look(self) -> None:
        """Read what has changed; enqueue those that this makes room for."""
        there, now = {worker.name: None for worker in self.host.workers}, loop_time()
        for name in {**there, **self._figures}:
            figures = self._figures[name]
            figures.changed |= figures.state is not self._state(name)
            if name not in there or (figures.changed and now >= figures.due):
                self._read(name)
        for name in self._figures.keys() - there:
            del self._figures[name]
        moved = {
            company
            for company in set(self._followers.values())
            if self._company(company.namespace, company.job) != company
        }
        for key in [key for key, company in self._followers.items() if company in moved]:
            del self._followers[key]
            self.host.enqueue(key)
        for key in [key for key, at in self._leaving.items() if at <= now]:
            del self._leaving[key]
            self.ledger.drop(key)
        for key in self.ledger.woken(self.host.process.clock()):
            self.host.enqueue(key)

    def starving(self) -> int:
        """How many are held for too long (`starts.starves`)."""
        now = self.host.process.clock()
        return sum(starves(entry.reserved, self._latest.get(entry.queue), now) for entry in self.ledger.waiting())

    def planned(self, key: ObjectKey, claim: object) -> None:
        """See `Figures`. What a Workload got counts until the figures show it, or until it has ended."""
        if claim is None:
            self._followers.pop(key, None)
        if isinstance(claim, Entry):
            self._leaving.pop(key, None)
            self.ledger.put(claim)
            for place in claim.unplaced:
                self._note_unplaced(place, claim.request)
        elif key in self.ledger:
            ended = is_finished(self.host.manager.workloads.get(key) or {})
            if ended or key not in self._leaving:
                self._leaving[key] = loop_time() + (0.0 if ended else SHOWN_AFTER)
                self._news.set()

    def _note_unplaced(self, place: Place, request: ResourceRequest) -> None:
        """The next ones of its shape are asked for elsewhere first."""
        facts, now = self._facts(place), self.host.process.clock()
        if facts is not None and facts.places(request, now):
            self._set_unplaced(place, facts, {**facts.unplaced, request.shape: now})

    def _note_placed(self, place: Place, request: ResourceRequest, since: datetime) -> None:
        """Pods of its shape have got nodes: that ends what was noted before."""
        facts, shape = self._facts(place), request.shape
        if facts is not None and shape in facts.unplaced and facts.unplaced[shape] < since:
            self._set_unplaced(place, facts, {other: at for other, at in facts.unplaced.items() if other != shape})

    def _facts(self, place: Place) -> QueueFacts | None:
        figures = self._figures.get(place[0])
        return (figures.facts or {}).get(place[1]) if figures is not None else None

    def _set_unplaced(self, place: Place, facts: QueueFacts, unplaced: Mapping[Shape, datetime]) -> None:
        (worker, name), facts = place, attrs.evolve(facts, unplaced=unplaced)
        self._figures[worker].facts = {**(self._figures[worker].facts or {}), name: facts}
        self.ledger.set_queue(place, facts)

    def placed(self, workload: Json, worker: ClusterName, queue: ObjectKey, pods: Sequence[Json]) -> None:
        """See `Figures`. Pods are seen where they are the copies themselves: for those of other kinds it would take the
        right to list all pods of a worker."""
        figures = self._figures.get(worker)
        place = worker, figures.targets.get(queue, "") if figures is not None else ""
        facts, hang = self._facts(place), any(map(has_no_node, pods))
        if facts is None or not (hang or facts.unplaced) or (request := kueue_objects.request(workload)) is None:
            return  # as a rule
        if hang:
            self._note_unplaced(place, request)
        elif (since := got_nodes(pods)) is not None:
            self._note_placed(place, request, since)

    def facts(self, waiting: Waiting) -> Facts:
        """See `Figures`."""
        rooms = {worker: self._room(worker, queue, waiting.key) for worker, queue in waiting.queues.items()}
        return Facts(self._job(waiting), rooms)

    def _room(self, worker: ClusterName, queue: ObjectKey, key: ObjectKey) -> Room:
        """What is known of the queue on a worker that a Workload goes to."""
        figures = self._figures.get(worker)
        if figures is None or figures.facts is None:
            state = figures.state if figures is not None else None
            return Room(QueueFacts("", known=state or Known.AWAITED))
        name = figures.targets.get(queue)
        if name is None:
            return Room(obstacle=Reason(Cause.NO_LOCAL_QUEUE))
        informers = self._informers(worker)
        own = _own_queue_room(name, informers, self.host.manager) if informers is not None else None
        if own is not None:
            return own
        facts = figures.facts.get(name)
        if facts is None:
            return Room(obstacle=Reason(Cause.QUEUE_INACTIVE))
        place, now = (worker, name), self.host.process.clock()
        ledger = self.ledger
        return Room(facts, ledger.net(key, place, now), ledger.offers(key, place), ledger.leads(key, place))

    def _job(self, waiting: Waiting) -> JobFacts:
        """What is known of a Workload beside its own object."""
        key, workload = waiting.key, waiting.workload
        annotations = next((annotations_of(job) for job in waiting.jobs.values()), {})
        together = job_annotations.read({**annotations, **annotations_of(workload)}).together
        company = self._company(key.namespace, together) if together else None
        if company is not None:
            self._followers[key] = company
        else:
            self._followers.pop(key, None)
        return JobFacts(
            request=kueue_objects.request(workload),
            annotations=annotations,
            profile=annotations_of(waiting.config).get(PROFILE_ANNOTATION) or "default",
            company=company.worker if company is not None else None,
            overtaken_by=self._latest.get(cluster_queue(workload)),
        )

    def _company(self, namespace: str, job: str) -> Company:
        """Where a job is, as `job/train` or `rayjob.ray.io/train` names it."""
        for gvk in self.host.manager.jobs:
            name = job_annotations.job_named(job, gvk)
            for key in self.host.manager.owned(gvk, ObjectKey(namespace, name)) if name else ():
                worker = cluster_name(self.host.manager.workloads.get(key) or {})
                if worker is not None:
                    return Company(namespace, job, ClusterName(worker))
        return Company(namespace, job)

    def _informers(self, worker: ClusterName) -> WorkerInformers | None:
        client = self.host.workers.get(worker)
        return client.known if client is not None else None

    def _state(self, worker: ClusterName) -> Known:
        """Whether its figures can be used."""
        informers = self._informers(worker)
        known = Known.AWAITED if informers is None else informers.queues.figures_known
        return self._figures[worker].unused or known if known is Known.YES else known

    def _read(self, worker: ClusterName) -> None:
        """Compute the facts of all queues of a worker; enqueue those that may be able to go there now."""
        informers, earlier = self._informers(worker), self._figures[worker]
        figures, before = WorkerFigures(), earlier.facts or {}
        self._figures[worker] = figures
        if informers is not None and informers.queues.known:
            try:
                self._take_in(worker, informers, before)
            except Exception as error:  # whatever a worker shows costs its own figures only
                if earlier.state is not Known.ODD:
                    log.error("figures of a worker cannot be read", cluster=worker, exc_info=error)
                figures.unused = Known.ODD
        figures.state, facts = self._state(worker), figures.facts or {}
        for name in {**before, **facts}:
            self.ledger.set_queue((worker, name), facts.get(name))
        same = figures.targets == earlier.targets and (earlier.state or Known.AWAITED) is figures.state
        if not same or {name: queue.terms for name, queue in before.items()} != {
            name: queue.terms for name, queue in facts.items()
        }:
            for key in self.ledger.held({(worker, name) for name in before} if same else ()):
                self.host.enqueue(key)

    def _take_in(self, worker: ClusterName, informers: WorkerInformers, before: Mapping[str, QueueFacts]) -> None:
        """Keep the facts of a worker's queues, unless it has too many figures; note when it is looked at again."""
        queues, figures = informers.queues, self._figures[worker]
        cohorts = queues.cohorts.values() if queues.cohorts is not None else ()
        size = kueue_objects.figures((*queues.cluster_queues.values(), *cohorts)) + len(queues.local_queues)
        figures.due = loop_time() + (size + len(informers.workloads.informer)) / RATE
        if size > FIGURES:
            figures.unused = Known.TOO_MANY
        else:
            facts = dict(self._queues(worker, informers, before))
            figures.targets, figures.facts = dict(queues.targets()), facts

    def _queues(
        self, worker: ClusterName, informers: WorkerInformers, before: Mapping[str, QueueFacts]
    ) -> Iterator[tuple[str, QueueFacts]]:
        queues, copies = informers.queues, informers.workloads.informer
        until = self._penalized_until(worker)
        flavors = queues.flavors.known if queues.flavors is not None else {}
        tree = kueue_objects.tree(queues.cluster_queues.values(), queues.readable_cohorts, flavors)
        local: dict[str, list[str]] = {}
        for key, target in queues.targets():
            local.setdefault(target, []).append(str(key))
        for queue in queues.cluster_queues.values():
            name = name_of(queue)
            ours = (copy for key in local.get(name, ()) for copy in copies.by(HOLDING, key))
            yield (
                name,
                kueue_objects.queue_facts(
                    tree,
                    queue,
                    self.host.process.clock(),
                    known=self._state(worker),
                    ours_pending=sum(len(copies.keys_by(PENDING, key)) for key in local.get(name, ())),
                    ours=ours,
                    before=before.get(name),
                    penalized_until=until,
                ),
            )

    def _penalized_until(self, worker: ClusterName) -> datetime | None:
        cluster = self.host.manager.clusters.get(ObjectKey("", worker))
        return Failures.parse(annotations_of(cluster or {}).get(FAILURES_ANNOTATION)).until


def _own_queue_room(name: str, informers: WorkerInformers, manager: ManagerCluster) -> Room | None:
    """What a ClusterQueue of a worker has for copies because of whose it is; None: what its figures say.

    While nobody knows whether it is the manager's, one in which copies would wait for our check for ever is not used.
    """
    queues, identity = informers.queues, informers.identity
    if not identity.may_be_manager:
        return None
    ours = {name_of(check) for check in manager.checks.values() if manager.is_ours(check)}
    queue = queues.cluster_queues.get(ObjectKey("", name))
    leads_away = queue is not None and not ours.isdisjoint(check_names(queue))
    if identity.is_manager:
        flaw = unfit(list(queues.cluster_queues.values()), queues.readable_cohorts or (), ours).get(name)
        why = f"ClusterQueue {name} there cannot hold copies: {flaw}"
        return Room(obstacle=Reason(Cause.NEVER_STARTS if leads_away else Cause.QUEUE_UNFIT, why)) if flaw else None
    why = f"ClusterQueue {name} there has our check, and it is not known yet whether the worker is the manager itself"
    return Room(obstacle=Reason(Cause.QUEUE_UNFIT, why)) if leads_away else None
