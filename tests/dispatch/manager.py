"""The manager: its own Kueue, and what the engine does around a dispatcher."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, Protocol

import attrs

from multikueue.core.dispatchers.dispatcher import Nomination
from tests.dispatch.clock import Call, Clock
from tests.dispatch.kueue import ClusterQueue, Copy, Kueue, State
from tests.dispatch.load import Job, Load
from tests.dispatch.quota import UNLIMITED, QuotaNode
from tests.dispatch.sites import ADMISSION, ONE_WAY, Site
from tests.dispatch.workloads import Placement, Workload

REQUEST: Final = 0.002
"""Seconds of the manager's one core for a request to a worker."""
WORKER_LOST: Final = 900.0
"""Seconds after which a job on a worker out of reach is given up."""


@attrs.frozen
class Settings:
    """Of the manager, and how far the simulation follows the first one."""

    unlimited: bool = False
    """Whether its quota is unlimited; else the sum of the workers'."""
    by_submission: bool = False
    """Whether copies stand in the workers' queues by the job's age, as in the first simulation; else by the offer's."""
    requeues: int = 20
    """How often a job is evicted before it is deactivated."""
    stale: float = 1.0
    """Seconds for which workers' Kueues gather changes before they write a status: Kueue's is 1."""
    delay: tuple[float, float] = (0.0, 0.0)
    """Between which seconds requests to a worker are late, drawn for each copy. Without, of workers with room the
    first by name admits first: that packs, and no real race does."""


class Policy(Protocol):
    """A dispatcher, and what it is told."""

    def nominate(self, workload: Workload) -> Nomination:
        """Ask it."""

    def settled(self, workload: Workload) -> None:
        """It waits no longer: a worker has it, or it has lost its quota."""

    def ended(self, workload: Workload, site: Site, copy: Copy) -> None:
        """Its job has run to its end there."""

    def touched(self, site: Site) -> None:
        """A ClusterQueue there changes."""


