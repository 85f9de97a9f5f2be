"""One pass of the scheduler over one ClusterQueue: who gets quota, who must make room, who has to wait and why.

Order is priority, then time in the queue, then name. What does not fit waits; with BestEffortFIFO the next ones are
still tried, with StrictFIFO they are not.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.sandbox.kueue.scheduling.cohorts import Cohorts
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest, fewer_pods
from multikueue.sandbox.kueue.scheduling.quota import Assignment, FlavorResource, NoFit, Quota, Usage, assign

Shape: TypeAlias = tuple[int, bool, tuple[PodSetRequest, ...]]
"""What decides whether a workload fits: two of one shape fare alike in one pass."""


@attrs.frozen
class Candidate:
    """A Workload that waits for quota."""

    key: ObjectKey
    priority: int
    since: str
    """RFC 3339 time it queues from."""
    requests: tuple[PodSetRequest, ...]
    checks: frozenset[str] = frozenset()
    """The admission checks it has an entry for."""
    explained: bool = False
    """Whether its status already says why it waits."""
    gated: bool = False
    """Whether it may not take anybody's place."""

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Sort key: who is served first."""
        return (-self.priority, self.since, self.key.name, self.key.namespace)

    @property
    def shape(self) -> Shape:
        """See `Shape`."""
        return (self.priority, self.gated, self.requests)


@attrs.frozen
class Holder:
    """A Workload that has quota."""

    key: ObjectKey
    priority: int
    since: str
    """RFC 3339 time it got its quota."""
    usage: Usage
    evicted: bool = False
    """Whether it is giving its quota back."""
    queued: str = ""
    """RFC 3339 time it queued from: it goes back there if it is evicted."""


@attrs.frozen
class Rules:
    """What a ClusterQueue says about order."""

    strict: bool = False
    preemption: str = "Never"
    reclaim: str = "Never"
    """Whose quota it may take back that others of its cohort have borrowed."""

    @classmethod
    def of(cls, cluster_queue: Json) -> Rules:
        """Read a ClusterQueue."""
        return cls(
            strict=dig(cluster_queue, "spec", "queueingStrategy") == "StrictFIFO",
            preemption=dig(cluster_queue, "spec", "preemption", "withinClusterQueue") or "Never",
            reclaim=dig(cluster_queue, "spec", "preemption", "reclaimWithinCohort") or "Never",
        )


@attrs.frozen
class Neighbours:
    """The other ClusterQueues of its cohort."""

    cohorts: Cohorts
    queue: str
    """The ClusterQueue itself."""
    holders: Mapping[str, Sequence[Holder]]
    """By ClusterQueue, itself included."""

    def taken(self, gone: Collection[ObjectKey], own: Usage) -> Usage:
        """What they have of its capacity, once these Workloads are gone.

        Args:
            own: what it uses itself.
        """
        used = {name: total(holder for holder in holders if holder.key not in gone) for name, holders in self._others()}
        return self.cohorts.taken(self.queue, {**used, self.queue: own})

    def borrowers(self) -> list[Holder]:
        """The Workloads of those that use more than their own."""
        return [
            holder
            for name, holders in self._others()
            for holder in holders
            if any(self.cohorts.borrowed(name, place, total(holders)) for place in holder.usage)
        ]

    def borrows(self, used: Usage) -> bool:
        """Whether it would use more than its own."""
        return any(self.cohorts.borrowed(self.queue, place, used) for place in used)

    def _others(self) -> Iterator[tuple[str, Sequence[Holder]]]:
        return ((name, holders) for name, holders in self.holders.items() if name != self.queue)


def total(holders: Iterable[Holder]) -> Counter[FlavorResource]:
    """What they use together."""
    used: Counter[FlavorResource] = Counter()
    for holder in holders:
        used.update(holder.usage)
    return used


@attrs.frozen
class Pass:
    """The outcome of one pass."""

    admitted: tuple[tuple[Candidate, Assignment], ...]
    preempted: tuple[tuple[Candidate, tuple[Holder, ...]], ...]
    """Who makes room for whom."""
    waiting: tuple[tuple[Candidate, str], ...]
    """Those that were tried in vain, with the reason."""
    refusals: dict[Shape, str]
    """The reasons by shape: they hold for those that were not tried too."""
    blocked: tuple[Candidate, ...] = ()
    """Those that could take somebody's place if their gates were open."""


def schedule(
    quota: Quota,
    rules: Rules,
    pending: Iterable[Candidate],
    holders: Sequence[Holder],
    *,
    shapes: int | None = None,
    neighbours: Neighbours | None = None,
) -> Pass:
    """One pass.

    Args:
        pending: in order (`Candidate.order`).
        quota: with what it may borrow, if it is in a cohort.
        shapes: how many different shapes `pending` has, if known: once all were refused, the rest is not tried.
        neighbours: the others of its cohort.
    """
    return _Scheduler(quota, rules, holders, shapes, neighbours).run(pending)


