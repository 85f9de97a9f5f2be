"""Quota is held only by what can run, and every wait is told."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

import anyio
import attrs

from multikueue.core.model.conditions import changed_at
from multikueue.core.model.grace import pod_grace
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, finalizers_of, is_terminating
from multikueue.core.model.workloads import (
    CheckState,
    check,
    check_state,
    cluster_name,
    has_quota,
    is_admitted,
    is_elastic,
    is_evicted,
    is_finished,
    is_live,
)
from multikueue.core.model.workloads import owner as owner_of
from multikueue.sandbox.setting_up import CHECK
from tests.core.door import END_SHOWN, LEFTOVER_GRACE, LONGEST_GRACE
from tests.simulation.objects import MARKS, find, has_ended, is_ours, objects
from tests.simulation.promises import HOLD, Promises
from tests.simulation.reach import Reach
from tests.simulation.running import job_copies
from tests.simulation.world import World

IDLE: Final = 600.0
"""Virtual seconds for which a copy may hold quota on a worker while nothing of it runs: as long as a lost worker that
may have the job is waited for, and several attempts."""
LOSER: Final = 30.0
"""Virtual seconds for which a copy may stay on another worker than the recorded one, while nothing disturbs the
daemon."""
SETTLED: Final = 90.0
"""Virtual seconds after the last trouble until the daemon is as if there had been none: it asks a lost worker once a
minute."""
SLACK: Final = 15.0
"""Virtual seconds beyond that for which pods that end may hold the manager's quota: a write, and what is slow."""
UNTOLD: Final = 120.0
"""Virtual seconds for which a Workload may wait without a word."""