class Manager:
    """Offers Workloads to workers, records the first that admits, and starts the job there."""

    def __init__(self, clock: Clock, load: Load, settings: Settings) -> None:
        self.clock = clock
        self.settings = settings
        self.policy: Policy | None = None
        self.urgent = any(job.priority for job in load.jobs)
        """Whether workers' queues let higher priorities preempt: only if there are any."""
        self.workloads: list[Workload] = []
        self.waiting: dict[Workload, None] = {}
        self.finished = 0
        self.requests = 0
        self.lost_admissions = 0
        self._busy_until = 0.0
        self._random = Random(len(load.jobs))
        self.sites = {worker.name: Site(clock, worker, self) for worker in load.workers}
        self.by_queue = [[s for s in self.sites.values() if s.worker.queue == q] for q in range(load.queues)]
        self._queues = [ClusterQueue(self._quota(sites)) for sites in self.by_queue]
        self._kueues = [Kueue(clock, (queue,), _OwnKueue(self)) for queue in self._queues]
        for job in load.jobs:
            clock.at(job.submit, self._submit, job)
        for site in self.sites.values():
            if site.worker.lost:
                clock.at(site.worker.lost[0], self._reach_changed, site)
                clock.at(site.worker.lost[0] + WORKER_LOST, self._give_up_on, site)
                clock.at(site.worker.lost[1], self._reach_changed, site)

    def _quota(self, sites: Sequence[Site]) -> QuotaNode:
        if self.settings.unlimited:
            return QuotaNode([UNLIMITED, UNLIMITED])
        flavors = [flavor for site in sites for flavor in site.worker.flavors]
        return QuotaNode([sum(flavor.gpus for flavor in flavors), sum(flavor.cpus for flavor in flavors)])

    def _submit(self, job: Job) -> None:
        quota = Copy(None, job.request, (0,), job.priority, job.submit)
        quota.owner = workload = Workload(job, quota, job.submit)
        self.workloads.append(workload)
        self._kueues[job.queue].submit(quota, self._queues[job.queue])

    def reserved(self, workload: Workload, copy: Copy) -> None:
        """Its own Kueue has given quota."""
        if workload.quota is copy and copy.state is State.RESERVED:
            workload.reserved = self.clock.now
            self.waiting[workload] = None
            self.look(workload)

    def unreserved(self, workload: Workload) -> None:
        """Its own Kueue has taken quota."""
        workload.preemptions += 1
        self._reset(workload)
        self._requeue(workload)

    def look(self, workload: Workload) -> None:
        """Ask the dispatcher, and do what it says."""
        if not workload.waits or self.policy is None:
            return
        workload.looks += 1
        answer = workload.latest = self.policy.nominate(workload)
        message = workload.message if answer.message is None else answer.message
        if (answer.names, message) != (workload.nominated, workload.message):
            workload.writes += 1
            workload.message = message
            before, workload.nominated = workload.nominated, answer.names
            for name in answer.names:
                if name not in before:
                    self._offer(workload, self.sites[name])
            for name in before:
                if name not in answer.names:
                    self._take_back(workload, name)
        if answer.look_again is not None:
            self.clock.after(answer.look_again, self._look_again, workload, workload.looks)

    def _look_again(self, workload: Workload, looks: int) -> None:
        if workload.looks == looks:
            self.look(workload)

    def _request(self, copy: Copy, site: Site, call: Call, *args: object) -> None:
        """One request to a worker; the only core sends one after the other."""
        workload: Workload = copy.owner
        self._busy_until = max(self._busy_until, self.clock.now) + REQUEST
        self.requests += 1
        if workload.ended is None and not workload.running:
            workload.requests += 1
        site.later(self._busy_until - self.clock.now + ONE_WAY + copy.delay, call, *args)

    def _offer(self, workload: Workload, site: Site) -> None:
        job = workload.job
        copy = Copy(workload, job.request, site.worker.usable(job), job.priority, job.submit, gated=bool(job.priority))
        copy.delay = self._random.uniform(*self.settings.delay)
        workload.copies[site.name] = copy
        self._request(copy, site, self._created, site, copy)

    def _created(self, site: Site, copy: Copy) -> None:
        if not self.settings.by_submission:
            copy.created = self.clock.now
        site.create(copy)

    def _take_back(self, workload: Workload, name: str) -> None:
        workload.answers.pop(name, None)
        if copy := workload.copies.pop(name, None):
            self._request(copy, self.sites[name], self._deleted, self.sites[name], copy)

    def _deleted(self, site: Site, copy: Copy) -> None:
        self.lost_admissions += site.delete(copy)

    def reported(self, site: Site, copy: Copy) -> None:
        """A worker's Kueue has admitted a copy."""
        site.later(ADMISSION + ONE_WAY, self._record, site, copy)

    def _record(self, site: Site, copy: Copy) -> None:
        workload: Workload = copy.owner
        if not workload.waits or workload.copies.get(site.name) is not copy or copy.state is not State.RESERVED:
            return
        workload.winner = site.name
        workload.writes += 1
        self.waiting.pop(workload)
        self._request(copy, site, self._start, site, copy)
        for name in [name for name in workload.copies if name != site.name]:
            self._take_back(workload, name)
        self._settled(workload)

    def _start(self, site: Site, copy: Copy) -> None:
        workload: Workload = copy.owner
        if workload.copies.get(site.name) is copy and site.start(copy, workload.job):
            workload.running = True
            workload.started = self.clock.now
            workload.writes += 1

    def began(self, copy: Copy) -> None:
        """The pods of one that is recorded have nodes."""
        copy.owner.started = self.clock.now

    def answered(self, site: Site, copy: Copy) -> None:
        """A worker's Kueue says why a copy waits."""
        site.later(ADMISSION + ONE_WAY, self._answered, site, copy)

    def _answered(self, site: Site, copy: Copy) -> None:
        workload: Workload = copy.owner
        if not workload.waits or workload.copies.get(site.name) is not copy:
            return
        if copy.blocked:
            if any(not other.gated for other in workload.copies.values()):
                return
            workload.answers[site.name] = "BlockedOnPreemptionGates"
            self._request(copy, site, site.kueue.open_gate, copy, site.ours)
        elif copy.state is State.REFUSED:
            workload.answers[site.name] = "ExceedsMaxQuota" if copy.flavors else "NoMatchingFlavor"
        self.look(workload)

    def ended(self, site: Site, copy: Copy) -> None:
        """A worker's job has ended."""
        site.later(ONE_WAY, self._ended, site, copy)

    def _ended(self, site: Site, copy: Copy) -> None:
        workload: Workload = copy.owner
        if workload.copies.get(site.name) is not copy:
            return
        if self.policy:
            self.policy.ended(workload, site, copy)
        self._finish(workload)
        self._busy_until = max(self._busy_until, self.clock.now) + 2 * REQUEST

    def _finish(self, workload: Workload) -> None:
        workload.ended = self.clock.now
        self.finished += 1
        self._kueues[workload.job.queue].remove(workload.quota, self._queues[workload.job.queue])

    def stopped(self, site: Site, copy: Copy, reason: str) -> None:
        """A worker has taken a copy's quota."""
        site.later(ONE_WAY, self._stopped, site, copy, reason)

    def _stopped(self, site: Site, copy: Copy, reason: str) -> None:
        workload: Workload = copy.owner
        if workload.copies.get(site.name) is not copy or workload.ended is not None:
            return
        if workload.winner != site.name:
            self._take_back(workload, site.name)
            workload.nominated = tuple(name for name in workload.nominated if name != site.name)
            self.look(workload)
            return
        workload.placements.append(Placement(site.name, self.clock.now, reason))
        if reason == "Preempted":
            workload.preemptions += 1
        else:
            workload.evictions += 1
        self._reset(workload)
        kueue, queue = self._kueues[workload.job.queue], self._queues[workload.job.queue]
        kueue.remove(workload.quota, queue)
        if workload.evictions > self.settings.requeues:
            workload.given_up = True
            self._finish(workload)
        else:
            self._requeue(workload)

    def _reset(self, workload: Workload) -> None:
        """The check says Retry, and Kueue clears what was decided."""
        workload.writes += 1
        workload.running = False
        workload.started = workload.reserved = workload.winner = workload.promised = None
        workload.looks += 1
        for name in tuple(workload.copies):
            self._take_back(workload, name)
        workload.nominated = ()
        self.waiting.pop(workload, None)
        self._settled(workload)

    def _requeue(self, workload: Workload) -> None:
        """As old as its eviction."""
        job, workload.queued = workload.job, self.clock.now
        workload.quota = Copy(workload, job.request, (0,), job.priority, workload.queued)
        self.clock.after(0.0, self._kueues[job.queue].submit, workload.quota, self._queues[job.queue])

    def _settled(self, workload: Workload) -> None:
        if self.policy:
            self.policy.settled(workload)

    def touched(self, site: Site) -> None:
        """A worker's ClusterQueue has changed."""
        if self.policy:
            self.policy.touched(site)

    def _reach_changed(self, site: Site) -> None:
        """It is lost, or back: what waits looks at it."""
        for workload in tuple(self.waiting):
            if workload.job.queue == site.worker.queue:
                self.look(workload)

    def _give_up_on(self, site: Site) -> None:
        """It was out of reach for too long: its jobs run elsewhere, and are deleted there when it is back."""
        if site.reachable:
            return
        for workload in self.workloads:
            if workload.winner == site.name and workload.ended is None:
                self._stopped(site, workload.copies[site.name], "WorkerLost")


@attrs.frozen
class _OwnKueue:
    """Listens to the manager's own Kueue."""

    manager: Manager

    def admitted(self, copy: Copy) -> None:
        self.manager.clock.after(0.0, self.manager.reserved, copy.owner, copy)

    def preempted(self, copy: Copy) -> None:
        self.manager.unreserved(copy.owner)

    def answered(self, copy: Copy) -> None:
        """It waits for ever: more than all workers have together was left out."""

    def changed(self) -> None:
        """Nobody looks at its status."""