@attrs.define(eq=False)
class _Scheduler:
    quota: Quota
    rules: Rules
    holders: Sequence[Holder]
    shapes: int | None
    neighbours: Neighbours | None
    usage: Counter[FlavorResource] = attrs.field(init=False)
    leaving: set[ObjectKey] = attrs.field(init=False)
    """Holders whose quota is on its way back, those asked in this pass included."""
    refusals: dict[Shape, str] = attrs.field(factory=dict, init=False)
    blocked: dict[Shape, list[Candidate]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.usage = total(self.holders)
        self.usage.update(self._taken(frozenset()))
        self.leaving = {holder.key for holder in self.holders if holder.evicted}

    def run(self, pending: Iterable[Candidate]) -> Pass:
        admitted: list[tuple[Candidate, Assignment]] = []
        preempted: list[tuple[Candidate, tuple[Holder, ...]]] = []
        waiting: list[tuple[Candidate, str]] = []
        for candidate in pending:
            if candidate.shape in self.refusals:
                if candidate.shape in self.blocked:
                    self.blocked[candidate.shape].append(candidate)
                continue
            outcome = assign(self.quota, self.usage, candidate.requests)
            victims = () if isinstance(outcome, Assignment) else self._make_room(candidate)
            if isinstance(outcome, NoFit) and not victims and candidate.shape not in self.blocked:
                outcome = self._smaller(candidate) or outcome
            if isinstance(outcome, Assignment):
                self.usage.update(outcome.usage)
                admitted.append((candidate, outcome))
                continue
            message = outcome.message
            if victims:
                preempted.append((candidate, victims))
                message += f". Pending the preemption of {len(victims)} workload(s)"
            waiting.append((candidate, message))
            self.refusals[candidate.shape] = message
            if self.rules.strict or (self.shapes == len(self.refusals) and not self.blocked):
                break
        blocked = tuple(itertools.chain.from_iterable(self.blocked.values()))
        return Pass(tuple(admitted), tuple(preempted), tuple(waiting), self.refusals, blocked)

    def _smaller(self, candidate: Candidate) -> Assignment | None:
        """With as many pods as there is room for, and no fewer than it must have."""
        steps = range(sum(request.spare for request in candidate.requests) + 1)

        def fits(step: int) -> bool:
            return isinstance(self._with_fewer(candidate, step), Assignment)

        step = bisect.bisect_left(steps, True, lo=1, key=fits)
        smaller = self._with_fewer(candidate, step) if step in steps else None
        return smaller if isinstance(smaller, Assignment) else None

    def _with_fewer(self, candidate: Candidate, steps: int) -> Assignment | NoFit:
        return assign(self.quota, self.usage, fewer_pods(candidate.requests, steps))

    def _make_room(self, candidate: Candidate) -> tuple[Holder, ...]:
        """Choose whom to evict, as few as possible; keep what is free for the candidate while it waits."""
        if self.rules.preemption == self.rules.reclaim == "Never":
            return ()
        own, others = self._preemptable(candidate), self._reclaimable(candidate)
        room = self._search(candidate, [*others, *own]) if others else None
        if room is None or self._would_borrow(*room):
            room = self._search(candidate, own)
        if room is None:
            return ()
        chosen, wanted = room
        if chosen and candidate.gated:
            self.blocked[candidate.shape] = [candidate]
            return ()
        self.leaving.update(victim.key for victim in chosen)
        self._keep_free(wanted)
        return tuple(chosen)

    def _search(self, candidate: Candidate, victims: Sequence[Holder]) -> tuple[list[Holder], Usage] | None:
        """Whom of them to evict, and what the candidate uses then; nobody, if what leaves anyhow makes room."""
        chosen: list[Holder] = []
        for victim in (None, *victims):
            if victim is not None:
                chosen.append(victim)
            outcome = self._fit_without(candidate, chosen)
            if isinstance(outcome, Assignment):
                break
        else:
            return None
        for victim in tuple(chosen):  # one chosen early may not be needed after all
            rest = [holder for holder in chosen if holder is not victim]
            if isinstance(self._fit_without(candidate, rest), Assignment):
                chosen = rest
        return chosen, outcome.usage

    def _reclaimable(self, candidate: Candidate) -> list[Holder]:
        """Those that use what others of the cohort own, and must give it back."""
        if self.neighbours is None or self.rules.reclaim == "Never":
            return []
        holders = [
            holder
            for holder in self.neighbours.borrowers()
            if holder.key not in self.leaving
            and not holder.evicted
            and (self.rules.reclaim == "Any" or holder.priority < candidate.priority)
        ]
        newest_first = sorted(holders, key=lambda holder: (holder.since, str(holder.key)), reverse=True)
        return sorted(newest_first, key=lambda holder: holder.priority)

    def _would_borrow(self, victims: Sequence[Holder], wanted: Usage) -> bool:
        """Whether it would take what is not its own queue's: only what is may be taken back."""
        if self.neighbours is None:
            return False
        gone = self.leaving | {victim.key for victim in victims}
        own = total(holder for holder in self.holders if holder.key not in gone)
        own.update(wanted)
        return self.neighbours.borrows(own)

    def _preemptable(self, candidate: Candidate) -> list[Holder]:
        newer = self.rules.preemption == "LowerOrNewerEqualPriority"

        def yields(holder: Holder) -> bool:
            equal = newer and holder.priority == candidate.priority and holder.queued > candidate.since
            return holder.key not in self.leaving and (holder.priority < candidate.priority or equal)

        eligible = filter(yields, self.holders)
        newest_first = sorted(eligible, key=lambda holder: (holder.since, str(holder.key)), reverse=True)
        return sorted(newest_first, key=lambda holder: holder.priority)

    def _fit_without(self, candidate: Candidate, victims: Sequence[Holder]) -> Assignment | NoFit:
        gone = self.leaving | {victim.key for victim in victims}
        left = Counter(self.usage)
        for holder in self.holders:
            if holder.key in gone:
                left.subtract(holder.usage)
        left.subtract(self._taken(frozenset()))
        left.update(self._taken(gone))
        return assign(self.quota, left, candidate.requests)

    def _taken(self, gone: Collection[ObjectKey]) -> Usage:
        """What others of the cohort have of its capacity."""
        if self.neighbours is None:
            return {}
        return self.neighbours.taken(gone, total(holder for holder in self.holders if holder.key not in gone))

    def _keep_free(self, wanted: Usage) -> None:
        nominal = self.quota.nominal()
        for place, amount in wanted.items():
            self.usage[place] += min(amount, max(0, nominal.get(place, 0) - self.usage[place]))
