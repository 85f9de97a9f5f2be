"""Orchestrated preemption: for one Workload no two workers may preempt at a time."""

from __future__ import annotations

import anyio
import attrs

from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.workloads import attempt_of_copy
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.daemon import PREEMPTION_TIMEOUT
from tests.simulation.objects import find, is_ours
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

    def listen(self) -> None:
        """Begin to watch."""
        for worker in self.world.workers.values() if self.world.orchestrated else ():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                ours = row.plural == WORKLOAD.plural and new is not None and is_ours(new)
                if ours and is_open(new) and not is_open(old):
                    self._open(worker, new or {})

            worker.registry.cluster.listeners.append(changed)

    def _open(self, worker: SimCluster, copy: Json) -> None:
        now, key = anyio.current_time(), ObjectKey.of(copy)
        opened = self._opened.setdefault((key, attempt_of_copy(copy)), {})
        self.promises.note(f"the gate of {key} is opened on {worker.name}")
        for other, since in opened.items():
            there = find(self.world.workers[other], WORKLOAD, key)
            stands = there is not None and is_open(there) and attempt_of_copy(there) == attempt_of_copy(copy)
            seen = other != worker.name and self.reach.longer_than(other, now - since)
            if stands and seen and now - since < min(GRACE, PREEMPTION_TIMEOUT.total_seconds()) - 5:
                self.promises.broken.append(
                    f"{worker.name} may preempt for {key}, {now - since:.0f} s after {other} may"
                )
        opened[worker.name] = now


def is_open(copy: Json | None) -> bool:
    """Whether a gate of the copy is open."""
    return any(gate.get("position") == "Open" for gate in dig(copy or {}, "status", "preemptionGates") or [])