@attrs.define(eq=False)
class Holding:
    """Looks again and again, and counts only the time in which a daemon could do something about it."""

    world: World
    reach: Reach
    promises: Promises
    _since: dict[Hashable, float] = attrs.field(factory=dict)

    def check(self, alive_since: float) -> None:
        """Note what has been so for too long.

        Args:
            alive_since: since when a daemon runs.
        """
        now = anyio.current_time()
        manager = self.reach.manager_since
        able = max(alive_since, manager) if manager is not None else float("inf")
        broken = {key: (text, max(since, able), bound) for key, text, since, bound in self._failing()}
        self._since = {key: self._since.get(key, now) for key in broken}
        for key, (text, since, bound) in broken.items():
            lasted = now - max(self._since[key], since)
            if lasted > bound:
                self.promises.broken.append(f"{text} for {lasted:.0f} s")

    def _failing(self) -> Iterator[tuple[Hashable, str, float, float]]:
        """What should not last: a key, what it is, since when the daemon can see it, and how long it may."""
        for name, worker in self.world.workers.items():
            since = self.reach.since(name)
            for copy in objects(worker, WORKLOAD) if since is not None and name not in self.world.gone else ():
                checked = name == self.world.own and self.world.pool_checked  # it waits for our check, as is documented
                held = _holds(copy) and self._is_copy(name, copy)
                if held and not checked and not self.promises.runs(name, ObjectKey.of(copy)):
                    text = f"the copy of {ObjectKey.of(copy)} holds quota on {name} and does not run"
                    yield (name, copy["metadata"]["uid"]), text, since or 0.0, IDLE
        yield from self._ending()
        yield from self._stopped_here()
        for workload in filter(_holds, objects(self.world.manager, WORKLOAD)):
            key, uid = ObjectKey.of(workload), workload["metadata"]["uid"]
            if _is_untold(workload):
                yield (uid, "untold"), f"{key} waits without a word", 0.0, UNTOLD
            yield from self._losers(workload)
            yield from self._sizes(workload)
            if check_state(workload, CHECK) is CheckState.READY and not is_admitted(workload):
                yield (uid, "ready"), f"{key} is Ready and is not admitted", 0.0, UNTOLD

    def _ending(self) -> Iterator[tuple[Hashable, str, float, float]]:
        """Evicted Workloads that keep others waiting for their quota while their runs end."""
        calm = self.reach.calm_since(self.world.manager.name) + SETTLED
        for workload in objects(self.world.manager, WORKLOAD):
            since = changed_at(workload, "Evicted")
            if is_evicted(workload) and has_quota(workload) and not is_finished(workload):
                text = f"{ObjectKey.of(workload)} is evicted and holds quota"
                bound = hold_limit(workload) + SLACK + self.promises.most_stepped
                yield (workload["metadata"]["uid"], "evicted", since), text, calm, bound

    def _stopped_here(self) -> Iterator[tuple[Hashable, str, float, float]]:
        """Jobs that the manager's Kueue has stopped, evicted or not, or somebody has settled, and that run on.

        One with quota is not being stopped: it may not have been started yet, as a slice that waits for its worker.
        Where copies are kept, one whose end shows on the manager alone may be about to end on its worker, too.
        """
        workloads = objects(self.world.manager, WORKLOAD)
        starting = {
            owner.name
            for workload in workloads
            if is_live(workload) and not is_evicted(workload)
            if (owner := owner_of(workload))
        }
        for item, places in self.promises.running.items() if self.reach.manager_since is not None else ():
            job = find(self.world.manager, JOB, item.key) if item.plural == JOB.plural else None
            settled = job is not None and job["metadata"]["uid"] in self.promises.settled
            stopped = dig(job or {}, "spec", "suspend") is True and item.key.name not in starting
            late = END_SHOWN.total_seconds() if self.world.retention and has_ended(job or {}) else 0.0
            for name, place in places.items() if settled or stopped else ():
                since = self.reach.since(name)
                if since is not None and name not in self.world.gone:
                    calm = max(since, *(self.reach.calm_since(name) for name in (name, self.world.manager.name)))
                    text = f"{item} runs on {name}, and is stopped on the manager"
                    yield (place.uid, "suspended"), text, calm + SETTLED, LOSER + late

    def _losers(self, workload: Json) -> Iterator[tuple[Hashable, str, float, float]]:
        """Copies on workers that have not got it, configured or not; they stay while pods of their jobs end.

        Where a node is dead, or a finalizer of somebody's holds a pod that has ended, that takes as long as it takes.
        """
        key = ObjectKey.of(workload)
        chosen = self.world.place_of(cluster_name(workload))
        for name, worker in self.world.workers.items() if chosen is not None else ():
            copy = find(worker, WORKLOAD, key) if name not in (chosen, *self.world.gone) else None
            since = self.reach.since(name)
            if copy is not None and self._is_copy(name, copy) and since is not None:
                calm = max(since, *(self.reach.calm_since(place) for place in (name, self.world.manager.name)))
                ending = [job for job in job_copies(worker, key) if is_terminating(job)]
                on_dead_node = name in self.world.runners and self.world.runners[name].node_is_dead
                if ending and (on_dead_node or any(HOLD in finalizers_of(job) for job in ending)):
                    continue
                bound = LOSER + (self.world.runner.trap if ending else 0.0)
                text = f"{name} keeps a copy of {key}, which is on {chosen}"
                yield (name, copy["metadata"]["uid"], chosen), text, calm + SETTLED, bound

    def _sizes(self, workload: Json) -> Iterator[tuple[Hashable, str, float, float]]:
        """Elastic jobs whose copies have not the size that their worker has given them quota for."""
        owner, manager = owner_of(workload), self.world.manager
        name = self.world.place_of(cluster_name(workload))
        since = self.reach.since(name) if name is not None and name not in self.world.gone else None
        if name is None or owner is None or owner.gvk != JOB.gvk or since is None or not is_elastic(workload):
            return
        key = ObjectKey(workload["metadata"]["namespace"], owner.name)
        job, copy = find(manager, JOB, key), find(self.world.workers[name], JOB, key)
        there = find(self.world.workers[name], WORKLOAD, ObjectKey.of(workload)) or {}
        wanted = dig(job or {}, "spec", "parallelism")
        admitted = is_admitted(there) and _holds(there) and _count(workload) == _count(there) == wanted
        if copy is None or not is_ours(copy) or has_ended(copy) or not admitted:
            return
        if (pods := dig(copy, "spec", "parallelism")) != wanted:
            calm = max(since, *(self.reach.calm_since(place) for place in (name, manager.name)))
            text = f"{key} has {pods} pods at a time on {name}, and {wanted} on the manager"
            yield (copy["metadata"]["uid"], wanted), text, calm + SETTLED, LOSER

    def _is_copy(self, name: str, copy: Json) -> bool:
        """Whether it is a copy: on the manager itself one without a mark is a Workload like any other."""
        return is_ours(copy) and (name != self.world.own or MARKS.are_on(copy))


def _holds(workload: Json) -> bool:
    return has_quota(workload) and not is_finished(workload) and not is_evicted(workload)


def _count(workload: Json) -> int:
    return sum(pods["count"] for pods in dig(workload, "spec", "podSets") or ())


def _is_untold(workload: Json) -> bool:
    entry = check(workload, CHECK)
    return entry is not None and check_state(workload, CHECK) is CheckState.PENDING and not entry.get("message")


def hold_limit(workload: Json) -> float:
    """Seconds for which a run that ends may hold the manager's quota: its pods' grace period, and a minute."""
    return min(pod_grace(workload), LONGEST_GRACE).total_seconds() + LEFTOVER_GRACE.total_seconds()
