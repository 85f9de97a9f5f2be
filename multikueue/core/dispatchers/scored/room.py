"""How much a ClusterQueue could still use: Kueue's `available()` over the tree of cohorts, in its own arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

import attrs

from multikueue.core.dispatchers.scored.facts import FlavorAmounts, Flavored, Group, ResourceRequest
from multikueue.core.model.flavors import Flavor

UNLIMITED: Final = 1 << 100
"""More than any amount."""
LEVELS: Final = 32
"""Cohorts above each other that count."""


@attrs.frozen
class Quota:
    """What a ClusterQueue or a Cohort has of one flavor's resource."""

    nominal: int = 0
    borrowing: int | None = None
    """At most so much above its own; None: no limit."""
    lending: int | None = None
    """At most so much of its own for others; None: all of it."""


@attrs.frozen
class Node:
    """A ClusterQueue or a Cohort. The two kinds have names of their own."""

    parent: str | None = None
    """The cohort it is in."""
    quotas: Mapping[Flavored, Quota] = attrs.field(factory=dict)
    usage: FlavorAmounts = attrs.field(factory=dict)
    """Of a ClusterQueue: what is reserved in it. A cohort has none of its own."""


_NONE: Final = Quota()


def _bounded(cohorts: Mapping[str, Node]) -> Mapping[str, Node]:
    """A cohort above itself has no parent here. Kueue lets nothing in below one. Nor has one with more than `LEVELS`
    above it: whoever makes cohorts there decides how many that are."""
    bounded = dict(cohorts)
    for name in cohorts:
        seen, above = {name}, bounded[name].parent
        while above in bounded and above not in seen and len(seen) < LEVELS:
            seen.add(above)
            above = bounded[above].parent
        if above in bounded:
            bounded[name] = attrs.evolve(bounded[name], parent=None)
    return bounded


@attrs.frozen
class Sums:
    """What a node and those below it have, and use of it, of one flavor's resource."""

    subtree: int = 0
    used: int = 0
    local: int = 0
    """What of its quota nobody else can use."""
    borrowing: int | None = None
    parent: str | None = None

    @property
    def lendable(self) -> int:
        """What the cohort above may use of it."""
        return self.subtree - self.local

    @property
    def above(self) -> int:
        """What it uses of the cohort above."""
        return max(0, self.used - self.local)


