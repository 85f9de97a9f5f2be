"""How runs leave their workers: pods of two attempts never meet, ends are shown as they were, and copies are kept."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import anyio
import attrs

from multikueue.core.model.conditions import changed_at, is_true
from multikueue.core.model.grace import pod_grace
from multikueue.core.model.kinds import JOB, MULTIKUEUE_CONFIG, WORKLOAD
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating, uid
from multikueue.core.model.workloads import (
    CheckState,
    check_state,
    cluster_name,
    finish_reason,
    is_admitted,
    is_evicted,
)
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.jobs.pods import has_ended as pod_has_ended
from multikueue.sandbox.jobs.pods import owners
from multikueue.sandbox.kinds.pods import POD_RESOURCE, is_gated
from multikueue.sandbox.setting_up import CHECK
from tests.core.door import LONGEST_GRACE
from tests.simulation.objects import find, is_of_present_attempt, is_ours
from tests.simulation.promises import Promises
from tests.simulation.running import KINDS, Item, serves, workload_of
from tests.simulation.taking import Taking
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import SimCluster, World

COUNTERS: Final = ("succeeded", "failed")
EARLY: Final = 7.0
"""Seconds by which a copy may go before its retention is over: the daemon's clock is 2.5 s ahead at most, that of
another replica 3 s more, and times on objects have no fractions."""


@attrs.frozen
class Copy:
    """A job copy, or a pod copy, that was seen on a worker."""

    item: Item
    run: str
    """The attempt, and the worker."""
    of: tuple[Any, ...]
    """What it is a copy of: two attempts at the same have the same."""
    workloads: set[ObjectKey]
    """Those it is for: an elastic job has one after the other."""
    made: float
    """When, on the loop's clock."""


