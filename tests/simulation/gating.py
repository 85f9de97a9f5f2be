"""Orchestrated preemption: for one Workload no two workers may preempt at a time."""

from __future__ import annotations

import anyio
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.marks import mark_of
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import attempt
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.daemon import PREEMPTION_TIMEOUT
from tests.simulation.objects import MARKS, find, is_ours
from tests.simulation.promises import GRACE, Promises
from tests.simulation.reach import Reach
from tests.simulation.world import SimCluster, World


@attrs.define(eq=False)
class Gating:
    """Watches gates being opened."""

    world: World
    reach: Reach
    promises: Promises
    _opened: dict[tuple[ObjectKey, str], dict[str, float]] = attrs.field(factory=dict)
    """By Workload and attempt: on which workers, and when."""
    _attempts: dict[str, str] = attrs.field(factory=dict)
    """The attempts of marks: they differ from worker to worker."""

    def listen(self) -> None:
        """Begin to watch."""
        if self.world.orchestrated:
            self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for worker in self.world.workers.values() if self.world.orchestrated else ():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                ours = row.plural == WORKLOAD.plural and new is not None and is_ours(new)
                if ours and is_open(new) and not is_open(old):
                    self._open(worker, new or {})

            worker.registry.cluster.listeners.append(changed)

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        del old
        if row.plural == WORKLOAD.plural and new is not None:
            now = attempt(new)
            self._attempts.update({MARKS.of(new, now, name): now for name in self.world.workers})

    def _attempt(self, copy: Json) -> str:
        return self._attempts.get(mark_of(copy), "")

    def _open(self, worker: SimCluster, copy: Json) -> None:
        now, key = anyio.current_time(), ObjectKey.of(copy)
        opened = self._opened.setdefault((key, self._attempt(copy)), {})
        self.promises.note(f"the gate of {key} is opened on {worker.name}")
        for other, since in opened.items():
            there = find(self.world.workers[other], WORKLOAD, key)
            stands = there is not None and is_open(there) and self._attempt(there) == self._attempt(copy)
            # From one that sends what is no API's nothing is expected, as from one out of reach.
            hostile = self.world.workers[other].link.weather.hostility is not None
            seen = other != worker.name and not hostile and self.reach.longer_than(other, now - since)
            if stands and seen and now - since < min(GRACE, PREEMPTION_TIMEOUT.total_seconds()) - 5:
                self.promises.broken.append(
                    f"{worker.name} may preempt for {key}, {now - since:.0f} s after {other} may"
                )
        opened[worker.name] = now


def is_open(copy: Json | None) -> bool:
    """Whether a gate of the copy is open."""
    return any(gate.get("position") == "Open" for gate in dig(copy or {}, "status", "preemptionGates") or [])
