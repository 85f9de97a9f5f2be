"""What must hold at every step of a run."""

from __future__ import annotations

from typing import Final

import anyio
import attrs

from multikueue.core.machinery.liveness import PROBE_EVERY
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ATTEMPT_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.core.model.workloads import OUT_OF_SYNC, OWNER_NOT_FOUND, finish_reason, is_finished
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from tests.simulation.objects import find, has_ended, is_ours, runs
from tests.simulation.reach import Reach
from tests.simulation.world import CANARY, SimCluster, World

GRACE: Final = 90.0
"""Seconds a worker must have been within reach for the daemon to answer for it: what came back a moment ago is still
being connected to and cleaned."""


class BrokenPromise(AssertionError):
    """The dispatcher did what it must never do."""


@attrs.define(eq=False)
class Promises:
    """Watches every change on every cluster."""

    world: World
    reach: Reach
    lost_timeout: float
    """Seconds a worker must be out of reach before what runs there may start elsewhere."""
    running: dict[ObjectKey, dict[str, tuple[str, float]]] = attrs.field(factory=dict)
    """Per job: on which workers it runs, as which object, since when."""
    ended: set[tuple[ObjectKey, str]] = attrs.field(factory=set)
    """Manager's jobs that have ended, by key and UID."""
    starts: int = 0
    broken: list[str] = attrs.field(factory=list)
    history: list[str] = attrs.field(factory=list)

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if row.plural == JOB.plural and is_ours(new or old or {}):
                    self._copy_changed(worker, old, new)

            worker.registry.cluster.listeners.append(changed)

    def check(self, alive_since: float) -> None:
        """Raise for what was broken since the last look, and for what should not be so any more.

        Args:
            alive_since: since when a daemon runs.

        Raises:
            BrokenPromise: with everything that was.
        """
        for key, places in self.running.items():
            lasting = [worker for worker, (_, since) in places.items() if self._should_know(worker, since, alive_since)]
            if len(lasting) > 1:
                self.broken.append(f"{key} runs on {' and '.join(sorted(lasting))}")
        if self.broken:
            raise BrokenPromise("; ".join(self.broken))

    def note(self, text: str) -> None:
        """Add a line to the story of the run."""
        self.history.append(f"{anyio.current_time():9.3f} {text}")

    def _should_know(self, worker: str, since: float, alive_since: float) -> bool:
        """Whether the daemon has had all the time it needs to see a job there and to remove it."""
        manager_since = self.reach.manager_since
        if manager_since is None or anyio.current_time() - max(since, alive_since, manager_since) < GRACE:
            return False
        return self.reach.longer_than(worker, GRACE)

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        del old
        told = str(new) if new is not None and row.plural != "secrets" else ""
        if CANARY in told:
            self.broken.append(f"a credential is in {row.plural} {ObjectKey.of(new or {})}")
        if row.plural == JOB.plural and new is not None and has_ended(new):
            self.ended.add((ObjectKey.of(new), new["metadata"]["uid"]))

    def _copy_changed(self, worker: SimCluster, old: Json | None, new: Json | None) -> None:
        key = ObjectKey.of(new or old or {})
        places = self.running.setdefault(key, {})
        if new is not None and old is None:
            self._created(worker, key, new)
        if new is None or not runs(new):
            if places.pop(worker.name, None):
                self.note(f"{key} {_how_it_stopped(new)} {worker.name}")
            return
        uid = new["metadata"]["uid"]
        if worker.name in places and places[worker.name][0] == uid:
            return
        self._started(worker, key, list(places))
        places[worker.name] = (uid, anyio.current_time())

    def _started(self, worker: SimCluster, key: ObjectKey, elsewhere: list[str]) -> None:
        self.note(f"{key} starts on {worker.name}")
        self.starts += 1
        for other in elsewhere:
            if other != worker.name and all(self.reach.longer_than(name, GRACE) for name in (other, worker.name)):
                self.broken.append(f"{key} starts on {worker.name} while it runs on {other}")
            out_for = self.reach.out_for(other)
            # A loss begins with the last answer, a probe's interval before it at most; times are in whole seconds.
            if other != worker.name and out_for is not None and out_for < self.lost_timeout - PROBE_EVERY - 2:
                self.broken.append(
                    f"{key} starts on {worker.name} while it runs on {other}, out of reach for {out_for:.0f} s only"
                )
        local = find(self.world.manager, JOB, key)
        if local is not None and (key, local["metadata"]["uid"]) in self.ended:
            self.broken.append(f"{key} starts on {worker.name} after it has ended")

    def _created(self, worker: SimCluster, key: ObjectKey, job: Json) -> None:
        copy = find(worker, WORKLOAD, ObjectKey(key.namespace, prebuilt_workload(job)))
        if copy is None or not is_finished(copy) or finish_reason(copy) in (OUT_OF_SYNC, OWNER_NOT_FOUND):
            return
        made_for = (annotations_of(obj).get(ATTEMPT_ANNOTATION) for obj in (copy, job))
        if len(set(made_for)) == 1:
            self.broken.append(f"{key} is made again on {worker.name}, where it has ended")


def _how_it_stopped(job: Json | None) -> str:
    if job is None:
        return "is removed from"
    return "ends on" if has_ended(job) else "stops on"