@attrs.define(eq=False)
class Leaving:
    """Follows copies, and their pods until they have ended: an object that is gone, or a job without pods, may lie."""

    world: World
    promises: Promises
    taking: Taking
    _copies: dict[str, Copy] = attrs.field(factory=dict)
    """By UID; also those that are gone: their pods may be there."""
    _pods: dict[tuple[str, str], Copy] = attrs.field(factory=dict)
    """What runs, or ends: by worker and the pod's UID."""
    _gone: dict[str, float] = attrs.field(factory=dict)
    """Until when pods are waited for of copies that had not ended and are gone, by their run."""
    _ready_at: dict[ObjectKey, float] = attrs.field(factory=dict)
    """When our check of a Workload was Ready last: the daemon knew of its job copy."""
    _ends: dict[tuple[Any, ...], list[Json]] = attrs.field(factory=dict)
    """How copies have ended: their last statuses."""
    _counts: dict[tuple[Any, ...], dict[str, int]] = attrs.field(factory=dict)
    """The most that copies have counted of their pods: what was shown of a run that was taken away does not go back."""

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                obj = new or old or {}
                if row.plural in KINDS and is_ours(obj):
                    self._copy_changed(worker, Item(row.plural, ObjectKey.of(obj)), old, new)
                if row.plural == POD_RESOURCE.plural and self.world.runner.blocking:
                    self._pod_changed(worker, new, obj)

            worker.registry.cluster.listeners.append(changed)

    def left(self) -> list[str]:
        """Pods that are still there of copies on workers that somebody looks after."""
        return [
            f"a pod of {copy.item} on {name}" for (name, _), copy in self._pods.items() if name not in self.world.gone
        ]

    def _copy_changed(self, worker: SimCluster, item: Item, old: Json | None, new: Json | None) -> None:
        obj = new or old or {}
        if old is None and (workload := workload_of(worker, item, obj)) is not None:
            local = find(self.world.manager, KINDS[item.plural].resource, item.key)
            is_pod = item.plural == POD_RESOURCE.plural
            of = (workload,) if is_pod else (item, uid(local) if local is not None else "")
            self._copies[uid(obj)] = Copy(
                item, mark_of(obj) if is_pod else uid(obj), of, {workload}, anyio.current_time()
            )
        copy = self._copies.get(uid(obj))
        if copy is not None and new is not None and (workload := workload_of(worker, item, new)) is not None:
            copy.workloads.add(workload)
        if copy is not None and item.plural == JOB.plural and new is not None:
            most = self._counts.setdefault(copy.of, {})
            most.update({name: max(dig(new, "status", name) or 0, most.get(name, 0)) for name in COUNTERS})
        if copy is None or item.plural == POD_RESOURCE.plural:
            return
        if KINDS[item.plural].ending(obj) is None:
            # Of one that ends in the foreground somebody's deletion looks as if its pods had ended.
            unseen = new is None and not is_terminating(obj)
            self._gone |= {copy.run: self._waited_for(worker, copy)} if unseen else {}
            return
        if new is not None and (old is None or KINDS[item.plural].ending(old) is None):
            self._ends.setdefault(copy.of, []).append(new)
        if (new is None or is_terminating(new)) and not is_terminating(old or {}):
            self._taken(worker, copy, obj)

    def _taken(self, worker: SimCluster, copy: Copy, job: Json) -> None:
        """A job that has ended by itself is removed."""
        key = workload_of(worker, copy.item, job)
        workload = find(self.world.manager, WORKLOAD, key) if key is not None else None
        config = find(self.world.manager, MULTIKUEUE_CONFIG, ObjectKey("", CHECK)) or {}
        stays = self.promises.reach.longer_than(worker.name, EARLY)  # else its MultiKueueCluster was deleted
        listed = stays and (workload is None or cluster_name(workload) in (dig(config, "spec", "clusters") or ()))
        if (
            workload is None
            or is_terminating(workload)
            or not listed
            or worker.name != self.world.place_of(cluster_name(workload))
        ):
            return
        there = find(worker, WORKLOAD, ObjectKey.of(workload))
        if there is None or is_evicted(there) or is_evicted(workload):
            return
        by_user = copy.item.key in self.promises.removed or self._is_excused(worker.name, copy)
        # it was to be stopped, and ended as that was asked
        by_user = by_user or copy.of[-1] in self.promises.settled or self._is_stopped_here(copy.item, workload)
        if by_user or not is_of_present_attempt(worker, job, workload):
            return
        finished = changed_at(workload, "Finished")
        if finished is not None and finish_reason(workload) not in ("Succeeded", "Failed"):
            return
        passed = (wall_clock(0.0)() - finished).total_seconds() if finished is not None else 0.0
        shortest = self.world.retention - EARLY - self.promises.most_stepped
        if passed < shortest:
            self.promises.broken.append(f"{copy.item} is removed from {worker.name} {passed:.0f} s after its end")

    def _is_stopped_here(self, item: Item, workload: Json) -> bool:
        """Whether the manager's Kueue is stopping it, without an eviction."""
        local = find(self.world.manager, KINDS[item.plural].resource, item.key)
        return local is not None and is_admitted(workload) and dig(local, "spec", "suspend") is True

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        """The daemon knows of a job copy; or the job shows its end: as a copy ended, or as somebody has settled."""
        if row.plural == WORKLOAD.plural and new is not None and check_state(new, CHECK) is CheckState.READY:
            self._ready_at[ObjectKey.of(new)] = anyio.current_time()
        if row.plural != JOB.plural or new is None or KINDS[row.plural].ending(new) is None:
            return
        item = Item(row.plural, ObjectKey.of(new))
        if old is not None and KINDS[row.plural].ending(old) is not None:
            return
        if (settled := self.promises.settled.get(uid(new))) is not None:
            if not is_true(new, settled):
                self.promises.broken.append(f"{item} ends otherwise than somebody has settled: {settled}")
            return
        by_hand = self.promises.counted.get(uid(new), {})
        shown = self._counts.get((item, uid(new)), {})
        least = {name: max(by_hand.get(name, 0), shown.get(name, 0)) for name in COUNTERS}
        ended = self._ends.get((item, uid(new)), ())
        ends = [*(_ending_of(end, by_hand) for end in ended), *(_ending_of(end, least) for end in ended)]
        if ends and _ending_of(new) not in ends:
            self.promises.broken.append(f"{item} shows {_ending_of(new)}, and its copies ended as {ends}")

    def _pod_changed(self, worker: SimCluster, new: Json | None, obj: Json) -> None:
        key = (worker.name, uid(obj))
        if new is None or pod_has_ended(new):
            self._pods.pop(key, None)
            return
        copy_uid = next((of for of in (uid(obj), *owners(obj)) if of in self._copies), "")
        copy = self._copies.get(copy_uid)
        if copy is None or key in self._pods or is_gated(new) or serves(copy.item, new):
            return
        if is_terminating(new):
            return
        for (name, _), other in list(self._pods.items()):
            if other.of == copy.of and other.run != copy.run and not self._are_nobodys(name, other):
                text = (
                    f"a pod of {copy.item} starts on {worker.name} while one of an earlier attempt is there on {name}"
                )
                self.promises.began_beside(worker, name, text, copy_uid)
        self._pods[key] = copy

    def _are_nobodys(self, worker: str, copy: Copy) -> bool:
        """Whether nobody waits for pods of a copy that somebody has removed: they take too long to end."""
        return anyio.current_time() >= self._gone.get(copy.run, 0.0) and self._is_excused(worker, copy)

    def _waited_for(self, worker: SimCluster, copy: Copy) -> float:
        """Until when pods of a copy that goes now are waited for: for their grace period. But not of one whose creation
        had no answer, and that went before it was shown."""
        answered = copy.run in worker.answered
        told = (key for key in copy.workloads if answered or self._ready_at.get(key, 0.0) >= copy.made)
        known = (find(self.world.manager, WORKLOAD, key) for key in told)
        graces = [min(pod_grace(workload), LONGEST_GRACE) for workload in known if workload is not None]
        return anyio.current_time() + max((grace.total_seconds() for grace in graces), default=0.0)

    def _is_excused(self, worker: str, copy: Copy) -> bool:
        """Whether somebody has removed that copy, without its pods."""
        return any(self.taking.is_excused(worker, workload) for workload in copy.workloads)


def _ending_of(job: Json, least: Mapping[str, int] = MappingProxyType({})) -> tuple[Any, ...]:
    """What of a job's end matters to who reads it, where its counters were so far already."""
    ending = KINDS[JOB.plural].ending(job)
    counts = (max(dig(job, "status", name) or 0, least.get(name, 0)) for name in COUNTERS)
    return (None if ending is None else (ending.reason, ending.message), *counts)
