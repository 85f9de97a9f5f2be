"""Workers while they are simulated: their Kueues, their own users, and what runs there."""

from __future__ import annotations

from typing import Final, Protocol

import attrs

from tests.dispatch.clock import Call, Clock
from tests.dispatch.kueue import ClusterQueue, Copy, Kueue, State
from tests.dispatch.load import Job, Worker
from tests.dispatch.nodes import Nodes, nodes_of
from tests.dispatch.quota import QuotaNode

ADMISSION: Final = 0.05
"""Seconds from the quota to its sight."""
ONE_WAY: Final = 0.05
"""Half of a round trip."""
PODS_READY: Final = 300.0
"""Seconds after which a broken worker evicts what it has admitted."""


class Observer(Protocol):
    """What a worker's watch tells the manager, at once; the way takes its time there."""

    def reported(self, site: Site, copy: Copy) -> None:
        """Ours has quota."""

    def answered(self, site: Site, copy: Copy) -> None:
        """Ours is refused, or kept by its gate."""

    def ended(self, site: Site, copy: Copy) -> None:
        """The job of ours has ended."""

    def began(self, copy: Copy) -> None:
        """All pods of ours have a node, later than they were made."""

    def stopped(self, site: Site, copy: Copy, reason: str) -> None:
        """Ours has lost its quota."""

    def touched(self, site: Site) -> None:
        """A ClusterQueue's status changes."""


@attrs.define(eq=False)
class OwnRun:
    """A job of a worker's own user."""

    job: Job
    started: float | None = None
    """None: not yet."""


class Site:
    """One worker. With a cohort, `theirs` is the ClusterQueue of its own users; else that is `ours`, too."""

    def __init__(self, clock: Clock, worker: Worker, observer: Observer) -> None:
        self.worker = worker
        self.name = worker.name
        self.own = [OwnRun(job) for job in worker.own]
        self._clock = clock
        self._observer = observer
        self.nodes = [Nodes(nodes_of(flavor.gpus, flavor.node)) if flavor.node else None for flavor in worker.flavors]
        self.hung: list[float] = []
        """Seconds with quota and without nodes, of each that all nodes had no room for at once."""
        amounts = [amount for flavor in worker.flavors for amount in flavor.quota]
        if worker.cohort:
            top = QuotaNode([0] * len(amounts))
            kept = [int(amount * worker.cohort) for amount in amounts]
            self.theirs = ClusterQueue(QuotaNode(kept, top), reclaim=True)
            rest = [amount - part for amount, part in zip(amounts, kept, strict=True)]
            self.ours = ClusterQueue(QuotaNode(rest, top), reclaim=True)
            self.kueue = Kueue(clock, (self.ours, self.theirs), self)
        else:
            self.ours = self.theirs = ClusterQueue(QuotaNode(amounts))
            self.kueue = Kueue(clock, (self.ours,), self)
        for run in self.own:
            clock.at(run.job.submit, self._submit_own, run)

    @property
    def reachable(self) -> bool:
        """Whether the manager can talk to it."""
        lost = self.worker.lost
        return lost is None or not lost[0] <= self._clock.now < lost[1]

    @property
    def all_own_started(self) -> bool:
        """Whether nobody of its own users waits, or is yet to come."""
        return all(run.started is not None for run in self.own)

    def later(self, delay: float, call: Call, *args: object) -> None:
        """What passes between the manager and it waits until it can be reached."""
        lost = self.worker.lost
        moment = self._clock.now + delay
        if lost and lost[0] <= moment < lost[1]:
            moment = lost[1] + delay
        self._clock.at(moment, call, *args)

    def create(self, copy: Copy) -> None:
        """A request has arrived: offer it."""
        if copy.state is State.PENDING:
            self.kueue.submit(copy, self.ours)

    def delete(self, copy: Copy) -> bool:
        """A request has arrived: take it away; says whether it had quota."""
        had_quota = copy.state is State.RESERVED
        self._remove(copy, self.ours)
        return had_quota

    def start(self, copy: Copy, job: Job) -> bool:
        """A request has arrived: run its job; says whether it runs."""
        if copy.state is not State.RESERVED:
            return False
        if self.worker.broken:
            self._clock.after(PODS_READY, self._unready, copy)
        else:
            self._make_pods(copy, job)
        return True

    def duration(self, copy: Copy, job: Job) -> float:
        """Seconds that it runs here, staging with it."""
        return self.staging(job) + job.runtime / self.worker.flavors[copy.flavor].speed

    def staging(self, job: Job) -> float:
        """Seconds until its data are here."""
        return job.staging if job.region and job.region != self.worker.region else 0.0

    def admitted(self, copy: Copy) -> None:
        """See `kueue.Listener`."""
        if isinstance(copy.owner, OwnRun):
            self._clock.after(ADMISSION, self._start_own, copy, copy.owner)
        else:
            self._observer.reported(self, copy)

    def answered(self, copy: Copy) -> None:
        """See `kueue.Listener`."""
        if not isinstance(copy.owner, OwnRun):
            self._observer.answered(self, copy)

    def preempted(self, copy: Copy) -> None:
        """See `kueue.Listener`: its user's job waits again, as old as before; ours is the manager's affair."""
        self._stop_pods(copy)
        if isinstance(copy.owner, OwnRun):
            copy.owner.started = None
            self._clock.after(0.0, self._submit_own, copy.owner)
        else:
            self._observer.stopped(self, copy, "Preempted")

    def changed(self) -> None:
        """See `kueue.Listener`."""
        self._observer.touched(self)

    def _submit_own(self, run: OwnRun) -> None:
        flavors = self.worker.usable(run.job)
        self.kueue.submit(Copy(run, run.job.request, flavors, run.job.priority, run.job.submit), self.theirs)

    def _start_own(self, copy: Copy, run: OwnRun) -> None:
        if copy.state is State.RESERVED:
            run.started = self._clock.now
            self._make_pods(copy, run.job)

    def _make_pods(self, copy: Copy, job: Job) -> None:
        nodes = self.nodes[copy.flavor]
        copy.job, copy.made = job, self._clock.now
        if nodes is None or nodes.start(copy):
            self._clock.after(self.duration(copy, job), self._ended, copy)
        else:
            self._observer.touched(self)

    def _begin(self, copy: Copy) -> None:
        """The last of its pods has a node."""
        self.hung.append(self._clock.now - copy.made)
        if isinstance(copy.owner, OwnRun):
            copy.owner.started = self._clock.now
        else:
            self._observer.began(copy)
        self._clock.after(self.duration(copy, copy.job), self._ended, copy)

    def _ended(self, copy: Copy) -> None:
        if copy.state is not State.RESERVED:
            return
        if isinstance(copy.owner, OwnRun):
            self._remove(copy, self.theirs)
        else:
            self._remove(copy, self.ours)
            self._observer.ended(self, copy)

    def _remove(self, copy: Copy, queue: ClusterQueue) -> None:
        self._stop_pods(copy)
        self.kueue.remove(copy, queue)

    def _stop_pods(self, copy: Copy) -> None:
        nodes = self.nodes[copy.flavor] if copy.flavor >= 0 else None
        for other in nodes.stop(copy) if nodes is not None else ():
            self._begin(other)

    def _unready(self, copy: Copy) -> None:
        if copy.state is State.RESERVED:
            self._remove(copy, self.ours)
            self._observer.stopped(self, copy, "PodsReadyTimeout")