@attrs.frozen
class Tree:
    """The ClusterQueues of a worker, and the cohorts above them."""

    queues: Mapping[str, Node]
    cohorts: Mapping[str, Node] = attrs.field(factory=dict, converter=_bounded)
    """Those that are only named by their members may be missing."""
    flavors: Mapping[str, Flavor] = attrs.field(factory=dict)
    """Of the worker, by name: those that are known."""
    readable: bool = True
    """Whether cohorts can be read. If not, a queue in one has only its nominal quota that is not lendable."""

    def available(self, queue: str) -> FlavorAmounts:
        """What a queue could reserve now without preempting, at least 0; see Kueue's `resource_node.go`."""
        return {key: max(0, self._available(self._of(queue, key), key)) for key in self.queues[queue].quotas}

    def ceiling(self, queue: str) -> FlavorAmounts:
        """What a queue could reserve if nothing ran."""
        return {key: self._potential(self._of(queue, key), key) for key in self.queues[queue].quotas}

    def nominal(self, queue: str) -> FlavorAmounts:
        """A queue's own quota."""
        return {key: quota.nominal for key, quota in self.queues[queue].quotas.items()}

    def borrowable(self, queue: str) -> FlavorAmounts:
        """Of what is available to a queue, what is not its own."""
        node = self.queues[queue]
        own = {key: max(0, quota.nominal - node.usage.get(key, 0)) for key, quota in node.quotas.items()}
        return {key: max(0, amount - own[key]) for key, amount in self.available(queue).items()}

    def lent(self, queue: str) -> FlavorAmounts:
        """Of a queue's nominal quota, what others of its cohort use: nothing if that is unknown."""
        free, node = self.available(queue), self.queues[queue]
        if node.parent is None or not self.readable:
            return dict.fromkeys(free, 0)
        return {key: max(0, quota.nominal - node.usage.get(key, 0) - free[key]) for key, quota in node.quotas.items()}

    def _of(self, queue: str, key: Flavored) -> Sums:
        return _sums(self.queues[queue], key, ())

    def _available(self, sums: Sums, key: Flavored) -> int:
        if sums.parent is None:
            return sums.subtree - sums.used
        own = max(0, sums.local - sums.used)
        if not self.readable:
            return own
        shared = self._available(self._cohort(sums.parent, key), key)
        if sums.borrowing is not None:
            shared = min(sums.lendable - sums.above + sums.borrowing, shared)
        return own + shared

    def _potential(self, sums: Sums, key: Flavored) -> int:
        if sums.parent is None:
            return sums.subtree
        shared = self._potential(self._cohort(sums.parent, key), key) if self.readable else UNLIMITED
        total = sums.local + shared
        return total if sums.borrowing is None else min(sums.subtree + sums.borrowing, total)

    def _cohort(self, name: str, key: Flavored) -> Sums:
        sums = self._cohort_sums.get((name, key))
        if sums is None:
            members = [_sums(self.queues[queue], key, ()) for queue in self._members[0].get(name, ())]
            members += [self._cohort(cohort, key) for cohort in self._members[1].get(name, ())]
            sums = self._cohort_sums[name, key] = _sums(self.cohorts.get(name, Node()), key, members)
        return sums

    @cached_property
    def _cohort_sums(self) -> dict[tuple[str, Flavored], Sums]:
        return {}

    @cached_property
    def _members(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """The queues and the cohorts of each cohort."""
        return _by_parent(self.queues), _by_parent(self.cohorts)


def _by_parent(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for name, node in nodes.items():
        if node.parent is not None:
            members.setdefault(node.parent, []).append(name)
    return members


def _sums(node: Node, key: Flavored, members: Iterable[Sums]) -> Sums:
    quota = node.quotas.get(key, _NONE)
    subtree, used = quota.nominal, node.usage.get(key, 0)
    for member in members:
        subtree, used = subtree + member.lendable, used + member.above
    local = 0 if quota.lending is None else max(0, subtree - quota.lending)
    return Sums(subtree, used, local, quota.borrowing, node.parent)


def placed(
    request: ResourceRequest, groups: Iterable[Group], free: FlavorAmounts, now: FlavorAmounts | None = None
) -> dict[Flavored, int] | None:
    """What a request would take where each pod set gets one flavor per resource group, of those that its pods may use
    and that have enough; None: there is none. Resources that no group covers are not counted: see `unknown`.

    Args:
        request: what it needs.
        groups: of the queue.
        free: what there is.
        now: what of that is there now: then a pod set gets the flavor of which least is missing, else the first one.
    """
    taken: dict[Flavored, int] = {}
    for pod_set in request.pod_sets:
        for group in groups:
            needs = [(name, amount) for name, amount in pod_set.needs.items() if name in group.resources]
            flavors = group.usable(pod_set.pods) if needs else ()
            for flavor in flavors if now is None else _nearest(flavors, needs, taken, now):
                if all(taken.get((flavor, name), 0) + amount <= free.get((flavor, name), 0) for name, amount in needs):
                    for name, amount in needs:
                        taken[flavor, name] = taken.get((flavor, name), 0) + amount
                    break
            else:
                if needs:
                    return None
    return taken


def _nearest(
    flavors: Iterable[str], needs: Iterable[tuple[str, int]], taken: FlavorAmounts, free: FlavorAmounts
) -> list[str]:
    """Those of which least is missing first, for one that takes that already."""

    def short(flavor: str) -> float:
        return missing({(flavor, name): taken.get((flavor, name), 0) + amount for name, amount in needs}, free)

    return sorted(flavors, key=short)


def missing(taken: FlavorAmounts, free: FlavorAmounts) -> float:
    """The largest share of an amount that is not free; 0: nothing is missing."""
    shares = (
        1 - max(free.get(key, 0), -amount) / amount
        for key, amount in taken.items()
        if amount > max(0, free.get(key, 0))
    )
    return max(shares, default=0.0)


def unknown(request: ResourceRequest, groups: Iterable[Group]) -> frozenset[str]:
    """Resources that only one side has: that the queue does not cover, `pods` apart, which it need not."""
    covered = frozenset[str]().union(*(group.resources for group in groups))
    asked = {name for pod_set in request.pod_sets for name, amount in pod_set.needs.items() if amount}
    return frozenset(asked - covered - {"pods"})


def without(free: FlavorAmounts, taken: FlavorAmounts) -> FlavorAmounts:
    """What is left; it may be below 0."""
    return {key: amount - taken.get(key, 0) for key, amount in free.items()} if taken else free
