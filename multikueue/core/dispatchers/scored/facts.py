"""What the scored dispatcher knows of workers' queues and of the Workload it chooses for. Values only.

Amounts are in thousandths of a unit (`core.model.quantities`), `pods` included.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import attrs

from multikueue.core.dispatchers.dispatcher import Candidate, Candidates, Known
from multikueue.core.dispatchers.reasons import Reason
from multikueue.core.model.flavors import Flavor, Pods, usable
from multikueue.core.model.names import ClusterName

Flavored: TypeAlias = tuple[str, str]
"""A flavor and a resource."""
Amounts: TypeAlias = Mapping[str, int]
"""By resource."""
FlavorAmounts: TypeAlias = Mapping[Flavored, int]
"""By flavor and resource."""
Place: TypeAlias = tuple[ClusterName, str]
"""A worker and one of its ClusterQueues."""
Shape: TypeAlias = tuple[tuple[tuple[tuple[str, int], ...], Pods | None], ...]
"""By pod set, what it needs and what its pods demand."""

UNPLACED_FOR: Final = timedelta(hours=1)
"""For so long at most what nodes had no place for is a reason to ask another worker."""
OTHERS_FIRST: Final = timedelta(minutes=10)
"""For so long at most what is free belongs to the jobs of others that wait there: some may never fit."""


SHARED_AFTER: Final = timedelta(minutes=1)
"""A queue's counts and our copies are told one after the other: for a moment ours look like jobs of others."""


@attrs.frozen
class Group:
    """A resource group of a ClusterQueue: a pod set gets one flavor of it."""

    resources: frozenset[str]
    flavors: tuple[str, ...]
    """In the order in which Kueue tries them."""
    known: tuple[Flavor, ...] = ()
    """What is known of these flavors, if any of them excludes pods."""

    def usable(self, pods: Pods | None) -> tuple[str, ...]:
        """The flavors that pods may use; None: nobody knows what they demand."""
        return self.flavors if pods is None or not self.known else usable(self.flavors, self.known, pods)


@attrs.frozen
class Running:
    """Copies of ours of one priority that have quota on a worker."""

    priority: int
    amounts: FlavorAmounts


@attrs.frozen
class QueueFacts:
    """One ClusterQueue of one worker. The same value serves all Workloads that go there."""

    name: str
    groups: tuple[Group, ...] = ()
    free: FlavorAmounts = attrs.field(factory=dict)
    """Kueue's `available()` (`room.Tree.available`)."""
    ceiling: FlavorAmounts = attrs.field(factory=dict)
    """What it could hold if nobody else ran (`room.Tree.ceiling`)."""
    nominal: FlavorAmounts = attrs.field(factory=dict)
    known: Known = Known.YES
    active: bool = True
    """Whether its condition Active is True."""
    has_checks: bool = False
    """Whether it has admission checks of its own: then quota is not capacity."""
    others_pending: int = 0
    """`status.pendingWorkloads` without our own copies."""
    others_since: datetime | None = None
    """Since when `others_pending` is above 0."""
    shared_since: datetime | None = None
    """Since when jobs of others run or wait there; None: none does."""
    generation: str = ""
    """UID and generation of the ClusterQueue: another one ends a refusal."""
    within: str = "Never"
    """`spec.preemption.withinClusterQueue`."""
    reclaim: str = "Never"
    """`spec.preemption.reclaimWithinCohort`."""
    borrowable: FlavorAmounts = attrs.field(factory=dict)
    """Of `free`, what is not its own: its lenders take it back."""
    lent: FlavorAmounts = attrs.field(factory=dict)
    """Of its nominal quota, what others of the cohort use."""
    running: tuple[Running, ...] = ()
    """Our copies with quota there."""
    unplaced: Mapping[Shape, datetime] = attrs.field(factory=dict)
    """What nodes there had no place for although there was quota, and when that was told: until something ends."""
    penalized_until: datetime | None = None
    """Of the worker: until then it ranks last, and gets one job at a time (`penalties.py`)."""

    @property
    def terms(self) -> tuple[object, ...]:
        """What decides who may go there, whatever is free."""
        return self.generation, self.active, self.ceiling, self.groups

    @property
    def may_preempt(self) -> bool:
        """Whether it may take quota from others for a Workload."""
        return self.within != "Never" or self.reclaim != "Never"

    @property
    def is_raced(self) -> bool:
        """Whether quota says nothing of what it can take."""
        return self.known not in (Known.YES, Known.AWAITED) or self.has_checks

    def others_wait(self, now: datetime) -> bool:
        """Whether jobs of others stand in its queue, and have for less than `OTHERS_FIRST`."""
        return self.others_pending > 0 and (self.others_since is None or now - self.others_since < OTHERS_FIRST)

    def is_shared(self, now: datetime) -> bool:
        """Whether others than us use it, for longer than `SHARED_AFTER`."""
        return self.shared_since is not None and now - self.shared_since >= SHARED_AFTER

    def places(self, request: ResourceRequest, now: datetime) -> bool:
        """Whether nodes may have a place for its pods: they had none for the same ones if not."""
        at = self.unplaced.get(request.shape)
        return at is None or now - at >= UNPLACED_FOR

    def penalized(self, now: datetime) -> bool:
        """Whether jobs have failed there by the worker's fault, and none has succeeded since."""
        return self.penalized_until is not None and now < self.penalized_until

    def on_trial(self, now: datetime) -> bool:
        """Whether a job of ours shows just now whether the worker is well again: others wait for that."""
        return self.penalized(now) and bool(self.running)

    def has_room_to_give(self, now: datetime) -> bool:
        """Whether its free figures mean anything."""
        return self.active and not self.is_raced and not self.others_wait(now) and not self.on_trial(now)


