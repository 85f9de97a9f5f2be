"""What the manager's objects say is true when it is written: who has a job, and that nothing of it runs any more."""

from __future__ import annotations

import anyio
import attrs

from multikueue.core.model.conditions import changed_at
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, is_terminating
from multikueue.core.model.workloads import (
    attempt,
    cluster_name,
    is_admitted,
    is_evicted,
    is_finished,
    owner,
    replaces_slice,
)
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.beside import is_theirs
from tests.simulation.holding import hold_limit
from tests.simulation.objects import MARKS, is_ours, objects
from tests.simulation.promises import Promises
from tests.simulation.reach import Reach
from tests.simulation.running import Item, has_ended
from tests.simulation.virtual_time import wall_clock
from tests.simulation.world import World

UNSEEN = 26.0
"""Seconds for which a job may run again before the daemon sees it: the longest lag that is drawn, and one more.

A worker's Kueue that has preempted a job may start it again at once, until the daemon has removed it there.
"""
CLOSE = 5.0
"""Seconds by which clocks differ."""


@attrs.define(eq=False)
class Recording:
    """Looks at each write of `clusterName`, and at each that shows a job to have stopped."""

    world: World
    reach: Reach
    promises: Promises
    _admitted: set[tuple[str | None, ObjectKey, str]] = attrs.field(factory=set)
    """Which worker has admitted which Workload's copy, by its mark."""

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for name, worker in self.world.workers.items():

            def changed(row: ResourceType, old: Json | None, new: Json | None, name: str = name) -> None:
                del old
                if row.plural == WORKLOAD.plural and new is not None and is_ours(new) and is_admitted(new):
                    self._admitted.add((name, ObjectKey.of(new), mark_of(new)))

            worker.registry.cluster.listeners.append(changed)

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        if old is None or new is None:
            return
        if row.plural == WORKLOAD.plural:
            self._recorded(old, new)
        if row.plural == JOB.plural and not has_ended(row.plural, new):
            self._shown_to_have_stopped(old, new)

    def _recorded(self, old: Json, new: Json) -> None:
        """A worker is recorded only for an attempt that it has admitted. A slice joins the job of the one before."""
        chosen, key = cluster_name(new), ObjectKey.of(new)
        if is_theirs(new):
            return  # another controller records what is its own
        if chosen is None or cluster_name(old) is not None or replaces_slice(new):
            return
        if (self.world.place_of(chosen), key, MARKS.of(new, attempt(new), chosen)) not in self._admitted:
            self.promises.broken.append(f"{chosen} is recorded for {key}, and has not admitted this attempt")

    def _shown_to_have_stopped(self, old: Json, new: Json) -> None:
        """Kueue frees the quota of an evicted job by this: nothing of it may run where that can be seen."""
        if not dig(old, "status", "active") or dig(new, "status", "active") or is_terminating(new):
            return
        item = Item(JOB.plural, ObjectKey.of(new))
        mine = [workload for workload in objects(self.world.manager, WORKLOAD) if _is_of(workload, new)]
        stopped = [workload for workload in mine if is_evicted(workload) and not is_finished(workload)]
        if not stopped or any(map(self._held_for_long, stopped)):
            return
        for name, place in self.promises.running.get(item, {}).items():
            if (
                anyio.current_time() - place.since > UNSEEN
                and self.reach.recently_out_for(name) < self.promises.least_loss
            ):
                self.promises.broken.append(f"{item} is shown to have stopped while it runs on {name}")

    def _held_for_long(self, workload: Json) -> bool:
        """Whether quota was held for as long as it is for a run that ends, out of sight or not."""
        since = changed_at(workload, "Evicted")
        passed = (wall_clock()() - since).total_seconds() if since is not None else 0.0
        return passed + CLOSE + self.promises.most_stepped >= hold_limit(workload)


def _is_of(workload: Json, job: Json) -> bool:
    its_owner = owner(workload)
    return its_owner is not None and its_owner.name == job["metadata"]["name"] and its_owner.gvk.kind == JOB.gvk.kind
