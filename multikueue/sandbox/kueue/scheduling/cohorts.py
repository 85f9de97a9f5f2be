"""Cohorts: trees in which ClusterQueues lend each other what they do not use.

Kueue's arithmetic (`pkg/cache/scheduler/resource_node.go`), one flavor and resource at a time. A cohort that no Cohort
object describes has no quota of its own and no parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.core.model.quantities import thousandths
from multikueue.sandbox.kueue.scheduling.quota import FlavorResource, Usage

Place: TypeAlias = tuple[str, str]
"""Of a node in a tree: "queue" or "cohort", and its name."""


@attrs.frozen
class Node:
    """A ClusterQueue or a cohort."""

    parent: Place | None
    nominal: Usage
    borrowing: Usage
    """How much it may use beyond what it has. No entry: no limit."""
    lending: Usage
    """How much of what it has others may use. No entry: all of it."""

    @classmethod
    def of(cls, obj: Json, parent: str) -> Node:
        """Read a ClusterQueue or a Cohort; `parent` is the name of the cohort it is in, empty without one."""
        amounts: dict[str, dict[FlavorResource, int]] = {}
        for group in dig(obj, "spec", "resourceGroups") or []:
            for flavor in group["flavors"]:
                for entry in flavor["resources"]:
                    for limit in ("nominalQuota", "borrowingLimit", "lendingLimit"):
                        if entry.get(limit) is not None:
                            place = flavor["name"], entry["name"]
                            amounts.setdefault(limit, {})[place] = thousandths(entry[limit])
        limits = [amounts.get(limit, {}) for limit in ("nominalQuota", "borrowingLimit", "lendingLimit")]
        return cls(("cohort", parent) if parent else None, *limits)


@attrs.frozen(eq=False)
class Cohorts:
    """All trees of one cluster."""

    nodes: Mapping[Place, Node]

    @classmethod
    def of(cls, cluster_queues: Iterable[Json], cohorts: Iterable[Json]) -> Cohorts:
        """Read the objects. A cohort that is its own ancestor counts as a root."""
        nodes = {("cohort", name_of(obj)): Node.of(obj, dig(obj, "spec", "parentName") or "") for obj in cohorts}
        nodes |= {("queue", name_of(obj)): Node.of(obj, cohort_name(obj)) for obj in cluster_queues}
        for parent in [node.parent for node in nodes.values()]:
            if parent is not None and parent not in nodes:
                nodes[parent] = Node(None, {}, {}, {})
        for place in list(nodes):
            if place in list(_ancestors(nodes, place))[1:]:
                nodes[place] = attrs.evolve(nodes[place], parent=None)
        return cls(nodes)

    def together_with(self, queue: str) -> list[str]:
        """The ClusterQueues of the same tree, itself included."""
        root = self._root(("queue", queue))
        return [name for kind, name in self.nodes if kind == "queue" and self._root((kind, name)) == root]

    def capacity(self, queue: str, what: FlavorResource) -> int:
        """The most that a ClusterQueue could ever use."""
        return self._capacity(("queue", queue), what)

    def available(self, queue: str, what: FlavorResource, used: Mapping[str, Usage]) -> int:
        """How much more it can use now; below 0 where its cohort uses more than there is.

        Args:
            used: by ClusterQueue.
        """
        return self._available(("queue", queue), what, used)

    def taken(self, queue: str, used: Mapping[str, Usage]) -> dict[FlavorResource, int]:
        """What others have of the capacity of a ClusterQueue."""
        own = used.get(queue, {})
        return {
            what: self.capacity(queue, what) - self.available(queue, what, used) - own.get(what, 0)
            for what in self.nodes["queue", queue].nominal
        }

    def borrowed(self, queue: str, what: FlavorResource, used: Usage) -> int:
        """How much of what it uses is not its own."""
        return max(0, used.get(what, 0) - self.nodes["queue", queue].nominal.get(what, 0))

    @cached_property
    def _children(self) -> dict[Place, list[Place]]:
        children: dict[Place, list[Place]] = {}
        for place, node in self.nodes.items():
            if node.parent is not None:
                children.setdefault(node.parent, []).append(place)
        return children

    def _root(self, place: Place) -> Place:
        return [place, *_ancestors(self.nodes, place)][-1]

    def _stored(self, place: Place, what: FlavorResource) -> int:
        """Its own quota, and what those below it lend."""
        lent = (self._stored(child, what) - self._kept(child, what) for child in self._children.get(place, ()))
        return self.nodes[place].nominal.get(what, 0) + sum(lent)

    def _kept(self, place: Place, what: FlavorResource) -> int:
        """What it does not lend."""
        limit = self.nodes[place].lending.get(what)
        return 0 if limit is None else max(0, self._stored(place, what) - limit)

    def _used(self, place: Place, what: FlavorResource, used: Mapping[str, Usage]) -> int:
        if place[0] == "queue":
            return used.get(place[1], {}).get(what, 0)
        below = self._children.get(place, ())
        return sum(max(0, self._used(child, what, used) - self._kept(child, what)) for child in below)

    def _capacity(self, place: Place, what: FlavorResource) -> int:
        node, stored = self.nodes[place], self._stored(place, what)
        if node.parent is None:
            return stored
        most = self._kept(place, what) + self._capacity(node.parent, what)
        limit = node.borrowing.get(what)
        return most if limit is None else min(most, stored + limit)

    def _available(self, place: Place, what: FlavorResource, used: Mapping[str, Usage]) -> int:
        node, own = self.nodes[place], self._used(place, what, used)
        stored, kept = self._stored(place, what), self._kept(place, what)
        if node.parent is None:
            return stored - own
        above = self._available(node.parent, what, used)
        limit = node.borrowing.get(what)
        if limit is not None:
            above = min(above, stored - kept - max(0, own - kept) + limit)
        return max(0, kept - own) + above


def cohort_name(cluster_queue: Json) -> str:
    """The cohort it is in; empty without one."""
    return dig(cluster_queue, "spec", "cohortName") or ""


def _ancestors(nodes: Mapping[Place, Node], place: Place) -> Iterable[Place]:
    """Upwards; ends where it comes back to what it has seen, with that."""
    seen = {place}
    while (parent := nodes[place].parent) is not None:
        yield parent
        if parent in seen:
            return
        seen.add(place := parent)