def still_unplaced(facts: QueueFacts, before: QueueFacts | None) -> Mapping[Shape, datetime]:
    """What of that holds on: nothing once the queue is another, or there is more free than before."""
    if before is None or before.generation != facts.generation:
        return {}
    grown = any(amount > before.free.get(key, 0) for key, amount in facts.free.items())
    return {} if grown else before.unplaced


def times_of_others(
    pending: int, running: int, now: datetime, before: QueueFacts | None
) -> tuple[datetime | None, datetime | None]:
    """The `others_since` and `shared_since` of a queue in which so many jobs of others wait and run now."""
    waited, shared = (before.others_since, before.shared_since) if before is not None else (None, None)
    return (waited or now) if pending else None, (shared or now) if pending or running else None


@attrs.frozen
class PodSet:
    """What the pods of one pod set need together."""

    needs: Amounts
    count: int = 1
    pods: Pods | None = None
    """What they demand of nodes; None: that is not known."""


@attrs.frozen
class ResourceRequest:
    """What a Workload needs: hashable by `shape`, and equal requests have an equal one."""

    pod_sets: tuple[PodSet, ...] = ()

    @property
    def shape(self) -> Shape:
        """The same for all requests that fit wherever this one fits."""
        return tuple((tuple(sorted(pod_set.needs.items())), pod_set.pods) for pod_set in self.pod_sets)

    @property
    def total(self) -> dict[str, int]:
        """Over all pod sets, by resource."""
        summed: dict[str, int] = {}
        for pod_set in self.pod_sets:
            for resource, amount in pod_set.needs.items():
                summed[resource] = summed.get(resource, 0) + amount
        return summed


@attrs.frozen
class Room:
    """What one worker has for one Workload. All empty: nothing is known."""

    queue: QueueFacts | None = None
    """The ClusterQueue that the Workload's LocalQueue leads to there."""
    net: FlavorAmounts | None = None
    """Free there for this Workload, net of the claims ahead of it; None: what the queue says."""
    offers: int = 0
    """Other jobs of ours that it is offered, or has got so lately that its figures may not show it."""
    leads: bool = False
    """Whether it may be used to see whether the worker preempts: the first of its priority that is held for it."""
    obstacle: Reason | None = None
    """What is in the way, as far as the queues tell."""


def room_of(worker: Candidate) -> Room:
    """What is known of a worker for the Workload that it may get."""
    return worker.facts if isinstance(worker.facts, Room) else Room()


@attrs.frozen
class JobFacts:
    """What is known of the Workload beside its own object."""

    request: ResourceRequest | None = None
    """None: the manager has not said what it needs."""
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    """Of its job: those of the Workload win over them."""
    profile: str = "default"
    """Of its MultiKueueConfig: the annotation `multikueue.dev/dispatch-profile`."""
    company: ClusterName | None = None
    """Where the job runs that `multikueue.dev/same-cluster-as` names; None: nowhere yet."""
    overtaken_by: datetime | None = None
    """When the last job of its ClusterQueue got its quota that has started; None: none has."""


def job_of(candidates: Candidates) -> JobFacts:
    """What is known of the Workload that these may get."""
    return candidates.facts if isinstance(candidates.facts, JobFacts) else JobFacts()


def obstacle_of(worker: Candidate) -> Reason | None:
    """Why it cannot get the Workload, as far as the caches tell."""
    return worker.obstacle or room_of(worker).obstacle
