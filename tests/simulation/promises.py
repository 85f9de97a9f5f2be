"""What must hold at every step of a run: nothing runs twice, nothing that has ended runs again, no secret is told."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import anyio
import attrs

from multikueue.core.dispatchers.dispatcher import External
from multikueue.core.machinery.liveness import PROBE_EVERY
from multikueue.core.model.copies import prebuilt_workload
from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, MANAGED_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, uid
from multikueue.core.model.workloads import (
    OUT_OF_SYNC,
    OWNER_NOT_FOUND,
    SLICE_REPLACED,
    check,
    cluster_name,
    finish_reason,
    is_finished,
    nominated,
)
from multikueue.sandbox.apiserver.encoding import encode
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.kinds.pods import POD_RESOURCE, is_gated
from multikueue.sandbox.setting_up import CHECK
from tests.simulation.objects import find, is_ours
from tests.simulation.own import is_there
from tests.simulation.reach import Reach
from tests.simulation.renaming import is_made_elsewhere
from tests.simulation.running import KINDS, Item, has_ended, is_running, serves, workload_of
from tests.simulation.world import CANARY, SimCluster, World

HOLD: Final = "example.com/hold"
"""The finalizer by which somebody holds a job on a worker."""
GRACE: Final = 90.0
"""Seconds a worker must have been within reach for the daemon to answer for it: what came back a moment ago is still
being connected to and cleaned."""


class BrokenPromise(AssertionError):
    """The dispatcher did what it must never do."""


@attrs.frozen
class Place:
    """One thing that runs on one worker."""

    uid: str
    since: float
    workload: ObjectKey
    serves: bool


@attrs.define(eq=False)
class Promises:
    """Watches every change on every cluster."""

    world: World
    reach: Reach
    lost_timeout: float
    """Seconds a worker must be out of reach before what runs there may start elsewhere; the least of the run."""
    skew: Callable[[], float] = lambda: 0.0
    """Seconds by which clocks that differ may have shortened a loss: daemons with other clocks have taken turns."""
    running: dict[Item, dict[str, Place]] = attrs.field(factory=dict)
    """What runs, and on which workers."""
    run_here: set[Item] = attrs.field(factory=set)
    """What a controller of the manager runs on the manager itself."""
    removed: set[ObjectKey] = attrs.field(factory=set)
    """Jobs and Workloads of which somebody has removed what shows how they ended."""
    recreated: set[Item] = attrs.field(factory=set)
    """Names that two jobs have had: the second may start while the first ends, where that is out of sight."""
    stepped: float = 0.0
    """Seconds by which clocks were set while the daemon was restarted: so much less than a loss may be waited for."""
    most_stepped: float = 0.0
    """Seconds by which a clock was off at most: what is told to wait by it may wait for so much longer."""
    settled: dict[str, str] = attrs.field(factory=dict)
    """How jobs of the manager can only end, by UID, as somebody has settled: the condition of that end."""
    counted: dict[str, dict[str, int]] = attrs.field(factory=dict)
    """Counters of pods that somebody has written on jobs of the manager, by UID: they do not go back."""
    ended: dict[tuple[Item, str], float] = attrs.field(factory=dict)
    """When what has ended on the manager showed that first, by UID."""
    starts: int = 0
    broken: list[str] = attrs.field(factory=list)
    history: list[str] = attrs.field(factory=list)
    on_stop: Callable[[SimCluster, Item, Place], None] = lambda *_: None
    """Called when something stops on a worker without having ended."""
    _refused_at: dict[str, float] = attrs.field(factory=dict)
    """When deletions were last seen to be refused on a worker."""
    _begun: set[str] = attrs.field(factory=set)
    """UIDs of what has started on a worker."""
    _made: dict[str, dict[str, float]] = attrs.field(factory=dict)
    """By the UID of a copy: for how many seconds each other worker was out of reach when it was made."""
    _made_at: dict[str, float] = attrs.field(factory=dict)
    """When what is on a worker was made there, by UID."""

    def listen(self) -> None:
        """Begin to watch."""
        self.world.manager.registry.cluster.listeners.append(self._manager_changed)
        if self.world.own:
            list.append(self.world.manager.registry.cluster.listeners, self._own_changed)
        for worker in self.world.workers.values():

            def changed(row: ResourceType, old: Json | None, new: Json | None, worker: SimCluster = worker) -> None:
                if new is not None and is_made_elsewhere(new):
                    self.broken.append(f"{row.plural} {ObjectKey.of(new)} is made on {worker.name}")
                if row.plural in KINDS:
                    self._copy_changed(worker, Item(row.plural, ObjectKey.of(new or old or {})), old, new)

            worker.registry.cluster.listeners.append(changed)

    @property
    def least_loss(self) -> float:
        """Seconds that a worker must be out of reach for what runs there to run elsewhere.

        A loss begins with the last answer, a probe's interval before it at most; times are in whole seconds.
        """
        return self.lost_timeout - PROBE_EVERY - 2 - self.skew() - self.stepped

    def check(self, alive_since: float) -> None:
        """Raise for what was broken since the last look, and for what should not be so any more.

        Args:
            alive_since: since when a daemon runs.

        Raises:
            BrokenPromise: with everything that was.
        """
        now = anyio.current_time()
        self._refused_at |= {name: now for name, worker in self.world.workers.items() if worker.link.weather.keeps}
        for item, places in self.running.items():
            lasting = [
                name
                for name, place in places.items()
                if self._should_know(name, place.since, alive_since) and not self._cannot_stop(name, item, place)
            ]
            if len(lasting) > 1:
                self.broken.append(f"{item} runs on {' and '.join(sorted(lasting))}")
        if self.broken:
            raise BrokenPromise("; ".join(self.broken))

    def note(self, text: str) -> None:
        """Add a line to the story of the run."""
        self.history.append(f"{anyio.current_time():9.3f} {text}")

    def runs(self, worker: str, workload: ObjectKey) -> bool:
        """Whether anything of a Workload runs on a worker."""
        return any(worker in places and places[worker].workload == workload for places in self.running.values())

    def _cannot_stop(self, worker: str, item: Item, place: Place) -> bool:
        """Whether it is a former pod of that name, and a webhook there refuses its deletion, or did a moment ago."""
        refused = anyio.current_time() - self._refused_at.get(worker, -math.inf) < GRACE
        is_former = find(self.world.manager, WORKLOAD, place.workload) is None
        return refused and is_former and item.plural == POD_RESOURCE.plural

    def _should_know(self, worker: str, since: float, alive_since: float) -> bool:
        """Whether the daemon has had all the time it needs to see a job there and to remove it."""
        manager_since = self.reach.manager_since
        if manager_since is None or anyio.current_time() - max(since, alive_since, manager_since) < GRACE:
            return False
        return self.reach.readable_for(worker) >= GRACE

    def _manager_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        del old
        if new is not None and row.plural != "secrets" and CANARY.encode() in encode(new):
            self.broken.append(f"a credential is in {row.plural} {ObjectKey.of(new or {})}")
        said = check(new, CHECK) if new is not None and row.plural == WORKLOAD.plural else None
        message = str((said or {}).get("message") or "")
        if not message.isprintable() or ".example.com" in message:
            self.broken.append(f"workload {ObjectKey.of(new or {})} says {message!r}")
        if (
            row.plural == POD_RESOURCE.plural
            and new is not None
            and not is_gated(new)
            and MANAGED_LABEL in labels_of(new)
        ):
            self.broken.append(f"pod {ObjectKey.of(new or {})} runs on the manager, too")
        if row.plural in KINDS and new is not None and has_ended(row.plural, new):
            self.ended.setdefault((Item(row.plural, ObjectKey.of(new)), uid(new)), anyio.current_time())

    def _own_changed(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        """Where the manager is a worker its copies are nobody's jobs, and it has none without names of its own."""
        del old
        if new is None or row.plural != WORKLOAD.plural:
            return
        by_us = nominated(new) if self.world.dispatcher != External() else ()
        offered = (*by_us, cluster_name(new))
        judged = str((check(new, CHECK) or {}).get("state") or "Pending") != "Pending"
        if is_ours(new) and is_there(new) and (judged or any(offered)):
            self.broken.append(f"the copy {ObjectKey.of(new)} on the manager is planned")
        if self.world.own in offered and not self.world.own_said:
            self.broken.append(f"{ObjectKey.of(new)} is offered to the manager, which has no names of its own")

    def _copy_changed(self, worker: SimCluster, item: Item, old: Json | None, new: Json | None) -> None:
        places = self.running.setdefault(item, {})
        if new is not None:
            self._made_at.setdefault(uid(new), anyio.current_time())
        if new is not None and old is None and is_ours(new):
            self._created(worker, item, new)
        workload = workload_of(worker, item, new) if new is not None and is_running(item, new) else None
        if new is None or workload is None:
            if (place := places.pop(worker.name, None)) is not None:
                self._stopped(worker, item, place, new)
            return
        since = anyio.current_time()
        if worker.name in places and places[worker.name].uid == uid(new):
            since = places[worker.name].since
        else:
            once_more = item in self.recreated
            beside = [name for name, place in places.items() if not once_more or place.workload == workload]
            self._started(worker, item, new, beside)
        places[worker.name] = Place(uid(new), since, workload, serves(item, new))

    def _stopped(self, worker: SimCluster, item: Item, place: Place, new: Json | None) -> None:
        ended = new is not None and has_ended(item.plural, new)
        how = "is removed from" if new is None else "ends on" if ended else "stops on"
        self.note(f"{item} {how} {worker.name}")
        if not ended:
            self.on_stop(worker, item, place)

    def _started(self, worker: SimCluster, item: Item, obj: Json, elsewhere: list[str]) -> None:
        self.note(f"{item} starts on {worker.name}")
        self.starts += 1
        workload = workload_of(worker, item, obj)
        ending = [holder.name for holder in self.world.workers.values() if self._ends_on(holder, item, workload)]
        for other in {*elsewhere, *ending} - {worker.name}:
            if not serves(item, obj) and not self._is_old_run(worker, obj):
                text = f"{item} starts on {worker.name} while it runs on {other}"
                self.began_beside(worker, other, text, obj["metadata"]["uid"])
        self._begun.add(obj["metadata"]["uid"])
        if item in self.run_here:
            self.broken.append(f"{item} starts on {worker.name}, and a controller of the manager runs it there, too")
        local = find(self.world.manager, KINDS[item.plural].resource, item.key)
        ended = self.ended.get((item, uid(local))) if local is not None else None
        by_hand = local is not None and uid(local) in self.settled and self.world.retention
        if ended is not None and not by_hand and not self._was_left_there(worker, obj, ended):
            self.broken.append(f"{item} starts on {worker.name} after it has ended")

    def _was_left_there(self, worker: SimCluster, obj: Json, ended: float) -> bool:
        """Whether a copy was there before that end, and its worker out of reach ever since.

        A lost worker's job runs elsewhere as well, and one of the two ends first: nobody can take the other one away.
        """
        out_for = self.reach.out_for(worker.name)
        return out_for is not None and self._made_at[uid(obj)] < ended and out_for >= anyio.current_time() - ended

    def _ends_on(self, worker: SimCluster, item: Item, workload: ObjectKey | None) -> bool:
        """Whether a worker shows that pods of it are there still.

        A pod of another Workload was another pod: its controller has made this one in its place. So is a job that was
        deleted and made again under its name another job.
        """
        obj = (
            find(worker, KINDS[item.plural].resource, item.key) if worker.serves(KINDS[item.plural].resource) else None
        )
        if obj is None or not is_ours(obj) or has_ended(item.plural, obj) or obj["metadata"]["uid"] not in self._begun:
            return False
        is_another = item.plural == POD_RESOURCE.plural or item in self.recreated
        if is_another and workload_of(worker, item, obj) != workload:
            return False
        return KINDS[item.plural].course.is_active(obj) or bool(dig(obj, "status", "terminating"))

    def _is_old_run(self, worker: SimCluster, obj: Json) -> bool:
        """Whether a worker out of sight starts again what it ran: the other start was looked at when that came."""
        return obj["metadata"]["uid"] in self._begun and not self.reach.longer_than(worker.name, GRACE)

    def began_beside(self, worker: SimCluster, other: str, text: str, run: str) -> None:
        """Something starts on one worker while it is there on another.

        That may be only if one of them was out of reach for `workerLostTimeout`, as the daemon counts it: all the time
        in which one ran, until the worker is connected to again. Or it was so when the daemon made the copy: a node may
        be dead, or quota given, and it starts once the other one is back. A kind that is not served counts as out of
        reach, and pods of sets may overlap (`serves`).

        Args:
            worker: where it starts.
            other: where it is.
            text: what is said if that may not be.
            run: the UID of the copy that starts.
        """
        loss = max(self._loss(worker.name, other), self._made.get(run, {}).get(other, 0.0))
        if loss < self.least_loss:
            self.broken.append(text if loss == 0.0 else f"{text}, out of reach for {loss:.0f} s only")

    def _loss(self, worker: str, other: str) -> float:
        """For how many seconds one of two workers is out of reach, or was until a moment ago."""
        lost_for = max(self.reach.recently_out_for(name) for name in (other, worker))
        out_for = self.reach.out_for(other)
        return lost_for if out_for is None else min(lost_for, out_for)

    def _created(self, worker: SimCluster, item: Item, job: Json) -> None:
        losses = {name: self._loss(worker.name, name) for name in self.world.workers if name != worker.name}
        self._made[job["metadata"]["uid"]] = losses
        copy = find(worker, WORKLOAD, ObjectKey(item.key.namespace, prebuilt_workload(job)))
        if copy is None or item.plural != JOB.plural or not is_finished(copy):
            return
        if finish_reason(copy) in (OUT_OF_SYNC, OWNER_NOT_FOUND, SLICE_REPLACED):
            return  # no end of the job
        made_for = (annotations_of(obj).get(ATTEMPT_ANNOTATION) for obj in (copy, job))
        if len(set(made_for)) == 1:
            self.broken.append(f"{item.key} is made again on {worker.name}, where it has ended")
