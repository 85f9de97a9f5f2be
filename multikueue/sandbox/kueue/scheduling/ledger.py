"""All Workloads as the scheduler sees them: who waits in which LocalQueue, who holds quota of which ClusterQueue."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

import attrs

from multikueue.core.model.conditions import condition
from multikueue.core.model.eviction import ADMISSION_CHECK
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating
from multikueue.core.model.workloads import (
    checks,
    cluster_queue,
    has_quota,
    is_active,
    is_admitted,
    is_evicted,
    is_finished,
    is_on_hold,
)
from multikueue.sandbox.kueue.gates import is_gated
from multikueue.sandbox.kueue.scheduling.cycle import Candidate, Holder, Shape
from multikueue.sandbox.kueue.scheduling.newest import Newest
from multikueue.sandbox.kueue.scheduling.podsets import request
from multikueue.sandbox.kueue.scheduling.quota import used_by
from multikueue.sandbox.kueue.statuses import PODS_READY_TIMEOUT

WAITS: Final = "Pending"
"""Reason of the QuotaReserved condition of a Workload that was tried and found no place."""

_order = attrgetter("order")


@attrs.frozen
class News:
    """What an observation changed."""

    fresh: bool
    """Whether the version was not known yet."""
    moved: bool = False
    """Whether it changes who waits or who holds quota."""


@attrs.define(eq=False)
class WaitingLine:
    """The candidates of one LocalQueue, in order."""

    candidates: list[Candidate] = attrs.field(factory=list)
    shapes: Counter[Shape] = attrs.field(factory=Counter)
    unexplained: dict[ObjectKey, Candidate] = attrs.field(factory=dict)
    """Those whose status does not say yet that they wait."""

    def add(self, candidate: Candidate) -> None:
        """Put it into its place."""
        insort(self.candidates, candidate, key=_order)
        self.shapes[candidate.shape] += 1
        if not candidate.explained:
            self.unexplained[candidate.key] = candidate

    def remove(self, candidate: Candidate) -> None:
        """Take it out."""
        at = bisect_left(self.candidates, candidate.order, key=_order)
        del self.candidates[at]
        self.shapes[candidate.shape] -= 1
        if not self.shapes[candidate.shape]:
            del self.shapes[candidate.shape]
        self.unexplained.pop(candidate.key, None)


@attrs.define(eq=False)
class Ledger:
    """Keeps up with Workloads; each is read once per version."""

    workloads: Newest
    _lines: dict[ObjectKey, WaitingLine] = attrs.field(factory=dict, init=False)
    _holders: dict[str, dict[ObjectKey, Holder]] = attrs.field(factory=dict, init=False)
    _waiting: dict[ObjectKey, tuple[ObjectKey, Candidate]] = attrs.field(factory=dict, init=False)
    _holding: dict[ObjectKey, str] = attrs.field(factory=dict, init=False)
    _admitted: dict[ObjectKey, None] = attrs.field(factory=dict, init=False)

    def observe(self, workload: Json) -> News:
        """Take note of a version."""
        if not self.workloads.observe(workload):
            return News(fresh=False)
        key = ObjectKey.of(workload)
        before = self._drop(key)
        if is_candidate(workload):
            self._enter(key, ObjectKey(key.namespace, dig(workload, "spec", "queueName") or ""), workload)
        elif holds_quota(workload):
            self._hold(key, cluster_queue(workload), workload)
        return News(fresh=True, moved=before != self._entry(key))

    def remove(self, workload: Json) -> News:
        """Take note that it is gone."""
        if not self.workloads.remove(workload):
            return News(fresh=False)
        return News(fresh=True, moved=self._drop(ObjectKey.of(workload)) is not None)

    def waiting(self, queues: Iterable[ObjectKey]) -> Iterator[Candidate]:
        """The candidates of these LocalQueues, in order."""
        return heapq.merge(*(self._lines[queue].candidates for queue in queues if queue in self._lines), key=_order)

    def unexplained(self, queues: Iterable[ObjectKey]) -> list[Candidate]:
        """The candidates of these LocalQueues whose status does not say yet that they wait."""
        return [entry for queue in queues if queue in self._lines for entry in self._lines[queue].unexplained.values()]

    def waiting_count(self, queues: Iterable[ObjectKey]) -> int:
        """How many candidates these LocalQueues have."""
        return sum(len(self._lines[queue].candidates) for queue in queues if queue in self._lines)

    def shapes(self, queues: Iterable[ObjectKey]) -> int:
        """How many different shapes the candidates of these LocalQueues have."""
        lines = [self._lines[queue].shapes for queue in queues if queue in self._lines]
        return len(set().union(*lines)) if lines else 0

    def holders(self, cluster_queue_name: str) -> list[Holder]:
        """Who holds quota of a ClusterQueue."""
        return list(self._holders.get(cluster_queue_name, {}).values())

    def is_admitted(self, key: ObjectKey) -> bool:
        """Whether it holds quota and is admitted."""
        return key in self._admitted

    def _enter(self, key: ObjectKey, queue: ObjectKey, workload: Json) -> None:
        candidate = as_candidate(workload)
        self._lines.setdefault(queue, WaitingLine()).add(candidate)
        self._waiting[key] = (queue, candidate)

    def _hold(self, key: ObjectKey, queue: str, workload: Json) -> None:
        self._holders.setdefault(queue, {})[key] = as_holder(workload)
        self._holding[key] = queue
        if is_admitted(workload):
            self._admitted[key] = None

    def _entry(self, key: ObjectKey) -> Candidate | Holder | None:
        if key in self._waiting:
            return self._waiting[key][1]
        return self._holders[self._holding[key]][key] if key in self._holding else None

    def _drop(self, key: ObjectKey) -> Candidate | Holder | None:
        """Forget what it was, and return that."""
        entry = self._entry(key)
        if key in self._waiting:
            queue, candidate = self._waiting.pop(key)
            self._lines[queue].remove(candidate)
            if not self._lines[queue].candidates:
                del self._lines[queue]
        if key in self._holding:
            del self._holders[self._holding.pop(key)][key]
            self._admitted.pop(key, None)
        return entry


def is_candidate(workload: Json) -> bool:
    """Whether it waits for quota: active, not on hold, not held back (`Requeued` False), no check has refused it."""
    if is_finished(workload) or has_quota(workload) or not is_active(workload) or is_terminating(workload):
        return False
    if is_on_hold(workload):
        return False
    if (condition(workload, "Requeued") or {}).get("status") == "False":
        return False
    return all(entry.get("state") not in ("Retry", "Rejected") for entry in checks(workload))


def holds_quota(workload: Json) -> bool:
    """Whether it uses up quota: until it has finished or is deactivated, or its job was seen to be stopped.

    A deactivated one gives its quota back before its job is stopped, while its status still shows it.
    """
    return has_quota(workload) and is_active(workload) and not is_finished(workload)


def as_candidate(workload: Json) -> Candidate:
    """Read a Workload that waits."""
    return Candidate(
        key=ObjectKey.of(workload),
        priority=int(dig(workload, "spec", "priority") or 0),
        since=queues_from(workload),
        requests=tuple(request(pod_set) for pod_set in dig(workload, "spec", "podSets") or []),
        checks=frozenset(entry["name"] for entry in checks(workload)),
        explained=(condition(workload, "QuotaReserved") or {}).get("reason") == WAITS,
        gated=is_gated(workload),
    )


def as_holder(workload: Json) -> Holder:
    """Read a Workload that holds quota."""
    return Holder(
        key=ObjectKey.of(workload),
        priority=int(dig(workload, "spec", "priority") or 0),
        since=(condition(workload, "QuotaReserved") or {}).get("lastTransitionTime") or "",
        usage=used_by(workload),
        evicted=is_evicted(workload),
        queued=queues_from(workload),
    )


def queues_from(workload: Json) -> str:
    """RFC 3339 time that decides its place among its equals: who could not start goes to the end."""
    eviction = condition(workload, "Evicted") or {}
    if eviction.get("status") == "True" and eviction.get("reason") in (ADMISSION_CHECK, PODS_READY_TIMEOUT):
        return str(eviction["lastTransitionTime"])
    return workload["metadata"].get("creationTimestamp") or ""
